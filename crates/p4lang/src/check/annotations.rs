//! Annotations: what may stand in those that the language defines, and in structured ones (P4_16 section 20).

use std::collections::{HashMap, HashSet};

use crate::ast::{
    Annotation, AnnotationBody, BinaryOp, Block, Decl, DeclKind, Expr, ExprKind, Name, Param, Program,
    PropertyKind, Stmt, StmtKind, TypeKind, TypeSource, UnaryOp,
};
use num_traits::ToPrimitive;

use crate::diag::Diagnostic;
use crate::hir::{DefId, ExprKind as Value, Type};
use crate::platform::properties;
use crate::source::Span;

/// Those that take no arguments.
const BARE: [&str; 12] = [
    "atomic",
    "defaultonly",
    "disable_optimization",
    "hidden",
    "likely",
    "noSideEffects",
    "nounroll",
    "optional",
    "pure",
    "tableonly",
    "unlikely",
    "unroll",
];
/// Those whose one argument is a string.
const STRING: [&str; 3] = ["deprecated", "name", "noWarn"];

/// Others that have no structured form.
const UNSTRUCTURED: [&str; 2] = ["diagnostic", "match"];

pub(super) fn check(program: &Program, diagnostics: &mut Vec<Diagnostic>) {
    let mut checker = Checker { diagnostics };
    program.decls.iter().for_each(|d| checker.decl(d));
}

