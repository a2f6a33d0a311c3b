//! Tail loss probes, and what follows them.

use transport::segment::Segment;
use units::Time;

use super::{MSS, Pair, everything, plain};

/// Data of the first side from the n-th on is lost.
fn from(n: usize) -> impl FnMut(usize, usize, &Segment) -> Option<Segment> {
    let mut sent = 0;
    move |side, _, segment| {
        sent += usize::from(side == 0 && segment.payload > 0);
        (side == 1 || segment.payload == 0 || sent <= n).then_some(*segment)
    }
}

/// Linux 6.18, 100 ms: probe 206 ms after the packets, timeout 308 ms after the probe, with a timeout of 300 ms.
#[test]
fn the_timeout_begins_anew_with_the_probe() {
    let mut pair = Pair::new(&plain(), "cubic");
    pair.ends[0].write(5_000);
    pair.run(Time::from_secs(2), from(0));
    let data = pair.data(MSS);
    assert_eq!(data[..7], [(20, 0), (20, 1), (20, 2), (20, 3), (20, 4), (62, 4), (282, 0)], "{data:?}");
}

/// Where no probe may go out, as one is on its way, what is left of the timeout since the first packet was sent follows.
#[test]
fn a_probe_that_is_held_back_does_not_put_the_timeout_off() {
    let mut pair = Pair::new(&plain(), "cubic");
    pair.ends[0].write(5_000);
    let mut pass = from(1);
    pair.run(Time::from_ms(35), &mut pass);
    // The first packet's ACK comes after the probe.
    pair.wires[1][0].0 = Time::from_ms(90);
    pair.run(Time::from_ms(100), &mut pass);
    assert_eq!(pair.ends[0].statistics().probes, 1);
    let rto = pair.ends[0].rto().as_ms();
    pair.run(Time::from_secs(2), pass);
    let data = pair.data(MSS);
    assert_eq!((data[5].1, data[6].1), (4, 1), "{data:?}");
    assert_eq!(data[6].0, 20 + rto, "{data:?}");
}

/// Two packets whose ACK comes so late that a probe goes out in vain. A D-SACK tells so.
fn probed_in_vain() -> Pair {
    let mut pair = Pair::new(&plain(), "cubic");
    pair.ends[0].write(2_000);
    pair.run(Time::from_ms(35), everything);
    for (at, _) in &mut pair.wires[1] {
        *at = Time::from_ms(80);
    }
    pair.run(Time::from_ms(500), everything);
    let statistics = pair.ends[0].statistics();
    assert_eq!((statistics.probes, statistics.timeouts, statistics.dsacks), (1, 0, 1));
    pair
}

/// RACK waits longer after a D-SACK only where the network has reordered, and not for a probe's (`tcp_dsack_seen`).
#[test]
fn a_probe_in_vain_is_no_reordering() {
    let mut pair = probed_in_vain();
    // An ACK that RACK goes by.
    pair.ends[0].write(1_000);
    pair.run(Time::from_ms(600), everything);
    pair.ends[0].write(3_000);
    let mut sent = 0;
    pair.run(Time::from_ms(660), |side, _, segment| {
        sent += usize::from(side == 0 && segment.payload > 0);
        (side == 1 || sent != 1).then_some(*segment)
    });
    // Two packets behind it tell of a loss after a quarter of the round trip, and 2 ms.
    assert_eq!(pair.data(MSS)[4..], [(600, 3), (600, 4), (600, 5), (627, 3)]);
    assert_eq!(pair.ends[0].statistics().fast_recoveries, 1);
}

/// A copy that arrives in vain has been delivered too; what the network doubles has not.
#[test]
fn copies_count_as_delivered() {
    let mut pair = probed_in_vain();
    assert_eq!(pair.ends[0].flow().delivered, 3);
    pair.ends[0].write(1_000);
    pair.run(Time::from_ms(505), everything);
    let doubled = pair.wires[0][0];
    pair.wires[0].push_back(doubled);
    pair.run(Time::from_secs(1), everything);
    assert_eq!(pair.ends[0].statistics().dsacks, 2);
    assert_eq!(pair.ends[0].flow().delivered, 4);
}

/// A probe's copy, and its original, are one packet in flight, and none once it is acknowledged selectively.
#[test]
fn a_probe_is_not_counted_as_in_flight() {
    let mut pair = Pair::new(&plain(), "cubic");
    pair.ends[0].write(5_000);
    let mut pass = from(3);
    pair.run(Time::from_ms(85), &mut pass);
    let flow = pair.ends[0].flow();
    assert_eq!((pair.ends[0].statistics().probes, flow.packets_out, flow.in_flight()), (1, 2, 2));
    // The next copy arrives: what is lost before it goes out again.
    pair.wires[0].clear();
    let copy = pair.logs[0].last().expect("the probe").1;
    pair.wires[0].push_back((Time::from_ms(93), copy));
    pair.run(Time::from_ms(116), everything);
    let flow = pair.ends[0].flow();
    assert_eq!((flow.packets_out, flow.sacked_out, flow.lost_out, flow.retrans_out), (2, 1, 1, 1));
    pair.run(Time::from_secs(1), everything);
    assert_eq!(pair.ends[1].bytes_received(), 5_000);
}
