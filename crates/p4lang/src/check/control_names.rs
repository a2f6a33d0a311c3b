//! Names of actions in the control plane: no two may be the same (P4_16 section 20.3.3).

use std::collections::HashMap;

use super::name_annotation;
use crate::diag::Diagnostic;
use crate::hir::{Def, DefKind, Hir};
use crate::source::Span;

pub(super) fn check(hir: &Hir, diagnostics: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<String, Span> = HashMap::new();
    for def in hir.top.iter().map(|id| hir.def(*id)) {
        match &def.kind {
            DefKind::Action(_) => one(full_name(def, None), def, &mut seen, diagnostics),
            DefKind::Control(control) => {
                for local in control.locals.iter().map(|id| hir.def(*id)) {
                    if let DefKind::Action(_) = local.kind {
                        one(full_name(local, Some(&def.name)), local, &mut seen, diagnostics);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Below its control, unless the name begins with a dot.
fn full_name(action: &Def, control: Option<&str>) -> String {
    let given = name_annotation(&action.annotations).unwrap_or_else(|| action.name.clone());
    match (given.strip_prefix('.'), control) {
        (Some(complete), _) => complete.to_owned(),
        (None, Some(control)) => format!("{control}.{given}"),
        (None, None) => given.to_string(),
    }
}

fn one(name: String, action: &Def, seen: &mut HashMap<String, Span>, diagnostics: &mut Vec<Diagnostic>) {
    let message = format!("a second action is called `{name}` in the control plane");
    if let Some(first) = seen.insert(name, action.span) {
        diagnostics.push(
            Diagnostic::error("duplicate", action.span, message)
                .related(first, "the first one")
                .help("give one of them another `@name`"),
        );
    }
}