struct Checker<'a> {
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn decl(&mut self, decl: &Decl) {
        self.list(&decl.annotations);
        match &decl.kind {
            DeclKind::Instantiation { body: Some(decls), .. } => decls.iter().for_each(|d| self.decl(d)),
            DeclKind::Function(f) => {
                self.params(&f.proto.params);
                self.block(&f.body);
            }
            DeclKind::Action { params, body, .. } => {
                self.params(params);
                self.block(body);
            }
            DeclKind::Table(table) => {
                for property in &table.properties {
                    self.list(&property.annotations);
                    match &property.kind {
                        PropertyKind::Key(keys) => keys.iter().for_each(|k| self.list(&k.annotations)),
                        PropertyKind::Actions(all) => all.iter().for_each(|a| self.list(&a.annotations)),
                        PropertyKind::Entries(all) => all.iter().for_each(|e| self.list(&e.annotations)),
                        PropertyKind::Other { .. } => {}
                    }
                }
            }
            DeclKind::Parser(parser) => {
                self.params(&parser.params);
                self.params(&parser.ctor_params);
                parser.locals.iter().for_each(|d| self.decl(d));
                for state in &parser.states {
                    self.list(&state.annotations);
                    self.stmts(&state.body);
                }
            }
            DeclKind::Control(control) => {
                self.params(&control.params);
                self.params(&control.ctor_params);
                control.locals.iter().for_each(|d| self.decl(d));
                self.block(&control.apply);
            }
            DeclKind::ParserType { params, .. }
            | DeclKind::ControlType { params, .. }
            | DeclKind::Package { params, .. } => self.params(params),
            DeclKind::Extern { methods, .. } => {
                for method in methods {
                    self.list(&method.annotations);
                    self.params(&method.proto.params);
                }
            }
            DeclKind::ExternFunction(proto) => self.params(&proto.params),
            DeclKind::Header(s) | DeclKind::HeaderUnion(s) | DeclKind::Struct(s) => {
                s.fields.iter().for_each(|f| self.list(&f.annotations));
            }
            DeclKind::Enum { members, .. } => members.iter().for_each(|(_, _, a)| self.list(a)),
            DeclKind::Typedef { ty: TypeSource::Decl(decl), .. }
            | DeclKind::NewType { ty: TypeSource::Decl(decl), .. } => self.decl(decl),
            _ => {}
        }
    }

    fn params(&mut self, params: &[Param]) {
        params.iter().for_each(|p| self.list(&p.annotations));
    }

    fn block(&mut self, block: &Block) {
        self.list(&block.annotations);
        self.stmts(&block.stmts);
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Block(block) => self.block(block),
            StmtKind::Decl(decl) => self.decl(decl),
            StmtKind::If { then, otherwise, .. } => {
                self.stmt(then);
                otherwise.iter().for_each(|s| self.stmt(s));
            }
            StmtKind::Switch { cases, .. } => {
                cases.iter().filter_map(|c| c.body.as_ref()).for_each(|b| self.block(b))
            }
            StmtKind::For { annotations, init, update, body, .. } => {
                self.list(annotations);
                self.stmts(init);
                self.stmts(update);
                self.stmt(body);
            }
            StmtKind::ForIn { annotations, body, .. } => {
                self.list(annotations);
                self.stmt(body);
            }
            _ => {}
        }
    }

    /// The annotations of one element.
    fn list(&mut self, list: &[Annotation]) {
        let mut seen: HashMap<&Name, &Annotation> = HashMap::new();
        for annotation in list {
            self.one(annotation);
            let same = seen.insert(&annotation.name.name, annotation);
            if same.is_some() && matches!(&*annotation.name.name, "hidden" | "name") {
                self.error(
                    annotation.span,
                    format!("`@{}` stands here twice", annotation.name.name),
                    "remove one of them",
                );
            }
            if let Some(first) = same.filter(|first| structured(first) || structured(annotation)) {
                let message = format!("`@{}` stands here twice, in a structured form", annotation.name.name);
                self.diagnostics.push(
                    Diagnostic::error("annotation", annotation.span, message)
                        .related(first.span, "the first")
                        .help("put all of it into one annotation"),
                );
            }
        }
    }

    fn error(&mut self, span: Span, message: String, help: &str) {
        self.diagnostics.push(Diagnostic::error("annotation", span, message).help(help));
    }

    fn one(&mut self, annotation: &Annotation) {
        let name = &*annotation.name.name;
        if structured(annotation)
            && BARE.iter().chain(&STRING).chain(&UNSTRUCTURED).any(|known| *known == name)
        {
            let help = "write what it takes in parentheses, if anything";
            self.error(annotation.span, format!("`@{name}` has no structured form"), help);
        }
        match &annotation.body {
            AnnotationBody::List(_) => {}
            AnnotationBody::KeyValue(pairs) => {
                let mut seen = HashSet::new();
                for (key, _) in pairs {
                    if !seen.insert(&key.name) {
                        self.error(
                            key.span,
                            format!("the key `{}` is there twice", key.name),
                            "give each key once",
                        );
                    }
                }
            }
            AnnotationBody::None => self.free(annotation, "", &[]),
            AnnotationBody::Free { text, exprs } => {
                self.free(annotation, text.trim(), exprs.as_deref().unwrap_or_default());
            }
        }
    }

    /// `@name(...)` or a bare `@name`.
    fn free(&mut self, annotation: &Annotation, text: &str, exprs: &[Expr]) {
        let name = &*annotation.name.name;
        let span = annotation.span;
        if BARE.contains(&name) && !text.is_empty() {
            self.error(
                span,
                format!("`@{name}` takes no arguments"),
                "remove the parentheses and what is in them",
            );
        } else if STRING.contains(&name) && !matches!(exprs, [e] if is_string(e)) {
            self.error(span, format!("`@{name}` takes one string"), &format!("write `@{name}(\"...\")`"));
        } else if name == "diagnostic" && !is_diagnostic(exprs) {
            self.error(
                span,
                "`@diagnostic` takes the name of a diagnostic and what becomes of it".into(),
                "the second string is \"disable\", \"info\", \"warn\" or \"error\"",
            );
        } else if name == "id" && !matches!(exprs, [e] if is_number(e)) {
            self.error(span, "`@id` takes one number".into(), "write `@id(1)`");
        } else if name == "pkginfo" && text.is_empty() {
            self.error(
                span,
                "`@pkginfo` says nothing".into(),
                "write `@pkginfo(name=\"...\", version=\"...\")`",
            );
        } else if name == "platform_property" && properties(text).is_none() {
            self.error(
                span,
                "`@platform_property` takes sizes of the table of multicast groups, each once".into(),
                "write `@platform_property(multicast_group_table_size=10)`; others are \
                 `multicast_group_table_total_replicas` and `multicast_group_table_max_replicas_per_entry`",
            );
        } else if name == "match"
            && !matches!(exprs, [e] if matches!(e.kind, ExprKind::Name(_) | ExprKind::Member { .. }))
        {
            self.error(span, "`@match` takes one match kind".into(), "write `@match(exact)`, for instance");
        } else if name == "p4runtime_translation" && !is_translation(exprs) {
            self.error(
                span,
                "`@p4runtime_translation` takes a URI and the controller's type".into(),
                "the type is `string` or `bit<W>`, with a number for W",
            );
        }
    }
}

impl super::Checker {
    /// The annotations of one element, with values for the expressions of structured ones (section 20.2).
    pub(super) fn annotations(&mut self, list: &[Annotation]) -> Vec<Annotation> {
        let mut out = list.to_vec();
        for annotation in &mut out {
            match &mut annotation.body {
                AnnotationBody::List(items) => items.iter_mut().for_each(|e| self.annotation_value(e)),
                AnnotationBody::KeyValue(pairs) => {
                    pairs.iter_mut().for_each(|(_, e)| self.annotation_value(e))
                }
                AnnotationBody::Free { exprs: Some(exprs), .. }
                    if STRING.contains(&&*annotation.name.name) =>
                {
                    exprs.iter_mut().for_each(|e| self.annotation_string(e));
                }
                AnnotationBody::None | AnnotationBody::Free { .. } => {}
            }
        }
        out
    }

