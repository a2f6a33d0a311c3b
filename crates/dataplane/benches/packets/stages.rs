//! The router's blocks apart: parser, verification, tables, checksum, deparser.

use std::sync::Arc;

use dataplane::context::{Context, Requests};
use dataplane::executor::Executor;
use dataplane::jit::Jit;
use dataplane::layout::Layout;
use dataplane::pipeline::Pipeline;
use dataplane::state::State;
use p4lang::lower::v1model::V1Model;
use units::SplitMix;

use crate::{BATCH, Figure, race, setup};

pub fn measure(figures: &mut Vec<Figure>) {
    let routes = setup::routes();
    let packets = setup::packets(&routes);
    let program = setup::program("../../examples/p4/ipv4_router/ipv4_router.p4");
    let layout = Arc::new(Layout::new(&program).expect("small"));
    let jit = Jit::new(program.clone(), layout.clone()).expect("the router compiles");
    let mut pipeline = Pipeline::compiled(program.clone(), 1).expect("the router compiles");
    setup::add_routes(&mut pipeline, &routes);
    let v1 = V1Model::of(&program.package).expect("the router is for v1model");
    // The first frame, as it is after each block, is what the next one runs on again and again.
    let mut frame = layout.frame();
    let mut out = Vec::with_capacity(256);
    let mut state = pipeline.state.clone();
    let mut rng = SplitMix::new(1);
    let blocks = [
        ("router, parser", None),
        ("router, checksum verification", Some(v1.verify_checksum)),
        ("router, ingress with the table", Some(v1.ingress)),
        ("router, checksum update", Some(v1.compute_checksum)),
        ("router, deparser", Some(v1.deparser)),
    ];
    for (name, control) in blocks {
        let start = frame.clone();
        let mut step = |state: &mut State, frame: &mut [u8], at: usize| {
            out.clear();
            let mut ctx = Context {
                frame,
                packet: &packets[at % packets.len()],
                cursor: 272,
                out: &mut out,
                state,
                now: 0,
                wire_len: 64,
                work: u64::MAX,
                requests: Requests::default(),
                rng: &mut rng,
                trace: None,
            };
            match control {
                None => jit.parse(&mut ctx, v1.parser).map(|_| ()),
                Some(control) => jit.control(&mut ctx, control),
            }
            .expect("nothing is dropped");
        };
        let times = race(&mut [&mut || {
            for at in 0..BATCH {
                step(&mut state, &mut frame, at);
            }
        }]);
        figures.push(Figure { name, value: times[0], unit: "ns/packet", goal: None });
        frame.copy_from_slice(&start);
        step(&mut state, &mut frame, 0);
    }
}
