//! Programs in P4_14, the language before P4_16, told by what each of them has and no P4_16 program can have.

use crate::diag::Diagnostic;
use crate::lex::{Token, TokenKind};

/// What P4_14 declares between a word and a brace: `parser` and `control` have parameters in P4_16, the others do not exist.
const BRACED: [&str; 7] =
    ["header_type", "field_list", "field_list_calculation", "calculated_field", "parser", "control", "table"];

/// The error for a program that is P4_14, at the first place that shows it.
pub fn found(tokens: &[Token]) -> Option<Diagnostic> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth = depth.saturating_sub(1);
        } else if depth == 0 && token.kind == TokenKind::Ident && declares(&tokens[at..]) {
            let help = "the reference compiler translates it: `p4test --std p4-14 OLD.p4 --pp NEW.p4`";
            return Some(
                Diagnostic::error("p4-14", token.span, "this is P4_14, not P4_16 source").help(help),
            );
        }
    }
    None
}

/// Whether a declaration of P4_14 alone starts here.
fn declares(tokens: &[Token]) -> bool {
    let word = &*tokens[0].text;
    let name = |at: usize| tokens.get(at).is_some_and(|t| t.kind == TokenKind::Ident);
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|t| &*t.text == text);
    if matches!(word, "header" | "metadata") {
        // `header ethernet_t ethernet;`, `header vlan_t vlan[2];`
        return name(1) && name(2) && (is(3, ";") || is(3, "[") || is(3, "{") && word == "metadata");
    }
    if !BRACED.contains(&word) || !name(1) {
        return false;
    }
    let brace = tokens.iter().take(8).position(|t| t.is("{"));
    let Some(brace) =
        brace.filter(|brace| tokens[1..*brace].iter().all(|t| t.kind == TokenKind::Ident || t.is(".")))
    else {
        return false;
    };
    match word {
        // Without parameters by mistake, they are still P4_16: then they have what those have.
        "parser" => brace == 2 && !is(3, "state") && !is(3, "@"),
        "control" => {
            let call = |at: usize| is(at, "apply") && is(at + 1, "(");
            brace == 2
                && (call(3) || is(3, "if") || is(3, "}") && matches!(&*tokens[1].text, "ingress" | "egress"))
        }
        "table" => brace == 2 && (is(3, "reads") || is(3, "actions")) && is(4, "{"),
        _ => true,
    }
}
