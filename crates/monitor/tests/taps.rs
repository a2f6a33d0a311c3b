//! Copies of packets at two taps: which are paired, what counts as lost, and what cannot be told.

use monitor::{Delay, Passage, Side, Taps, mark, read};
use proptest::prelude::*;

const RAW_IP: u32 = 101;
const MS: u64 = 1_000_000;
const PATIENCE: u64 = 100 * MS;
const BEGIN: u64 = 1_700_000_000_000_000_000;

/// What differs between packets of a test; all are of one flow, or of its other direction.
#[derive(Debug, Clone, Copy)]
struct Spec {
    back: bool,
    id: u16,
    seq: u32,
    stamp: u32,
    payload: u16,
}

const FIRST: Spec = Spec { back: false, id: 1, seq: 1000, stamp: 7, payload: 100 };

fn addressed(spec: Spec, protocol: u8, ttl: u8, total: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend(spec.id.to_be_bytes());
    packet.extend([0x40, 0, ttl, protocol, 0, 0]);
    let ends: [u8; 2] = if spec.back { [2, 1] } else { [1, 2] };
    ends.iter().for_each(|end| packet.extend([10, 0, 0, *end]));
    ends.iter().for_each(|end| packet.extend([0, *end]));
    packet
}

fn tcp(spec: Spec, ttl: u8) -> Vec<u8> {
    let mut packet = addressed(spec, 6, ttl, 52 + spec.payload);
    packet.extend(spec.seq.to_be_bytes());
    packet.extend([0, 0, 0, 9, 0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
    packet.extend(spec.stamp.to_be_bytes());
    packet.extend([0; 4]);
    packet
}

fn udp(spec: Spec, ttl: u8) -> Vec<u8> {
    let mut packet = addressed(spec, 17, ttl, 28 + spec.payload);
    packet.extend((8 + spec.payload).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(spec.seq.to_be_bytes());
    packet.resize(usize::from(28 + spec.payload), 0);
    packet
}

struct Router {
    taps: Taps,
    kind: fn(Spec, u8) -> Vec<u8>,
}

impl Router {
    fn new(kind: fn(Spec, u8) -> Vec<u8>) -> Router {
        Router { taps: Taps::new(PATIENCE, 10, 1 << 20), kind }
    }

    fn see(&mut self, ms: f64, side: Side, spec: Spec, ttl: u8) -> Option<f64> {
        let bytes = (self.kind)(spec, ttl);
        self.bytes(ms, side, &bytes).map(|delay| delay.took as f64 / MS as f64)
    }

    fn bytes(&mut self, ms: f64, side: Side, bytes: &[u8]) -> Option<Delay> {
        let seen = read(RAW_IP, bytes, bytes.len() as u32, BEGIN + (ms * 1e6) as u64).expect("a packet");
        self.taps.packet(side, seen.time, &seen, &mark(RAW_IP, bytes, &seen))
    }

    /// Both taps have begun.
    fn begun(kind: fn(Spec, u8) -> Vec<u8>) -> Router {
        let mut router = Router::new(kind);
        router.comes(0.0, numbered(99));
        router.goes(0.0, numbered(99));
        router
    }

    /// A packet at the first tap.
    fn comes(&mut self, ms: f64, spec: Spec) -> Option<f64> {
        self.see(ms, if spec.back { Side::After } else { Side::Before }, spec, 64)
    }

    /// A packet at the second.
    fn goes(&mut self, ms: f64, spec: Spec) -> Option<f64> {
        self.see(ms, if spec.back { Side::Before } else { Side::After }, spec, 63)
    }

    fn passage(&self, spec: Spec) -> &Passage {
        let bytes = (self.kind)(spec, 64);
        let seen = read(RAW_IP, &bytes, bytes.len() as u32, 0).expect("a packet");
        let is_tcp = bytes[9] == 6;
        self.taps.from_to(seen.from, seen.to, is_tcp).expect("a flow")
    }
}

const BACK: Spec = Spec { back: true, ..FIRST };

fn numbered(number: u16) -> Spec {
    Spec { id: number, seq: 1000 + 100 * u32::from(number), ..FIRST }
}

#[test]
fn delays_of_both_directions() {
    for kind in [tcp, udp] {
        let mut router = Router::new(kind);
        assert_eq!(router.comes(0.0, FIRST), None);
        assert_eq!(router.comes(1.0, BACK), None);
        assert_eq!(router.goes(3.0, FIRST), Some(3.0));
        assert_eq!(router.goes(6.0, BACK), Some(5.0));
        for (spec, side, took) in [(FIRST, Side::Before, 3 * MS), (BACK, Side::After, 5 * MS)] {
            let passage = router.passage(spec);
            assert_eq!((passage.first, passage.delays.least()), (Some(side), Some(took)));
            assert_eq!((passage.lost(), passage.unannounced()), (Some(0), 0));
        }
    }
}

#[test]
fn what_a_router_rewrites_does_not_matter() {
    let mut router = Router::new(tcp);
    router.comes(0.0, FIRST);
    // Type of service, time to live, both checksums.
    let mut copy = tcp(FIRST, 50);
    (copy[1], copy[10], copy[36]) = (3, 0xab, 0xcd);
    assert_eq!(router.bytes(2.0, Side::After, &copy).map(|delay| delay.took), Some(2 * MS as i64));
    let mut frame = vec![2; 12];
    frame.extend([0x81, 0, 0, 5, 8, 0]);
    frame.extend(tcp(numbered(2), 63));
    router.comes(3.0, numbered(2));
    let seen = read(1, &frame, frame.len() as u32, BEGIN + 7 * MS).expect("a packet with a tag");
    let delay = router.taps.packet(Side::After, seen.time, &seen, &mark(1, &frame, &seen)).expect("its copy");
    assert_eq!(delay.took, 4 * MS as i64);
}

/// Any one of them tells a packet from another.
#[test]
fn packets_that_differ_are_not_copies() {
    let others = [
        Spec { id: 2, ..FIRST },
        Spec { seq: 1001, ..FIRST },
        Spec { payload: 99, ..FIRST },
        Spec { back: true, ..FIRST },
    ];
    for kind in [tcp, udp] {
        for other in others {
            let mut router = Router::new(kind);
            router.comes(0.0, FIRST);
            assert_eq!(router.goes(1.0, other), None, "{other:?}");
            assert_eq!(router.goes(2.0, FIRST), Some(2.0));
        }
    }
    let mut router = Router::new(tcp);
    router.comes(0.0, FIRST);
    assert_eq!(router.goes(1.0, Spec { stamp: 8, ..FIRST }), None);
}

#[test]
fn what_is_sent_again_is_another_packet() {
    let mut router = Router::begun(tcp);
    let again = Spec { id: 2, stamp: 9, ..FIRST };
    router.comes(0.0, FIRST);
    router.comes(1.0, numbered(5));
    assert_eq!(router.goes(3.0, numbered(5)), Some(2.0));
    router.comes(30.0, again);
    // The first was lost: the time since it was sent is not the router's.
    assert_eq!(router.goes(32.0, again), Some(2.0));
    assert_eq!(router.passage(FIRST).lost(), Some(0));
    router.taps.settle();
    assert_eq!(router.passage(FIRST).lost(), Some(1));
}

#[test]
fn copies_that_look_the_same_are_paired_in_order() {
    let mut router = Router::new(tcp);
    for ms in [0.0, 1.0, 2.0] {
        router.comes(ms, FIRST);
    }
    assert_eq!(
        [10.0, 12.0, 14.0, 16.0].map(|ms| router.goes(ms, FIRST)),
        [Some(10.0), Some(11.0), Some(12.0), None]
    );
}

#[test]
fn an_identification_comes_again() {
    let mut router = Router::begun(udp);
    router.comes(0.0, FIRST);
    router.comes(1.0, numbered(2));
    router.goes(2.0, numbered(2));
    // The first is given up before its identification is used again.
    router.comes(200.0, FIRST);
    router.goes(200.0, numbered(3));
    assert_eq!(router.goes(204.0, FIRST), Some(4.0));
    assert_eq!(router.passage(FIRST).lost(), Some(1));
}

#[test]
fn packets_that_overtake_others() {
    let mut router = Router::new(tcp);
    for number in 0..4 {
        router.comes(f64::from(number), numbered(number));
    }
    let out = [2, 0, 3, 1].map(|number| router.goes(10.0 + f64::from(number), numbered(number)));
    assert_eq!(out, [Some(10.0); 4]);
    router.taps.settle();
    assert_eq!((router.passage(FIRST).lost(), router.taps.unsettled), (Some(0), 0));
}

#[test]
fn sequence_numbers_and_identifications_wrap() {
    let mut router = Router::new(tcp);
    for number in 0..100u16 {
        let spec = Spec {
            id: u16::MAX.wrapping_sub(50).wrapping_add(number),
            seq: 100u32.wrapping_mul(u32::from(number)).wrapping_sub(5000),
            ..FIRST
        };
        router.comes(f64::from(number), spec);
        assert_eq!(router.goes(f64::from(number) + 0.5, spec), Some(0.5));
    }
}

#[test]
fn loss_needs_the_other_tap_to_go_on() {
    for (goes_on, lost, unsettled) in [(99.0, 0, 1), (101.0, 1, 0)] {
        let mut router = Router::new(udp);
        router.comes(0.0, numbered(1));
        router.goes(1.0, numbered(1));
        router.comes(2.0, numbered(2));
        // Another flow shows that the second tap goes on.
        router.comes(2.0 + goes_on, BACK);
        router.taps.settle();
        assert_eq!(router.passage(FIRST).lost(), Some(lost));
        // The packet of the other flow waits as well.
        assert_eq!(router.taps.unsettled, unsettled + 1);
    }
}

#[test]
fn what_was_sent_before_the_other_tap_began_is_not_lost() {
    let mut router = Router::new(udp);
    for number in 0..10 {
        router.comes(f64::from(number), numbered(number));
    }
    for number in 8..10 {
        router.goes(20.0 + f64::from(number), numbered(number));
    }
    for number in 10..20 {
        router.comes(30.0 + f64::from(number), numbered(number));
    }
    for number in 11..20 {
        router.goes(50.0 + f64::from(number), numbered(number));
    }
    router.taps.settle();
    assert_eq!((router.passage(FIRST).lost(), router.taps.unsettled), (Some(1), 8));
}

#[test]
fn a_flow_that_passes_one_tap_alone_has_lost_nothing() {
    let mut router = Router::new(tcp);
    router.comes(0.0, FIRST);
    router.comes(500.0, BACK);
    assert_eq!((router.passage(FIRST).lost(), router.passage(FIRST).first), (None, None));
}

/// The clock of the second tap is ahead by `ahead`: packets come to it earlier than to the first, or seem to take long.
#[test]
fn clocks_that_differ() {
    for ahead in [-20.0, 20.0] {
        let mut router = Router::new(tcp);
        let mut seen: Vec<(f64, Side, Spec, u8)> = Vec::new();
        for number in 0..10 {
            let (spec, at) = (numbered(number), 100.0 + 5.0 * f64::from(number));
            let back = Spec { back: true, ..spec };
            seen.push((at, Side::Before, spec, 64));
            seen.push((at + 1.0 + f64::from(number) + ahead, Side::After, spec, 63));
            seen.push((at + ahead, Side::After, back, 64));
            seen.push((at + 1.0, Side::Before, back, 63));
        }
        seen.sort_by(|one, other| one.0.total_cmp(&other.0));
        let pairs =
            seen.into_iter().filter_map(|(ms, side, spec, ttl)| router.see(ms, side, spec, ttl)).count();
        assert_eq!(pairs, 20);
        let least = [FIRST, BACK].map(|spec| router.passage(spec).least as f64 / MS as f64);
        assert_eq!(least, [1.0 + ahead, 1.0 - ahead]);
        let negative = [FIRST, BACK].map(|spec| router.passage(spec).negative);
        assert_eq!(negative, if ahead < 0.0 { [10, 0] } else { [0, 10] });
        assert_eq!(router.taps.ahead() as f64 / MS as f64, ahead);
    }
}

#[test]
fn a_bridge_does_not_change_the_time_to_live() {
    let mut router = Router::new(udp);
    // Of two that take no time the first one cannot be told; that of the other direction is the other one.
    for (spec, at, first) in [(FIRST, 0.0, Side::Before), (BACK, 1.0, Side::After)] {
        router.see(at, Side::Before, spec, 64);
        assert_eq!(router.see(at, Side::After, spec, 64), Some(0.0));
        assert_eq!(router.passage(spec).first, Some(first));
    }
    router.see(2.0, Side::After, BACK, 64);
    assert_eq!(router.see(4.0, Side::Before, BACK, 64), Some(2.0));
    let mut router = Router::new(udp);
    router.see(10.0, Side::After, BACK, 64);
    assert_eq!(router.see(12.0, Side::Before, BACK, 64), Some(2.0));
    assert_eq!(router.passage(BACK).first, Some(Side::After));
}

#[test]
fn what_waits_is_bounded() {
    let mut router = Router::new(tcp);
    router.comes(0.0, BACK);
    for number in 0..(1 << 19) + 500 {
        router.comes(1.0, Spec { seq: number, ..FIRST });
    }
    // One waits at the other tap.
    assert_eq!(router.taps.hurried, 501);
    assert_eq!(router.goes(2.0, Spec { seq: 501, ..FIRST }), Some(1.0));
    assert_eq!(router.goes(2.0, Spec { seq: 500, ..FIRST }), None);
    // From then on the second tap is silent: what waits in vain has waited long enough.
    for number in 0..100 {
        router.comes(1000.0, Spec { seq: number, ..FIRST });
    }
    assert_eq!(router.taps.hurried, 501);
    assert!(router.taps.unsettled > 590);
}

#[test]
fn flows_that_are_idle_are_forgotten() {
    let mut router = Router::new(tcp);
    router.comes(0.0, FIRST);
    router.goes(1.0, FIRST);
    router.comes(1.0, BACK);
    router.taps.forget(BEGIN + 5000 * MS);
    // The one waits.
    assert_eq!(router.taps.passages().filter(|one| one.first.is_some()).count(), 0);
    assert_eq!(router.goes(2.0, BACK), Some(1.0));
    router.comes(3.0, FIRST);
    assert_eq!(router.goes(4.5, FIRST), Some(1.5));
    assert_eq!(router.passage(FIRST).delays.count(), 1);
}

proptest! {
    /// Each packet of either tap is in one pair, lost, unannounced, unsettled, or of a flow that was not seen at both.
    #[test]
    fn every_packet_is_accounted_for(
        packets in prop::collection::vec((any::<[bool; 3]>(), 0u16..4, 0u32..4, 60u8..66, 0u64..60), 0..400),
    ) {
        for kind in [tcp, udp] {
            let mut router = Router::new(kind);
            let (mut now, mut pairs) = (0, 0);
            for ([before, back, longer], id, seq, ttl, step) in &packets {
                now += step;
                let payload = if *longer { 40 } else { 30 };
                let side = if *before { Side::Before } else { Side::After };
                let spec = Spec { back: *back, id: *id, seq: *seq, stamp: 0, payload };
                let took = router.see(now as f64, side, spec, *ttl);
                prop_assert!(took.is_none_or(|took| took.abs() < (PATIENCE / MS) as f64));
                pairs += u64::from(took.is_some());
            }
            router.taps.settle();
            let taps = &router.taps;
            prop_assert_eq!(taps.pairs, pairs);
            let known = taps.passages().filter(|one| one.first.is_some());
            let alone: u64 = known.map(|one| one.lost().unwrap_or(0) + one.unannounced()).sum();
            let settled = 2 * pairs + alone + taps.unsettled;
            let all = packets.len() as u64;
            prop_assert!(settled <= all);
            if taps.passages().all(|one| one.first.is_some()) {
                prop_assert_eq!(settled, all);
            }
        }
    }

    #[test]
    fn any_bytes_have_a_mark(link in 0u32..300, bytes in prop::collection::vec(any::<u8>(), 0..200), wire in 0u32..3000) {
        let mut taps = Taps::new(PATIENCE, 10, 1 << 20);
        if let Ok(seen) = read(link, &bytes, wire, 1) {
            let delay = |side| taps.packet(side, seen.time, &seen, &mark(link, &bytes, &seen)).map(|delay| delay.took);
            prop_assert_eq!([Side::Before, Side::After].map(delay), [None, Some(0)]);
        }
    }
}
