//! Parser states: those that nothing reaches get a warning; a parser that never ends is an error.

use crate::diag::Diagnostic;
use crate::hir::{DefKind, Hir, KeysetElem, ParserDef, StateRef, Transition};
use crate::source::Span;

pub(super) fn check(hir: &Hir, diagnostics: &mut Vec<Diagnostic>) {
    for def in &hir.defs {
        if let DefKind::Parser(parser) = &def.kind {
            states(def.span, parser, diagnostics);
        }
    }
}

fn states(span: Span, parser: &ParserDef, diagnostics: &mut Vec<Diagnostic>) {
    let mut reached = vec![false; parser.states.len()];
    let mut ends = parser.states.is_empty();
    let mut todo = vec![StateRef::State(parser.start)];
    while let Some(state) = todo.pop() {
        let StateRef::State(index) = state else {
            ends = true;
            continue;
        };
        let Some(state) = parser.states.get(index) else { continue };
        if std::mem::replace(&mut reached[index], true) {
            continue;
        }
        match &state.transition {
            Transition::Direct(next) => todo.push(*next),
            Transition::Select { cases, .. } => {
                todo.extend(cases.iter().map(|(_, next)| *next));
                // What no case takes is rejected.
                ends |= !cases.iter().any(|(set, _)| set.elems.iter().all(|e| matches!(e, KeysetElem::Any)));
            }
        }
    }
    if !ends {
        diagnostics.push(
            Diagnostic::error("bad-state", span, "this parser reaches neither `accept` nor `reject`")
                .help("add a transition to one of them"),
        );
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
