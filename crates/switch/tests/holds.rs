//! What one packet does to a switch while others wait: it is counted, and takes time in proportion.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dataplane::replication::Session;
use p4lang::{Options, compile_str};
use switch::{Config, PortConfig, QueueLimit, Switch};
use units::Time;

const CPU: u32 = 100;

/// A switch with one port and one for the controller, whose program has these controls for ingress and egress.
fn switch(ingress: &str, declared: &str, egress: &str) -> Switch {
    let source = format!(
        "#include <v1model.p4>
        struct H {{}} struct M {{ bit<32> i; }}
        parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}
        control C(inout H h, inout M m) {{ apply {{}} }}
        control I(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{ {ingress} }} }}
        control E(inout H h, inout M m, inout standard_metadata_t s) {{ {declared} apply {{ {egress} }} }}
        control D(packet_out p, in H h) {{ apply {{}} }}
        V1Switch(P(), C(), I(), E(), C(), D()) main;"
    );
    let compiled = compile_str("holds.p4", &source, None, &Options::default());
    let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
    let queue = QueueLimit { packets: Some(1000), bytes: None };
    let ports = vec![Some(PortConfig::new(vec![queue]))];
    Switch::new(program, &Config { ports, cpu_port: Some(CPU), ..Config::default() }).unwrap()
}

/// Eight times as many take eight times as long, and not half as long again, as when each one moves those behind it.
///
/// The two are timed in turns, until the least of each agree, as a machine with other work may be slow for a while.
#[test]
fn copies_for_the_controller_take_time_in_proportion_to_their_number() {
    let mut switches = [500, 4000].map(|count: u32| {
        let mut switch = switch("clone(CloneType.I2E, 5); mark_to_drop(s);", "", "");
        let copies: Vec<_> = (0..count).map(|rid| (rid, CPU)).collect();
        switch.pipeline().replication.set_session(5, Session { copies, ..Session::default() });
        (switch, count as usize, Duration::MAX)
    });
    let began = Instant::now();
    loop {
        for (switch, count, least) in &mut switches {
            for _ in 0..10 {
                let began = Instant::now();
                switch.receive(Time::ZERO, 0, &[7; 64], 0);
                *least = began.elapsed().min(*least);
                let taken = std::iter::from_fn(|| switch.take_packet_in()).count();
                assert_eq!(taken, *count);
            }
        }
        let [few, many] = [&switches[0].2, &switches[1].2];
        if *many < 10 * *few {
            break;
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{many:?} for eight times as many as take {few:?}"
        );
    }
}

/// Memory that packets touch first counts for the port in egress, too.
#[test]
fn packets_that_touch_new_memory_and_are_dropped_in_egress_hold_their_port_back() {
    let touches = "m.i = m.i + 600; x.write(m.i, 7); ".repeat(140);
    for (size, turns) in [(1 << 22, 1), (1 << 24, 4)] {
        let declared = format!("register<bit<64>>({size}) x;");
        let mut switch = switch("s.egress_spec = 0;", &declared, &format!("{touches} mark_to_drop(s);"));
        for _ in 0..100 {
            switch.receive(Time::ZERO, 0, &[7; 64], 0);
        }
        let (mut now, mut asked) = (Time::ZERO, 0);
        while let Some(at) = switch.next_transmit(0) {
            now = now.max(at);
            assert!(switch.transmit(now, 0).is_none());
            asked += 1;
        }
        assert_eq!(asked, turns, "{size} cells");
        assert_eq!(switch.statistics().dropped.iter().map(|(_, count)| count).sum::<u64>(), 100);
    }
}
