//! Time to compile and load a program of 500 lines: front end, lowering, native code, state.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use dataplane::pipeline::Pipeline;

use crate::Figure;

/// The router with tables added until it has 500 lines.
fn source() -> String {
    let router = include_str!("../../../../examples/p4/ipv4_router/ipv4_router.p4");
    let (before, after) = router.split_once("    table routes {").expect("the router has its table");
    let (body, rest) = after.split_once("            routes.apply();").expect("the table is applied");
    let mut tables = String::new();
    let mut applies = String::new();
    let mut lines = router.lines().count();
    for number in 0.. {
        if lines >= 500 {
            break;
        }
        let table = format!(
            "    action set_{number}(bit<9> port, bit<16> id) {{\n\
             \x20       standard_metadata.egress_spec = port;\n\
             \x20       hdr.ipv4.identification = id + (bit<16>) hdr.ipv4.dscp_ecn;\n\
             \x20       hdr.ipv4.ttl = hdr.ipv4.ttl |-| {number};\n    }}\n\
             \x20   table extra_{number} {{\n\
             \x20       key = {{ hdr.ipv4.src : exact; hdr.ipv4.protocol : ternary; }}\n\
             \x20       actions = {{ set_{number}; drop; NoAction; }}\n\
             \x20       default_action = NoAction();\n    }}\n"
        );
        lines += table.lines().count() + 1;
        tables.push_str(&table);
        writeln!(applies, "            extra_{number}.apply();").expect("writing to a string cannot fail");
    }
    format!("{before}{tables}    table routes {{{body}{applies}            routes.apply();{rest}")
}

pub fn measure(figures: &mut Vec<Figure>) {
    let text = source();
    let lines = text.lines().count();
    assert!((500..600).contains(&lines), "the program has {lines} lines");
    let (mut whole, mut native) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..5 {
        let start = Instant::now();
        let compiled = p4lang::compile_str("long.p4", &text, None, &p4lang::Options::default());
        let program = Arc::new(compiled.program.expect("the program compiles"));
        let lowered = Instant::now();
        let pipeline = Pipeline::compiled(program, 1).expect("the program becomes native code");
        whole = whole.min(start.elapsed().as_secs_f64() * 1e3);
        native = native.min(lowered.elapsed().as_secs_f64() * 1e3);
        drop(pipeline);
    }
    figures.push(Figure { name: "500 lines, native code alone", value: native, unit: "ms", goal: None });
    figures.push(Figure {
        name: "500 lines, compile and load",
        value: whole,
        unit: "ms",
        goal: Some(("at most", 100.0)),
    });
}
