//! What the state of a full table takes is what its declared size counts for, at most.

use std::sync::Arc;

use control::{EntryRef, Extras, TableOp, Target as _};
use dataplane::pipeline::Pipeline;
use dataplane::state::table::Target;
use num_bigint::BigUint;
use p4lang::ir::{EntryMatch, TableId};
use p4lang::limits::Limits;
use p4lang::source::Span;
use units::{SplitMix, Time};

mod counting;

use counting::HELD;

fn source(declared: &str, size: u32) -> String {
    format!(
        r#"
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<16> a; bit<16> b; bit<16> c; bit<16> d; bit<16> e; bit<24> v; bit<8> u; bit<32> w; bit<128> x; bit<128> y; bit<2048> z; }}
struct H {{ h_t h; }}
struct M {{}}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {{
    state start {{ p.extract(hdr.h); transition accept; }}
}}
control V(inout H hdr, inout M m) {{ apply {{}} }}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {{
    direct_counter(CounterType.packets_and_bytes) counts;
    direct_meter<bit<2>>(MeterType.bytes) rates;
    bit<2> color;
    action to(bit<9> port) {{ sm.egress_spec = port; }}
    action metered(bit<2048> z) {{ rates.read(color); hdr.h.z = z; }}
    {declared}
    apply {{ t.apply(); }}
}}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) {{ apply {{}} }}
control C(inout H hdr, inout M m) {{ apply {{}} }}
control D(packet_out p, in H hdr) {{ apply {{ p.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#
    )
    .replace("SIZE", &size.to_string())
}

/// Bytes that a table takes when it is full, and those that its declared size counts for.
fn full(
    declared: &str,
    size: u32,
    words: usize,
    matches: &mut dyn FnMut(u32) -> Vec<EntryMatch>,
) -> (i64, i64) {
    let limits = Limits::default();
    let compiled =
        p4lang::compile_str("memory.p4", &source(declared, size), None, &p4lang::Options::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let demands = p4lang::sizes::state(&program, &limits, Span::default());
    let counted = demands.iter().find(|demand| demand.kind == "table").expect("there is one").bytes;
    let before = HELD.get();
    let mut pipeline = Pipeline::interpreted(Arc::new(program), 1).expect("runs");
    let started = HELD.get();
    for number in 0..size {
        let target = Target::Action { action: 0, args: vec![1; words].into() };
        let handle =
            pipeline.table_add(TableId(0), matches(number), number % 7, target).expect("there is room");
        if declared.contains("support_timeout") {
            let extras = Extras { idle_timeout: Some(1 << 40), ..Extras::default() };
            let entry = EntryRef::Handle(handle);
            pipeline
                .act(Time::ZERO, &TableOp::Set { table: "t".into(), entry, to: None, extras }.into())
                .unwrap();
        }
    }
    assert!(started - before < 1 << 20, "an empty table takes {}", started - before);
    (HELD.get() - started, counted as i64)
}

fn wide(rng: &mut SplitMix, words: u32) -> BigUint {
    BigUint::new((0..2 * words).map(|_| rng.next_u64() as u32).collect())
}

/// Of each kind of table one whose entries take the most.
#[test]
fn a_full_table_takes_what_is_counted() {
    let mut rng = SplitMix::new(1);
    let key = |n: u32| BigUint::from(n.wrapping_mul(0x9e37_79b9));
    let short = |n: u32| BigUint::from(n & 0xffff);
    let mut wrong = Vec::new();
    let mut check =
        |keys: &str, more: &str, words: usize, matches: &mut dyn FnMut(u32) -> Vec<EntryMatch>| {
            let action = if words == 1 { "to" } else { "metered" };
            let declared =
                format!("table t {{ key = {{ {keys} }} actions = {{ {action}; }} {more} size = SIZE; }}");
            // 255 nodes for each prefix of 2048 bits.
            let sizes: &[u32] =
                if keys.starts_with("hdr.h.z: lpm") { &[1100] } else { &[1100, 4097, 20_000] };
            for &size in sizes {
                let (taken, counted) = full(&declared, size, words, matches);
                let each = |bytes: i64| bytes / i64::from(size);
                println!(
                    "{keys:<60} {size:>6} {:>6} {:>6} {:.2}",
                    each(taken),
                    each(counted),
                    taken as f64 / counted as f64
                );
                if taken > counted {
                    wrong.push(format!(
                        "{keys} with {size} entries: {} bytes each, counted {}",
                        each(taken),
                        each(counted)
                    ));
                }
            }
        };
    check("hdr.h.w: exact;", "", 1, &mut |n| vec![EntryMatch::Exact(key(n))]);
    check("hdr.h.x: exact; hdr.h.a: exact;", "", 1, &mut |n| {
        vec![EntryMatch::Exact(wide(&mut rng, 2)), EntryMatch::Exact(short(n))]
    });
    check("hdr.h.z: exact;", "", 1, &mut |_| vec![EntryMatch::Exact(wide(&mut rng, 32))]);
    let counted = "counters = counts; meters = rates; support_timeout = true; default_action = metered(0);";
    check("hdr.h.w: exact;", counted, 32, &mut |n| vec![EntryMatch::Exact(key(n))]);
    check("hdr.h.w: lpm;", "", 1, &mut |n| vec![EntryMatch::Lpm { value: key(n), prefix_len: 32 }]);
    // In each of many nodes one prefix more, and then the next.
    check("hdr.h.v: lpm;", "", 1, &mut |n| {
        let value = (n % 313) << 8 | (n / 313 * 4);
        vec![EntryMatch::Lpm { value: value.into(), prefix_len: 24 }]
    });
    check("hdr.h.a: lpm;", "", 1, &mut |n| vec![EntryMatch::Lpm { value: short(n), prefix_len: 16 }]);
    check("hdr.h.x: lpm;", "", 1, &mut |_| {
        vec![EntryMatch::Lpm { value: wide(&mut rng, 2), prefix_len: 128 }]
    });
    check("hdr.h.z: lpm;", "", 1, &mut |_| {
        vec![EntryMatch::Lpm { value: wide(&mut rng, 32), prefix_len: 2048 }]
    });
    check("hdr.h.a: exact; hdr.h.x: lpm;", "", 1, &mut |n| {
        vec![EntryMatch::Exact(short(n)), EntryMatch::Lpm { value: wide(&mut rng, 2), prefix_len: 128 }]
    });
    check("hdr.h.w: exact; hdr.h.a: lpm;", "", 1, &mut |n| {
        vec![EntryMatch::Exact(key(n)), EntryMatch::Lpm { value: short(n), prefix_len: 16 }]
    });
    // Too long for a trie.
    check("hdr.h.y: exact; hdr.h.x: lpm;", "", 1, &mut |_| {
        let [x, y] = [0, 1].map(|_| wide(&mut rng, 2));
        vec![EntryMatch::Exact(y), EntryMatch::Lpm { value: x, prefix_len: 128 }]
    });
    check("hdr.h.w: ternary;", "", 1, &mut |n| {
        vec![EntryMatch::Ternary { value: key(n), mask: 0xffff_ffffu32.into() }]
    });
    check("hdr.h.w: ternary; hdr.h.a: exact;", "", 1, &mut |n| {
        vec![EntryMatch::Ternary { value: key(n), mask: key(n) }, EntryMatch::Exact(short(n))]
    });
    check("hdr.h.x: ternary; hdr.h.y: ternary;", "", 1, &mut |_| {
        let [x, y] = [0, 1].map(|_| wide(&mut rng, 2));
        vec![
            EntryMatch::Ternary { value: x.clone(), mask: x },
            EntryMatch::Ternary { value: y.clone(), mask: y },
        ]
    });
    check("hdr.h.w: optional; hdr.h.a: optional;", "", 1, &mut |n| {
        vec![EntryMatch::Optional(Some(key(n))), EntryMatch::Optional(Some(short(n)))]
    });
    let across = |n: u32| {
        // On both sides of the middle, so that two blocks cover it.
        EntryMatch::Range { lo: (0x7fff - n % 0x7f00).into(), hi: (0x8000 + n / 3 % 0x7f00).into() }
    };
    check("hdr.h.a: range;", "", 1, &mut |n| vec![across(n)]);
    check("hdr.h.a: range; hdr.h.b: range; hdr.h.c: range; hdr.h.d: range;", "", 1, &mut |n| {
        vec![across(n), across(n + 1), across(n + 2), across(n + 3)]
    });
    check(
        "hdr.h.a: range; hdr.h.b: range; hdr.h.c: range; hdr.h.d: range; hdr.h.e: range;",
        "",
        1,
        &mut |n| (0..5).map(|more| across(n + more)).collect(),
    );
    check("hdr.h.x: range; hdr.h.y: range;", "", 1, &mut |n| {
        let top = BigUint::from(1u8) << 127u8;
        let across = || EntryMatch::Range { lo: &top - n - 1u8, hi: &top + n };
        vec![across(), across()]
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
