//! What parameters may be, by what has them (P4_16 sections 6.8, 7.2.12, 14.1).

use super::Checker;
use crate::ast::{self, Direction};
use crate::hir::{DefId, DefKind, Expr, ExprKind, Type};

/// What has the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The type of a parser or control.
    BlockType,
    /// A parser or control with a body.
    Block,
    Action,
    Function,
    /// An extern function, method or constructor.
    Extern,
    ParserConstructor,
    ControlConstructor,
    Package,
}

impl Checker {
    pub(super) fn param_rules(&mut self, owner: Owner, params: &[ast::Param], ids: &[DefId]) {
        for (param, id) in params.iter().zip(ids) {
            let ty = self.param(*id).ty;
            self.param_type(owner, param, &ty);
            self.param_default(owner, param, *id);
        }
    }

    fn param_type(&mut self, owner: Owner, param: &ast::Param, ty: &Type) {
        let shown = self.show(ty);
        let directed = param.direction != Direction::None;
        let (message, help) = match ty {
            Type::Void | Type::DontCare => {
                (format!("a parameter cannot be a `{shown}`"), "give it a type that has values")
            }
            Type::Int | Type::String if directed => (
                format!("a parameter of type `{shown}` takes no direction"),
                "its values exist only at compile time: remove `in`, `out` or `inout`",
            ),
            Type::Parser(id, _) | Type::Control(id, _)
                if matches!(self.def(*id).kind, DefKind::Parser(_) | DefKind::Control(_)) =>
            {
                (
                    format!("`{shown}` has a body, so it is not a parameter's type"),
                    "declare its type, without a body",
                )
            }
            Type::Parser(..) | Type::Control(..) | Type::Package(..) if owner == Owner::Extern => (
                format!("an extern has no parameter of type `{shown}`"),
                "externs call neither parsers nor controls: pass values and other extern objects",
            ),
            Type::Control(..) if owner == Owner::ParserConstructor => {
                ("a parser has no controls as parameters".to_owned(), "it cannot apply them: remove it")
            }
            Type::Parser(..) if owner == Owner::ControlConstructor => {
                ("a control has no parsers as parameters".to_owned(), "it cannot apply them: remove it")
            }
            Type::Parser(..) | Type::Control(..) | Type::Package(..)
                if matches!(owner, Owner::BlockType | Owner::Block | Owner::Action | Owner::Function) =>
            {
                (
                    format!("`{shown}` cannot be the type of a parameter at run time"),
                    "make it a constructor parameter",
                )
            }
            Type::Package(..) if matches!(owner, Owner::ParserConstructor | Owner::ControlConstructor) => (
                "only a package has packages as parameters".to_owned(),
                "pass the parsers and controls themselves",
            ),
            Type::Extern(..) if owner == Owner::Action => {
                (format!("an action has no parameter of type `{shown}`"), "use the control's own object")
            }
            Type::Extern(..) if owner == Owner::Function => (
                format!("a function has no parameter of type `{shown}`"),
                "call the object's methods where it is declared, and pass their results",
            ),
            _ if self.lacks_arguments(ty) => {
                (format!("the type `{shown}` lacks its type arguments"), "write them: `T<...>`")
            }
            _ => return,
        };
        self.error("bad-param", param.span, message).help = Some(help.into());
    }

    /// Arguments of a call: known at compile time where the parameter has no direction, and never a block or action.
    pub(super) fn argument_rules(&mut self, params: &[DefId], args: &[Option<Expr>]) {
        for (param, arg) in params.iter().zip(args) {
            let Some(arg) = arg else { continue };
            if matches!(arg.kind, ExprKind::DontCare) || arg.ty == Type::Unknown {
                continue;
            }
            let def = self.def(*param);
            let (name, declared) = (def.name.clone(), def.span);
            if matches!(
                arg.ty,
                Type::Table(_)
                    | Type::Action
                    | Type::ApplyResult(_)
                    | Type::ActionRun(_)
                    | Type::ValueSet(_)
                    | Type::Parser(..)
                    | Type::Control(..)
                    | Type::Package(..)
            ) {
                let shown = self.show(&arg.ty);
                self.error("bad-call", arg.span, format!("a `{shown}` cannot be an argument"));
            } else if matches!(arg.ty, Type::Extern(..)) && self.param(*param).direction != Direction::None {
                let message = format!("an extern object cannot be the argument for `{name}`");
                let diagnostic = self.error("bad-call", arg.span, message);
                diagnostic.related.push((declared, "this parameter has a direction".into()));
                diagnostic.help = Some("objects are passed without a direction".into());
            } else if self.param(*param).direction == Direction::None && !self.compile_time(arg) {
                let message = format!("the argument for `{name}` must be known at compile time");
                let diagnostic = self.error("not-constant", arg.span, message);
                diagnostic.related.push((declared, "this parameter has no direction".into()));
                diagnostic.help = Some("give the parameter the direction `in`, or pass a constant".into());
            }
        }
    }

    fn param_default(&mut self, owner: Owner, param: &ast::Param, id: DefId) {
        let optional = param.annotations.iter().find(|a| &*a.name.name == "optional");
        if let Some(annotation) = optional
            && !matches!(owner, Owner::BlockType | Owner::Extern | Owner::Package)
        {
            let help = Some("give the parameter a default value, or overload the function".to_owned());
            self.error("bad-param", annotation.span, "this parameter cannot be optional").help = help;
        }
        let Some(written) = &param.default else { return };
        if optional.is_some() {
            self.error("bad-param", written.span, "an optional parameter has no default value").help =
                Some("remove `@optional` or the value".into());
        }
        if let Some(value) = self.param(id).default
            && value.ty != Type::Unknown
            && !self.compile_time(&value)
        {
            self.error("not-constant", written.span, "a default value must be known at compile time");
        }
    }
}
