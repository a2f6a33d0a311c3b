//! Warnings about what is legal but suspicious: parser states that nothing reaches.

use crate::diag::Diagnostic;
use crate::hir::{DefKind, Hir, ParserDef, StateRef, Transition};

pub(super) fn warn(hir: &Hir, diagnostics: &mut Vec<Diagnostic>) {
    for def in &hir.defs {
        if let DefKind::Parser(parser) = &def.kind {
            unreachable_states(parser, diagnostics);
        }
    }
}

fn unreachable_states(parser: &ParserDef, diagnostics: &mut Vec<Diagnostic>) {
    let mut reached = vec![false; parser.states.len()];
    let mut todo = vec![StateRef::State(parser.start)];
    while let Some(state) = todo.pop() {
        let StateRef::State(index) = state else { continue };
        let Some(state) = parser.states.get(index) else { continue };
        if std::mem::replace(&mut reached[index], true) {
            continue;
        }
        match &state.transition {
            Transition::Direct(next) => todo.push(*next),
            Transition::Select { cases, .. } => todo.extend(cases.iter().map(|(_, next)| *next)),
        }
    }
    for (state, reached) in parser.states.iter().zip(reached) {
        if !reached {
            diagnostics.push(
                Diagnostic::warning(
                    "unreachable",
                    state.span,
                    format!("no transition leads to state `{}`", state.name),
                )
                .help("remove it, or add a transition to it"),
            );
        }
    }
}
