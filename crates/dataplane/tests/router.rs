//! A whole program from source to packets.

use std::sync::Arc;

use dataplane::pipeline::{Output, Pipeline};
use p4lang::ir::EntryMatch;

fn router() -> Pipeline {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../p4lang/tests/data/router.p4");
    let compiled = p4lang::compile_file(path.as_ref(), &p4lang::Options::default()).unwrap();
    Pipeline::interpreted(Arc::new(compiled.program.expect("compiles")), 1).unwrap()
}

fn packet() -> Vec<u8> {
    let mut bytes = vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 8, 0];
    bytes.extend([0x45, 0, 0, 0x1c, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 1, 2, 3]);
    let sum = dataplane::hash::csum16(&bytes[14..]) as u16;
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes.extend([1, 2, 3, 4]);
    bytes
}

fn add_route(p: &mut Pipeline, value: u32, len: u32, port: u32) -> control::Result<u32> {
    let table = p.table_id("lpm")?;
    let action = p.action_index(table, "fwd")?;
    let target = p.action_target(table, action, &[port.into(), 0xaabb_ccdd_eeffu64.into()])?;
    p.table_add(table, vec![EntryMatch::Lpm { value: value.into(), prefix_len: len }], 0, target)
}

#[test]
fn longest_prefix_wins_and_the_header_is_rewritten() {
    let mut p = router();
    add_route(&mut p, 0x0a00_0000, 8, 1).unwrap();
    add_route(&mut p, 0x0a01_0000, 16, 2).unwrap();
    let mut out = Vec::new();
    let trace = p.process_traced(0, 3, &packet(), &mut out);
    assert_eq!(out.len(), 1, "{trace}");
    assert_eq!(out[0].port, 2);
    assert_eq!(out[0].bytes[..12], [0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0, 1, 2, 3, 4, 5]);
    assert_eq!(out[0].bytes[22], 63);
    assert_eq!(dataplane::hash::csum16(&out[0].bytes[14..34]), 0);
    assert_eq!(out[0].bytes[34..], [1, 2, 3, 4]);
}

#[test]
fn a_miss_drops() {
    let mut p = router();
    let mut out: Vec<Output> = Vec::new();
    p.process(0, 3, &packet(), &mut out);
    assert!(out.is_empty());
    assert_eq!(p.drops().values().sum::<u64>(), 1);
}

#[test]
fn bad_entries_are_refused_with_the_reason() {
    let mut p = router();
    add_route(&mut p, 0x0a00_0000, 8, 1).unwrap();
    for (value, len, port, why) in [
        (0x0a00_0000, 8, 1, "already"),
        (0x0a00_0001, 8, 1, "beyond the prefix"),
        (0x0b00_0000, 33, 1, "more than the 32 bits"),
        (0x0b00_0000, 8, 512, "does not fit in the 9 bits"),
    ] {
        let error = add_route(&mut p, value, len, port).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let table = p.table_id("I.lpm").unwrap();
    assert_eq!(p.state.tables[table.index()].len(), 1);
    assert!(p.table_id("nope").unwrap_err().to_string().contains("`I.lpm`"));
}
