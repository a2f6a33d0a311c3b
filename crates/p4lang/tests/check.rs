//! What the checker accepts, and what it rejects and where.

use p4lang::{Options, check::check, parse_str};

fn findings(text: &str) -> Vec<(String, u32, &'static str)> {
    let (sources, program, diagnostics) = parse_str("t.p4", text, None, &Options::default());
    let program = program.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let (_, diagnostics) = check(&program);
    diagnostics.into_iter().map(|d| (d.message.clone(), sources.line_column(d.span).0, d.code)).collect()
}

#[test]
fn a_whole_program() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/router.p4")).unwrap();
    assert_eq!(findings(&text), []);
}