    /// Puts its value in place of an expression that makes a string, as the name of a constant.
    fn annotation_string(&mut self, e: &mut Expr) {
        if !matches!(e.kind, ExprKind::Name(_) | ExprKind::Binary { op: BinaryOp::Concat, .. }) {
            return;
        }
        let value = self.expr(e, None);
        match (value.kind, value.ty) {
            (Value::Str(text), _) => e.kind = ExprKind::Str(text),
            // Reported.
            (_, Type::Unknown) => {}
            _ => {
                self.error(
                    "annotation",
                    e.span,
                    "this annotation takes a string that is known at compile time",
                )
                .help = Some("write the string itself, or a constant's name".into());
            }
        }
    }

    /// Warns of a use of what is marked `@deprecated`, with the message that it has (section 20.3.7).
    pub(super) fn deprecated(&mut self, id: DefId, span: Span) {
        let def = self.def(id);
        let Some(text) = string_annotation(&def.annotations, "deprecated") else { return };
        let message = format!("`{}` is deprecated: {text}", def.name);
        let declared = def.span;
        self.report(Diagnostic::warning("deprecated", span, message))
            .related
            .push((declared, "declared here".into()));
    }

    /// Puts its value in place of an expression: an `int`, a string or a Boolean.
    fn annotation_value(&mut self, e: &mut Expr) {
        let value = self.expr(e, None);
        let (message, help) = match (&value.ty, value.kind) {
            (Type::Int, Value::Int(value)) if value.to_i64().is_some() => {
                e.kind = ExprKind::Int { value, width: None, signed: false };
                return;
            }
            (Type::Bool, Value::Bool(value)) => {
                e.kind = ExprKind::Bool(value);
                return;
            }
            (Type::String, Value::Str(text)) => {
                e.kind = ExprKind::Str(text);
                return;
            }
            // Reported.
            (Type::Unknown, _) => return,
            (Type::Int, Value::Int(_)) => (
                "a number in a structured annotation has at most 64 bits with its sign, as in P4Info",
                "write it as a string",
            ),
            _ => (
                "a structured annotation holds numbers without a width, strings and Booleans, known at compile time",
                "write anything else in parentheses: `@annotation(...)`",
            ),
        };
        self.error("annotation", e.span, message).help = Some(help.into());
    }
}

/// What an annotation with one string says.
pub(super) fn string_annotation<'a>(annotations: &'a [Annotation], name: &str) -> Option<&'a str> {
    annotations.iter().find(|a| &*a.name.name == name).and_then(|a| match &a.body {
        AnnotationBody::Free { exprs: Some(exprs), .. } => match exprs.first().map(|e| &e.kind) {
            Some(ExprKind::Str(text)) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    })
}

fn structured(annotation: &Annotation) -> bool {
    matches!(annotation.body, AnnotationBody::List(_) | AnnotationBody::KeyValue(_))
}

fn is_string(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Str(text) => !text.is_empty(),
        ExprKind::Binary { op: BinaryOp::Concat, left, right } => is_string(left) && is_string(right),
        // A constant's value: looked at where it is used.
        ExprKind::Name(_) => true,
        _ => false,
    }
}

fn is_diagnostic(exprs: &[Expr]) -> bool {
    let [name, level] = exprs else { return false };
    matches!(name.kind, ExprKind::Str(_))
        && matches!(&level.kind, ExprKind::Str(level) if ["disable", "info", "warn", "error"].contains(&&**level))
}

fn is_number(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Int { .. } | ExprKind::Name(_) => true,
        ExprKind::Unary { op: UnaryOp::Plus, operand } => is_number(operand),
        ExprKind::Binary { left, right, .. } => is_number(left) && is_number(right),
        _ => false,
    }
}

fn is_translation(exprs: &[Expr]) -> bool {
    let [uri, ty] = exprs else { return false };
    let ty = match &ty.kind {
        ExprKind::Int { .. } | ExprKind::Str(_) => true,
        ExprKind::Type(ty) => match &ty.kind {
            TypeKind::String => true,
            TypeKind::Bit(Some(width)) => matches!(width.kind, ExprKind::Int { .. }),
            _ => false,
        },
        _ => false,
    };
    ty && matches!(uri.kind, ExprKind::Str(_))
}
