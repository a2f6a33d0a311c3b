//! Programs, routes and packets of the benchmarks.

use std::path::Path;
use std::sync::Arc;

use dataplane::hash::csum16;
use dataplane::pipeline::Pipeline;
use p4lang::ir::{EntryMatch, Program};
use units::SplitMix;

/// A route: prefix, length, port, addresses of the next hop.
#[derive(Clone, Copy)]
pub struct Route {
    pub prefix: u32,
    pub length: u32,
    pub port: u32,
    pub src: u64,
    pub dst: u64,
}

/// Compiles a program named by its path from the crate.
pub fn program(path: &str) -> Arc<Program> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let compiled = p4lang::compile_file(&path, &p4lang::Options::default()).expect("the program is readable");
    Arc::new(compiled.program.expect("the program compiles"))
}

pub fn program_text(text: &str) -> Arc<Program> {
    let compiled = p4lang::compile_str("bench.p4", text, None, &p4lang::Options::default());
    Arc::new(compiled.program.expect("the program compiles"))
}

/// 1000 routes with the lengths of a routing table: mostly 24 bits, some shorter, few longer.
pub fn routes() -> Vec<Route> {
    let mut rng = SplitMix::new(1);
    let mut routes: Vec<Route> = Vec::new();
    while routes.len() < 1000 {
        let length = match rng.next_u64() % 100 {
            0..60 => 24,
            60..75 => 16 + (rng.next_u64() % 8) as u32,
            75..90 => 20 + (rng.next_u64() % 4) as u32,
            90..97 => 8 + (rng.next_u64() % 8) as u32,
            _ => 32,
        };
        let prefix = (rng.next_u64() as u32) & (u32::MAX << (32 - length));
        if routes.iter().any(|route| (route.prefix, route.length) == (prefix, length)) {
            continue;
        }
        let port = 1 + (rng.next_u64() % 64) as u32;
        let src = 0x0200_0000_0000 + u64::from(port);
        routes.push(Route { prefix, length, port, src, dst: 0x0400_0000_0000 + routes.len() as u64 });
    }
    routes
}

/// Adds an entry.
pub fn add(pipeline: &mut Pipeline, table: &str, matches: Vec<EntryMatch>, action: &str, args: &[u64]) {
    let table = pipeline.table_id(table).expect("the program has the table");
    let action = pipeline.action_index(table, action).expect("the table has the action");
    let args: Vec<_> = args.iter().map(|arg| (*arg).into()).collect();
    let target = pipeline.action_target(table, action, &args).expect("the data fits");
    pipeline.table_add(table, matches, 0, target).expect("the entry is new");
}

pub fn add_routes(pipeline: &mut Pipeline, routes: &[Route]) {
    for route in routes {
        let matches = vec![EntryMatch::Lpm { value: route.prefix.into(), prefix_len: route.length }];
        add(pipeline, "routes", matches, "next_hop", &[route.port.into(), route.src, route.dst]);
    }
}

/// Makes the checksum of a frame's IPv4 header right.
pub fn set_checksum(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = csum16(&frame[14..34]) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

/// 4096 frames of 64 bytes to addresses under the routes.
pub fn packets(routes: &[Route]) -> Vec<Vec<u8>> {
    let mut rng = SplitMix::new(2);
    let packet = |_| {
        let route = routes[(rng.next_u64() % routes.len() as u64) as usize];
        let host = (rng.next_u64() as u32).checked_shr(route.length).unwrap_or(0);
        let mut bytes = vec![0u8; 64];
        bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        bytes[14..24].copy_from_slice(&[0x45, 0, 0, 50, 0, 1, 0, 0, 64, 17]);
        bytes[26..30].copy_from_slice(&(rng.next_u64() as u32).to_be_bytes());
        bytes[30..34].copy_from_slice(&(route.prefix | host).to_be_bytes());
        set_checksum(&mut bytes);
        bytes
    };
    (0..4096).map(packet).collect()
}
