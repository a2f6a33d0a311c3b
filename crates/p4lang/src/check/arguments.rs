//! Arguments against parameters: which overload is meant, what the type arguments are (P4_16 sections 6.8, 8.20).

use super::scope::Entry;
use super::types::{Subst, parts, substitute, type_weight};
use super::{Checker, Place, consts};
use crate::ast::{self, Direction, Ident};
use crate::diag::counted;
use crate::hir::{DefId, DefKind, Expr, ExprKind, Order, ParamDef, SignatureDef, Type, TypeParamId};
use crate::source::Span;

/// Arguments in parameter order, and the order in which they are written.
type Arranged<'a> = (Vec<Option<&'a ast::Expr>>, Order);

impl Checker {
    pub(super) fn signature(&self, id: DefId) -> Option<SignatureDef> {
        match &self.def(id).kind {
            DefKind::Function(f) => Some(f.signature.clone()),
            DefKind::ExternFn(s) => Some(s.clone()),
            _ => None,
        }
    }

    pub(super) fn param(&self, id: DefId) -> ParamDef {
        match &self.def(id).kind {
            DefKind::Param(p) => {
                let weight = p.default.as_ref().map_or(0, consts::weight) + type_weight(&p.ty);
                self.budget.work(weight / 32);
                self.budget.bytes(weight);
                p.clone()
            }
            _ => ParamDef { direction: Direction::None, ty: Type::Unknown, default: None, optional: true },
        }
    }

    /// Those of the overloads that take these arguments by number and name.
    pub(super) fn select_overload(&self, ids: &[DefId], args: &[ast::Arg]) -> Vec<DefId> {
        self.budget.work(ids.len() * 8);
        ids.iter()
            .copied()
            .filter(|id| self.signature(*id).is_some_and(|s| self.arrange(&s.params, args).is_ok()))
            .collect()
    }

