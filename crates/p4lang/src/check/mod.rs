//! Syntax tree to checked program: names, types, constants, and the rules of the language.
//!
//! [`check`] walks the declarations in source order, since P4 wants names declared before they are used. Each
//! expression is checked with the type that its context expects, if it expects one: that is what gives integer
//! literals their widths and brace lists their types. Something in error gets [`Type::Unknown`], which agrees with
//! everything, so that one mistake is reported once.

mod annotations;
mod arguments;
mod call;
mod construct;
pub(crate) mod consts;
mod control_names;
mod decl;
mod expr;
mod externs;
mod flow;
mod init;
mod keyset;
mod method;
mod names;
mod ops;
mod params;
mod parser;
mod plus_slice;
mod scope;
mod stmt;
mod table;
mod table_rules;
mod type_decl;
mod type_rules;
mod types;
mod unset;
mod walk;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::ast::{self, Name};
use crate::diag::{Diagnostic, Severity};
use crate::hir::{self, Def, DefId, DefKind, Hir, Type};
use crate::limits::{Budget, MAX_ERRORS};
use crate::source::Span;

pub(crate) use init::castable;
pub use types::{Subst, display, substitute};
pub(crate) use walk::find;

use scope::Scope;

/// Warnings that are kept.
const MAX_WARNINGS: usize = 1_000;

/// What surrounds the code being checked; decides what may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    Parser,
    Control,
    Action,
    Function,
}

struct Checker {
    hir: Hir,
    budget: Rc<Budget>,
    /// Where the budget ran out.
    spent_at: Option<Span>,
    diagnostics: Vec<Diagnostic>,
    /// Errors and warnings among them.
    errors: usize,
    warnings: usize,
    /// One that is too many.
    dropped: Diagnostic,
    /// Fields by name, of structs whose fields have been asked for.
    field_numbers: HashMap<DefId, HashMap<Name, usize>>,
    scopes: Vec<Scope>,
    place: Place,
    /// Declared return type of the function around.
    returns: Option<Type>,
    /// Loops around.
    loops: usize,
    parent: Option<DefId>,
    /// Name of the function, action, parser or control being declared: it may not call itself.
    declaring: Vec<Name>,
    /// Number of scopes outside of the action around.
    action: Option<usize>,
}

/// Checks a whole program. `None` if there was an error; warnings come either way.
pub fn check(program: &ast::Program, budget: &Rc<Budget>) -> (Option<Hir>, Vec<Diagnostic>) {
    let mut checker = Checker {
        hir: Hir::default(),
        budget: budget.clone(),
        spent_at: None,
        diagnostics: Vec::new(),
        errors: 0,
        warnings: 0,
        dropped: Diagnostic::error("", Span::default(), ""),
        field_numbers: HashMap::new(),
        scopes: vec![Scope::default()],
        place: Place::Top,
        returns: None,
        loops: 0,
        parent: None,
        declaring: Vec::new(),
        action: None,
    };
    annotations::check(program, &mut checker.diagnostics);
    for decl in &program.decls {
        if let Some(id) = checker.top_level(decl) {
            checker.hir.top.push(id);
        }
        if checker.stop(decl.span, 1) {
            break;
        }
    }
    if let (Some(span), Some(resource)) = (checker.spent_at, budget.exhausted()) {
        checker.diagnostics.push(budget.report("too-large", resource, span));
    }
    checker.main_rule();
    control_names::check(&checker.hir, &mut checker.diagnostics);
    flow::check(&checker.hir, &mut checker.diagnostics);
    let failed = checker.diagnostics.iter().any(|d| d.severity == Severity::Error);
    if !failed {
        unset::warn(&checker.hir, budget, &mut checker.diagnostics);
    }
    ((!failed).then_some(checker.hir), checker.diagnostics)
}

impl Checker {
    /// What is called `main` at top level is an instance of a package (section 13, 19.1).
    fn main_rule(&mut self) {
        let Some(scope::Entry::Defs(ids)) = self.scopes[0].names.get("main") else { return };
        let def = self.def(ids[0]);
        // An instance that could not be made is a variable without a type.
        if matches!(def.kind, DefKind::Instance(_) | DefKind::Variable { .. }) {
            return;
        }
        let span = def.span;
        self.error("bad-main", span, "`main` must be an instance of a package").help =
            Some("give this another name".into());
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.report(Diagnostic::error(code, span, message))
    }

    fn report(&mut self, diagnostic: Diagnostic) -> &mut Diagnostic {
        let (count, most) = match diagnostic.severity {
            Severity::Error => (&mut self.errors, MAX_ERRORS),
            Severity::Warning => (&mut self.warnings, MAX_WARNINGS),
        };
        *count += 1;
        if *count > most {
            self.dropped = diagnostic;
            return &mut self.dropped;
        }
        self.diagnostics.push(diagnostic);
        let last = self.diagnostics.len() - 1;
        &mut self.diagnostics[last]
    }

    /// Counts work; whether to stop, because there was too much of it or of errors.
    fn stop(&mut self, span: Span, work: usize) -> bool {
        self.budget.work(work);
        if self.budget.exhausted().is_some() {
            self.spent_at.get_or_insert(span);
            return true;
        }
        self.errors >= MAX_ERRORS
    }

    fn define(&mut self, name: Name, span: Span, annotations: &[ast::Annotation], kind: DefKind) -> DefId {
        let annotations = self.annotations(annotations);
        self.hir.defs.push(Def { name, span, annotations, parent: self.parent, kind });
        DefId(self.hir.defs.len() as u32 - 1)
    }

    fn def(&self, id: DefId) -> &Def {
        self.hir.def(id)
    }

    fn unknown(span: Span) -> hir::Expr {
        hir::Expr { ty: Type::Unknown, kind: hir::ExprKind::DontCare, span }
    }
}

/// The value of `@name("...")`, if there is one.
pub fn name_annotation(annotations: &[ast::Annotation]) -> Option<Name> {
    annotations::string_annotation(annotations, "name").map(Arc::from)
}
