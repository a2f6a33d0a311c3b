//! Packets that spend all of their work budget, on what takes longest for its price: how long each keeps the data plane.
//!
//! The interpreter has the budget that it has where there is no native code. The first packet also pays for the memory that the
//! system provides when it is touched. `--each` shows each of them.

use dataplane::pipeline::{Pipeline, WORK_BUDGET};
use p4lang::ir::EntryMatch;

use crate::{Figure, cpu_ns, setup};

/// No packet may keep the data plane for longer.
const MOST_MS: f64 = 10.0;

/// Packets after the first; the quickest counts.
const ROUNDS: usize = 5;

/// Of the work budget, what the interpreter has: see `Pipeline::new`.
const INTERPRETED: u64 = WORK_BUDGET / 32;

/// The next index of a walk that no cache foresees.
const NEXT: &str = "m.i = (m.i ^ (bit<32>)m.v) * 1664525 + 1013904223;";

/// Name, members of the metadata, declarations, statements of an endless loop.
const DEAREST: [(&str, &str, &str, &str); 16] = [
    ("additions", "", "", "m.n = m.n + m.i;"),
    ("divisions", "", "", "m.v = m.v / ((bit<64>)m.n | 3) + 0x7fffffffffffffff;"),
    ("wide products", "bit<4096> w;", "", "m.w = m.w * m.w + 3;"),
    ("wide remainders", "bit<4096> w; bit<4096> d;", "", "m.d = m.d | 5; m.w = (m.w - 1) % m.d;"),
    ("wide shifts", "bit<4096> w;", "", "m.w = (m.w << (bit<16>)m.n) + 1;"),
    ("hashes", "bit<8192> w;", "", "hash(m.n, HashAlgorithm.crc32, 32w0, { m.w }, 32w1000);"),
    ("hashes of little", "", "", "hash(m.n, HashAlgorithm.crc16, 32w0, { m.n }, 32w1000);"),
    ("random numbers", "", "", "random(m.n, 0, 1000000);"),
    ("registers that are read", "", "register<bit<64>>(1 << 26) r;", "r.read(m.v, m.i >> 6); NEXT"),
    ("registers that are written", "", "register<bit<64>>(1 << 26) r;", "r.write(m.i >> 6, m.v + 1); NEXT"),
    ("counters", "", "counter(1 << 25, CounterType.bytes) c;", "c.count(m.i >> 7); NEXT"),
    ("meters", "", "meter(1 << 23, MeterType.bytes) t;", "t.execute_meter(m.i >> 9, m.n); NEXT"),
    (
        "lookups",
        "",
        "action a(bit<32> x) { m.n = x; } table t { key = { m.i: exact; } actions = { a; } size = 100000; default_action = a(1); }",
        "t.apply(); m.i = (m.i * 1664525 + 1013904223) & 0x1ffff;",
    ),
    (
        "lookups of prefixes",
        "bit<64> u;",
        "action a(bit<32> x) { m.n = x; } table t { key = { m.v: lpm; m.u: exact; } actions = { a; } size = 100000; default_action = a(1); }",
        "t.apply(); m.v = m.v * 0x5851f42d4c957f2d + 1442695040888963407;",
    ),
    (
        "lookups by length",
        "bit<256> w;",
        "action a(bit<32> x) { m.n = x; } table t { key = { m.v: lpm; m.w: exact; } actions = { a; } size = 100000; default_action = a(1); }",
        "t.apply(); m.v = m.v * 0x5851f42d4c957f2d + 1442695040888963407;",
    ),
    (
        "lookups by mask",
        "",
        "action a(bit<32> x) { m.n = x; } table t { key = { m.i: ternary; } actions = { a; } size = 100000; default_action = a(1); }",
        "t.apply(); NEXT",
    ),
];

/// Writes of a pass in each of its halves, a page each: as many as the first pass has without paying for their memory.
const WRITES: usize = 150;

/// A loop without an end.
fn endless(metadata: &str, declarations: &str, body: &str) -> String {
    let body = format!("for (bit<32> at in 0..0xffffffff) {{ {body} }}");
    text(metadata, (declarations, &format!("m.i = (bit<32>)s.ingress_global_timestamp; {body}")), ("", ""))
}