    /// Arguments against parameters; why not, if they don't fit.
    fn arrange<'a>(
        &self,
        params: &[DefId],
        args: &'a [ast::Arg],
    ) -> Result<Arranged<'a>, (Option<Span>, String)> {
        let mut out: Vec<Option<&ast::Expr>> = vec![None; params.len()];
        let mut written = Vec::with_capacity(args.len());
        let named = args.iter().any(|a| a.name.is_some());
        self.budget.work(if named { args.len() * params.len() } else { params.len() });
        for (index, arg) in args.iter().enumerate() {
            let at = match &arg.name {
                Some(name) => params
                    .iter()
                    .position(|p| self.def(*p).name == name.name)
                    .ok_or_else(|| (Some(name.span), format!("there is no parameter `{}`", name.name)))?,
                None if named => {
                    return Err((Some(arg.value.span), "either all arguments are named or none".into()));
                }
                None if index < params.len() => index,
                None => {
                    return Err((
                        Some(arg.value.span),
                        format!("expected {}, found {}", counted(params.len(), "argument"), args.len()),
                    ));
                }
            };
            written.push(at);
            if out[at].replace(&arg.value).is_some() {
                return Err((
                    arg.name.as_ref().map(|n| n.span),
                    format!("argument `{}` is given twice", self.def(params[at]).name),
                ));
            }
        }
        let (mut optional, mut default) = (false, false);
        for (param, value) in params.iter().zip(&out) {
            let def = self.param(*param);
            optional |= def.optional;
            default |= def.default.is_some();
            if value.is_none() && def.default.is_none() && !def.optional {
                let name = &self.def(*param).name;
                return Err((None, format!("no argument for parameter `{name}`")));
            }
        }
        if optional
            && default
            && let Some(arg) = args.iter().find(|a| a.name.is_none())
        {
            let why =
                "where some parameters are optional and others have default values, arguments are named";
            return Err((Some(arg.value.span), why.into()));
        }
        Ok((out, Order::new(written, params.len())))
    }

    /// The one overload that fits.
    pub(super) fn resolve(
        &mut self,
        ids: &[DefId],
        name: &Ident,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<DefId> {
        let fitting = self.select_overload(ids, args);
        match fitting.len() {
            1 => {
                self.deprecated(fitting[0], name.span);
                Some(fitting[0])
            }
            0 => {
                let declared = self.def(ids[0]).span;
                let (place, why) = match ids {
                    [only] => {
                        let params = self.signature(*only).map(|s| s.params).unwrap_or_default();
                        self.arrange(&params, args).err().unwrap_or((None, String::new()))
                    }
                    _ => {
                        let given = counted(args.len(), "argument");
                        (None, format!("no form of `{}` takes the {given} given", name.name))
                    }
                };
                self.error("bad-call", place.unwrap_or(span), why)
                    .related
                    .push((declared, "declared here".into()));
                self.check_loose(args);
                None
            }
            _ => {
                // By the specification, the types of arguments decide nothing.
                self.error("bad-call", span, format!("this call of `{}` is ambiguous", name.name)).help =
                    Some("name the arguments".into());
                None
            }
        }
    }

    /// Checks arguments against parameters and infers type arguments. `outer` holds those of the object. Gives the type
    /// arguments, and the arguments in parameter order with the order in which they are written.
    pub(super) fn arguments(
        &mut self,
        type_params: &[TypeParamId],
        params: &[DefId],
        explicit: &[ast::TypeRef],
        args: &[ast::Arg],
        outer: &Subst,
        span: Span,
    ) -> Option<(Vec<Type>, Vec<Option<Expr>>, Order)> {
        let (arranged, order) = match self.arrange(params, args) {
            Ok(arranged) => arranged,
            Err((place, why)) => {
                let declared = params.first().map(|p| self.def(*p).span);
                self.error("bad-call", place.unwrap_or(span), why)
                    .related
                    .extend(declared.map(|s| (s, "parameters declared here".to_owned())));
                self.check_loose(args);
                return None;
            }
        };
        let mut subst = outer.clone();
        self.budget.work(outer.len() + (type_params.len() + 1) * (params.len() + 1));
        if !explicit.is_empty() {
            if explicit.len() != type_params.len() {
                self.error(
                    "type-arguments",
                    span,
                    format!(
                        "expected {}, found {}",
                        counted(type_params.len(), "type argument"),
                        explicit.len()
                    ),
                );
                return None;
            }
            for (param, written) in type_params.iter().zip(explicit) {
                let ty = self.ty(written);
                if ty != Type::DontCare {
                    subst.insert(*param, ty);
                }
            }
        }
        let mut values = Vec::with_capacity(params.len());
        let mut failed = false;
        for (param, arg) in params.iter().zip(&arranged) {
            let def = self.param(*param);
            // A number without a width leaves the type open for the arguments after it.
            let wanted = match &def.ty {
                Type::Param(id) if subst.get(id) == Some(&Type::Int) => def.ty.clone(),
                ty => substitute(ty, &subst),
            };
            let Some(arg) = arg else {
                values.push(def.default.clone());
                continue;
            };
            if matches!(arg.kind, ast::ExprKind::DontCare) {
                if def.direction != Direction::Out && !def.optional && self.place != Place::Top {
                    self.error("bad-call", arg.span, "`_` may stand only for an `out` argument");
                }
                values.push(Some(Expr { ty: wanted, kind: ExprKind::DontCare, span: arg.span }));
                continue;
            }
            let open = mentions(&wanted, type_params);
            if open
                && matches!(wanted, Type::Param(_))
                && matches!(arg.kind, ast::ExprKind::StructInit { .. })
            {
                self.error("cannot-infer", arg.span, "nothing says what type this structure has").help =
                    Some("cast it: `(type) { ... }`, or give the type arguments".into());
                failed = true;
                values.push(None);
                continue;
            }
            let value = self.expr(arg, Some(&wanted).filter(|_| !open));
            if value.ty == Type::Unknown {
                failed = true;
            }
            if open && !self.unify(&wanted, &value.ty, type_params, &mut subst) {
                let (want, have) = (self.show(&substitute(&wanted, &subst)), self.show(&value.ty));
                self.error("type-mismatch", arg.span, format!("expected `{want}`, found `{have}`"));
                failed = true;
            }
            values.push(Some(value));
        }
        // A type known only from numbers without a width gets one.
        for param in type_params {
            if subst.get(param) == Some(&Type::Int) && !failed {
                let number = values.iter().flatten().find(|v| v.ty == Type::Int).map_or(span, |v| v.span);
                self.error("cannot-infer", number, "nothing says what width this number has").help =
                    Some("give it a width, as in `16w5`, or give the type arguments".into());
                failed = true;
            }
            if let Some(Type::Tuple(items)) = subst.get(param) {
                let items = items
                    .iter()
                    .map(
                        |t| if *t == Type::Int { Type::Bits { width: 32, signed: false } } else { t.clone() },
                    )
                    .collect();
                subst.insert(*param, Type::Tuple(items));
            }
        }
        let used: Vec<_> =
            params.iter().zip(&values).filter(|(_, v)| v.is_some()).map(|(p, _)| self.param(*p).ty).collect();
        for param in type_params {
            if !subst.contains_key(param) && !failed {
                let only_optional = !used.iter().any(|t| mentions(t, &[*param]));
                if only_optional
                    && explicit.is_empty()
                    && !values.is_empty()
                    && values.iter().any(Option::is_none)
                {
                    subst.insert(*param, Type::DontCare);
                    continue;
                }
                let name = self.hir.type_params[param.0 as usize].clone();
                let diagnostic =
                    self.error("cannot-infer", span, format!("cannot tell what type `{name}` is"));
                diagnostic.help = Some("give the type arguments: `f<T>(...)`".into());
                return None;
            }
        }
        if failed {
            return None;
        }
        let mut out = Vec::with_capacity(values.len());
        for ((param, value), written) in params.iter().zip(values).zip(&arranged) {
            let def = self.param(*param);
            let wanted = substitute(&def.ty, &subst);
            out.push(value.map(|value| {
                if written.is_none() || matches!(value.kind, ExprKind::DontCare) {
                    return Expr { ty: wanted.clone(), ..value };
                }
                self.argument(value, &def, &wanted)
            }));
        }
        let types = type_params.iter().map(|p| subst.get(p).cloned().unwrap_or(Type::Unknown)).collect();
        Some((types, out, order))
    }

    /// One argument against its parameter: type and direction.
    fn argument(&mut self, value: Expr, param: &ParamDef, wanted: &Type) -> Expr {
        let mut subst = Subst::new();
        let blocks =
            matches!(wanted, Type::Parser(..) | Type::Control(..) | Type::Package(..) | Type::Extern(..));
        let value = if blocks {
            if !self.unify(wanted, &value.ty, &[], &mut subst) {
                let (want, have) = (self.show(wanted), self.show(&value.ty));
                let help = self.signatures_differ(wanted, &value.ty);
                self.error("type-mismatch", value.span, format!("expected `{want}`, found `{have}`")).help =
                    help;
                return Self::unknown(value.span);
            }
            value
        } else if matches!(param.direction, Direction::Out | Direction::InOut) {
            if value.ty != *wanted && value.ty != Type::Unknown && *wanted != Type::Unknown {
                let (want, have) = (self.show(wanted), self.show(&value.ty));
                self.error(
                    "type-mismatch",
                    value.span,
                    format!(
                        "{} argument must be exactly `{want}`, this is `{have}`",
                        param.direction.with_article()
                    ),
                );
                return Self::unknown(value.span);
            }
            value
        } else {
            self.coerce(value, wanted)
        };
        if matches!(param.direction, Direction::Out | Direction::InOut) {
            self.require_writable(&value);
        }
        value
    }

    /// Checks arguments of a call that is in error anyway.
    pub(super) fn check_loose(&mut self, args: &[ast::Arg]) {
        for arg in args {
            if !matches!(
                arg.value.kind,
                ast::ExprKind::DontCare | ast::ExprKind::List { .. } | ast::ExprKind::StructInit { .. }
            ) {
                self.expr(&arg.value, None);
            }
        }
    }

    /// Whether a parameter is one of the action around.
    fn action_data(&self, id: DefId) -> bool {
        let own =
            self.action.and_then(|at| self.scopes.get(at)).and_then(|s| s.names.get(&self.def(id).name));
        matches!(own, Some(Entry::Defs(ids)) if ids.contains(&id))
    }

    /// Whether an argument is known at compile time or is a constructor parameter.
    pub(super) fn compile_time(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Ref(id) => {
                matches!(self.def(*id).kind, DefKind::Param(ref p) if p.direction == Direction::None)
                    && !self.action_data(*id)
                    || matches!(self.def(*id).kind, DefKind::Instance(_) | DefKind::Const { .. })
            }
            ExprKind::Construct(_) | ExprKind::DontCare => true,
            ExprKind::Cast(e) | ExprKind::Unary(_, e) => self.compile_time(e),
            ExprKind::Binary(_, a, b) => self.compile_time(a) && self.compile_time(b),
            ExprKind::Struct(items, _) | ExprKind::List(items) => {
                items.iter().flatten().all(|e| self.compile_time(e))
            }
            ExprKind::Field(e, _) | ExprKind::Slice { base: e, .. } => self.compile_time(e),
            ExprKind::Ternary(cond, a, b) => {
                self.compile_time(cond) && self.compile_time(a) && self.compile_time(b)
            }
            _ => consts::is_const(e),
        }
    }
}

/// Whether a type mentions any of the type parameters.
fn mentions(ty: &Type, params: &[TypeParamId]) -> bool {
    match ty {
        Type::Param(id) => params.contains(id),
        _ => parts(ty).iter().any(|t| mentions(t, params)),
    }
}
