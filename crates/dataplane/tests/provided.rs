//! Memory of registers, counters and meters: a switch that others wait for has it before packets come; it is taken as it is used elsewhere.

use std::sync::Arc;

use control::{StateOp, Target as _};
use dataplane::pipeline::Pipeline;
use units::Time;

/// With registers, counters and meters of 8, 16 and 80 bytes a cell.
fn pipeline(cells: u32) -> Pipeline {
    let source = format!(
        "#include <v1model.p4>
        struct H {{}} struct M {{ bit<2> color; }}
        parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}
        control C(inout H h, inout M m) {{ apply {{}} }}
        control I(inout H h, inout M m, inout standard_metadata_t s) {{
            register<bit<64>>({cells}) r; counter({cells}, CounterType.packets) c; meter({cells}, MeterType.bytes) t;
            apply {{ r.write(0, 1); c.count(0); t.execute_meter(32w0, m.color); }}
        }}
        control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
        control D(packet_out p, in H h) {{ apply {{}} }}
        V1Switch(P(), C(), I(), E(), C(), D()) main;"
    );
    let compiled = p4lang::compile_str("provided.p4", &source, None, &p4lang::Options::default());
    let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
    Pipeline::interpreted(program, 1).expect("runs")
}

/// Of this process, in bytes.
fn resident() -> i64 {
    let sizes = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    4096 * sizes.split(' ').nth(1).and_then(|pages| pages.parse::<i64>().ok()).expect("a number")
}

fn grown(act: impl FnOnce()) -> i64 {
    let before = resident();
    act();
    resident() - before
}

#[test]
fn memory_is_there_before_packets_come() {
    const CELLS: u32 = 400_000;
    let all = i64::from(CELLS) * (8 + 16 + 80);
    let mut given = None;
    assert!(grown(|| given = Some(pipeline(CELLS))) < all / 4, "taken before it is used");
    let mut given = given.expect("made");
    // More than 64 MiB: packets pay for it.
    let mut large = pipeline(2 * CELLS);
    assert!(grown(|| large.provide_memory()) < all / 4);

    let provided = grown(|| given.provide_memory());
    assert!(provided > all * 9 / 10, "{provided} of {all}");
    // Nothing has come into a cell by it.
    assert!(given.state.registers.get(0).all().iter().all(|word| *word == 0));
    // What is as it was at the start has its memory, too.
    given.process(0, 1, &[0; 64], &mut Vec::new());
    let again = grown(|| {
        given.act(Time::ZERO, &StateOp::Reset {}.into()).expect("resets");
    });
    assert!(again > -all / 10, "{again} of {all}");
    assert_eq!(given.state.registers.get(0).cell(0), Some(&[0][..]));
}