/// As many passes as a packet may make, each of which writes where none has written.
fn passes() -> String {
    let writes = "r.write(m.i >> 7, m.v + 1); NEXT".repeat(WRITES);
    let register = "register<bit<64>>(1 << 25) r;";
    let ingress =
        format!("if (s.instance_type == 0) {{ m.i = (bit<32>)s.ingress_global_timestamp; }} {writes}");
    let egress = format!("{writes} recirculate_preserving_field_list(1);");
    text("", (register, &ingress), (register, &egress))
}

/// Of ingress and egress: declarations, and statements.
fn text(metadata: &str, ingress: (&str, &str), egress: (&str, &str)) -> String {
    let [ingress, egress] = [ingress, egress]
        .map(|(declared, body)| format!("{declared} apply {{ {} }}", body.replace("NEXT", NEXT)));
    format!(
        "#include <v1model.p4>
        struct H {{}} struct M {{ bit<32> n; @field_list(1) bit<32> i; bit<64> v; {metadata} }}
        parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}
        control V(inout H h, inout M m) {{ apply {{}} }}
        control I(inout H h, inout M m, inout standard_metadata_t s) {{ {ingress} }}
        control E(inout H h, inout M m, inout standard_metadata_t s) {{ {egress} }}
        control D(packet_out p, in H h) {{ apply {{}} }}
        V1Switch(P(), V(), I(), E(), V(), D()) main;"
    )
}

/// Entries of the tables, if the program has one.
fn fill(pipeline: &mut Pipeline, name: &str) {
    for number in 0..100_000u32 {
        let matched = match name {
            "lookups" => vec![EntryMatch::Exact(number.into())],
            "lookups of prefixes" | "lookups by length" => {
                // Of all lengths, most of them of 20 bits and more.
                let prefix_len = if number < 64 { 64 - number } else { 20 + number % 45 };
                let value = u64::from(number).reverse_bits() >> (64 - prefix_len) << (64 - prefix_len);
                vec![EntryMatch::Lpm { value: value.into(), prefix_len }, EntryMatch::Exact(0u8.into())]
            }
            "lookups by mask" => {
                let mask = number.reverse_bits() | 1;
                vec![EntryMatch::Ternary { value: (number & mask).into(), mask: mask.into() }]
            }
            _ => return,
        };
        setup::add(pipeline, "t", matched, "a", &[u64::from(number)]);
    }
}

/// Milliseconds of the first packet, and of the quickest of the next.
fn times(pipeline: &mut Pipeline) -> (f64, f64) {
    let mut outputs = Vec::new();
    let mut one = |number: usize| {
        let start = cpu_ns();
        pipeline.process(number as u64 * 1_000_000_007, 0, &[0; 64], &mut outputs);
        (cpu_ns() - start) / 1e6
    };
    let first = one(1);
    let next = (2..2 + ROUNDS).map(&mut one).fold(f64::INFINITY, f64::min);
    assert!(outputs.is_empty(), "it is dropped");
    (first, next)
}

pub fn measure(figures: &mut Vec<Figure>) {
    let mut most = [0.0f64; 2];
    let of_all = std::env::args().any(|argument| argument == "--each");
    let loops =
        DEAREST.map(|(name, metadata, declarations, body)| (name, endless(metadata, declarations, body)));
    for (name, text) in loops.into_iter().chain([("passes that write new pages", passes())]) {
        let program = setup::program_text(&text);
        let native = Pipeline::compiled(program.clone(), 1).expect("it has native code");
        let mut interpreted = Pipeline::interpreted(program, 1).expect("it runs");
        interpreted.set_work_budget(INTERPRETED);
        for (pipeline, most) in [native, interpreted].iter_mut().zip(&mut most) {
            fill(pipeline, name);
            let (first, next) = times(pipeline);
            *most = most.max(first).max(next);
            if of_all {
                println!("{name:<44} {first:>10.2} ms first, {next:.2} ms then");
            }
        }
    }
    for (name, value) in [("dearest packet, native code", most[0]), ("dearest packet, interpreter", most[1])]
    {
        figures.push(Figure { name, value, unit: "ms", goal: Some(("at most", MOST_MS)) });
    }
}
