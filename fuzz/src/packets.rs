//! Any bytes as packets through a program that uses most of the language: both engines do the same.

use std::cell::RefCell;
use std::sync::Arc;

use dataplane::pipeline::Pipeline;
use p4lang::ir::Program;

/// A program with an object of each kind.
pub fn program() -> Arc<Program> {
    let source = include_str!("../../crates/dataplane/tests/data/everything.p4");
    let compiled = p4lang::compile_str("everything.p4", source, None, &p4lang::Options::default());
    Arc::new(compiled.program.expect("the program is part of the tests"))
}

thread_local! {
    static ENGINES: RefCell<[Pipeline; 2]> = {
        let program = program();
        let native = Pipeline::compiled(program.clone(), 1).expect("the program has native code");
        RefCell::new([Pipeline::interpreted(program, 1).expect("as above"), native])
    };
}

pub fn packets(bytes: &[u8]) {
    ENGINES.with_borrow_mut(|[one, other]| {
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        one.process(0, 1, bytes, &mut expected);
        other.process(0, 1, bytes, &mut found);
        assert_eq!(expected, found);
    });
}
