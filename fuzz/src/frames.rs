//! Any bytes as a frame: what can be read is written in one form, which is read as the same; and what the monitor sees in it has its
//! copy at another tap.

#[path = "../../crates/wire/tests/layers/mod.rs"]
mod layers;

use layers::Layers;
use monitor::{Rule, Side, Table, Taps};

pub fn frames(bytes: &[u8]) {
    let wire = bytes.len() as u32 + 100;
    let _ = wire::frame::parse(bytes, wire);
    let _ = wire::frame::options(bytes, wire);
    wire::offload::complete_partial(&mut bytes.to_vec());
    if let Ok(read) = Layers::parse(bytes)
        && read.fits()
    {
        assert_eq!(Layers::parse(&read.emit()), Ok(read));
    }
    for link_type in [1, 101, 113, 276] {
        monitored(link_type, bytes, wire);
    }
}

fn monitored(link_type: u32, bytes: &[u8], wire: u32) {
    let Ok(seen) = monitor::read(link_type, bytes, wire, 1) else { return };
    for rule in [Rule::Exact, Rule::Tshark, Rule::Tcptrace, Rule::Timestamps] {
        let mut table = Table::new(rule, 10, 1 << 20);
        assert_eq!([(); 2].map(|()| table.packet(&seen).is_some_and(|sample| sample.rtt > 0)), [false; 2]);
    }
    let mut taps = Taps::new(1000, 10, 1 << 20);
    let mark = monitor::mark(link_type, bytes, &seen);
    let mut at = |side| taps.packet(side, seen.time, &seen, &mark).map(|delay| delay.took);
    assert_eq!(
        [Side::Before, Side::Before, Side::After, Side::After].map(&mut at),
        [None, None, Some(0), Some(0)]
    );
}
