//! The native path allocates nothing for a packet once its buffers have been made.

#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use dataplane::pipeline::{Output, Pipeline};
use p4lang::ir::EntryMatch;

thread_local! {
    /// Allocations of this thread.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn pipeline(path: &str) -> Pipeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let compiled = p4lang::compile_file(&path, &p4lang::Options::default()).expect("readable");
    Pipeline::compiled(Arc::new(compiled.program.expect("compiles")), 1).expect("becomes native code")
}

fn frame(dst: u32, ttl: u8) -> Vec<u8> {
    let mut bytes = vec![0u8; 64];
    bytes[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 1, 0, 0, ttl, 17]);
    bytes[30..34].copy_from_slice(&dst.to_be_bytes());
    let sum = dataplane::hash::csum16(&bytes[14..34]) as u16;
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Allocations that a thousand packets make after a first hundred; the number of packets that left.
fn count(pipeline: &mut Pipeline, frames: &[Vec<u8>]) -> (u64, usize) {
    let mut outputs: Vec<Output> = Vec::new();
    let mut sent = 0;
    let mut before = 0;
    for round in 0..1100 {
        if round == 100 {
            before = COUNT.with(Cell::get);
            sent = 0;
        }
        pipeline.process(round as u64 * 1_000_000, 1, &frames[round % frames.len()], &mut outputs);
        for output in outputs.drain(..) {
            sent += 1;
            pipeline.recycle(output.bytes);
        }
    }
    (COUNT.with(Cell::get) - before, sent)
}

#[test]
fn a_router_allocates_nothing() {
    let mut p = pipeline("../../examples/p4/ipv4_router/ipv4_router.p4");
    let table = p.table_id("routes").unwrap();
    let action = p.action_index(table, "next_hop").unwrap();
    for (prefix, length) in [(0x0a00_0000u32, 8), (0x0a01_0000, 16), (0x0a01_0200, 24)] {
        let target = p.action_target(table, action, &[2u8.into(), 1u8.into(), 2u8.into()]).unwrap();
        p.table_add(table, vec![EntryMatch::Lpm { value: prefix.into(), prefix_len: length }], 0, target)
            .unwrap();
    }
    // Forwarded, forwarded, dropped for want of a route, dropped for its TTL, too short for a header.
    let frames = [
        frame(0x0a01_0203, 64),
        frame(0x0aff_0000, 9),
        frame(0x0b00_0000, 64),
        frame(0x0a01_0203, 1),
        vec![8; 20],
    ];
    assert_eq!(count(&mut p, &frames), (0, 400));
}

#[test]
fn registers_and_counters_allocate_nothing() {
    let mut p = pipeline("benches/data/three_registers.p4");
    assert_eq!(count(&mut p, &[frame(1, 64), frame(2, 63)]), (0, 1000));
    let mut p = pipeline("../../examples/p4/firewall/firewall.p4");
    let (allocations, _) = count(&mut p, &[frame(1, 64), frame(2, 63)]);
    assert_eq!(allocations, 0);
    let mut p = pipeline("../../examples/p4/ecn_marker/ecn_marker.p4");
    let (allocations, sent) = count(&mut p, &[frame(1, 64), frame(2, 63)]);
    assert_eq!((allocations, sent), (0, 1000));
}
