use super::bounds::{Flight, inflight_at_loss, part};
use super::*;
use crate::cc::bbr_model::BW_UNIT;
use crate::cc::testing::{Driver, Pipe};

const RTT: Time = Time::from_ms(40);
/// 5000 packets per second: 200 in a round trip.
const SPACING: Time = Time::from_us(200);

fn start() -> (Driver, Bbr3, Pipe) {
    let mut driver = Driver::new(10, RTT);
    driver.flow.random = 3;
    let mut control = Bbr3::default();
    control.init(&mut driver.flow, driver.now);
    (driver, control, Pipe::new(SPACING, RTT))
}

/// In PROBE_BW with 5000 packets per second and 40 ms.
fn steady(phase: Phase) -> (Driver, Bbr3) {
    let (mut driver, mut control, _) = start();
    driver.flow.cwnd = 400;
    control.bw_hi = [5 * BW_UNIT / 1_000; 2];
    control.full_bw_reached = true;
    control.mode = Mode::ProbeBw(phase);
    (driver, control)
}

#[test]
fn the_phases_follow_each_other_and_probes_come_every_two_to_three_seconds() {
    let (mut driver, mut control, mut pipe) = start();
    driver.flow.min_rtt = RTT;
    let mut phases: Vec<(Mode, Time)> = Vec::new();
    let mut deepest = 0;
    pipe.run(&mut driver, &mut control, Time::from_secs(20), |driver, control, queue| {
        if phases.last().is_none_or(|p| p.0 != control.mode) {
            phases.push((control.mode, driver.now));
        }
        if driver.now > Time::from_secs(3) {
            deepest = deepest.max(queue);
        }
    });
    let bw = control.max_bw() as f64 * 1e6 / BW_UNIT as f64;
    assert!((bw / 5_000.0 - 1.0).abs() < 0.02, "{bw}");
    assert_eq!(phases[0].0, Mode::Startup);
    assert_eq!(phases[1].0, Mode::Drain);
    let cycle = [Phase::Down, Phase::Cruise, Phase::Refill, Phase::Up].map(Mode::ProbeBw);
    for pair in phases[1..].windows(2) {
        let (from, to) = (pair[0].0, pair[1].0);
        let expected = match from {
            Mode::ProbeBw(Phase::Down) => cycle[1],
            Mode::ProbeBw(Phase::Cruise) => cycle[2],
            Mode::ProbeBw(Phase::Refill) => cycle[3],
            _ => cycle[0],
        };
        // A probe for the round trip may come at any time, and ends in cruising.
        assert!(
            to == expected || to == Mode::ProbeRtt || (from == Mode::ProbeRtt && to == cycle[1]),
            "{from:?} {to:?}"
        );
    }
    let (mut waits, mut since) = (Vec::new(), Time::ZERO);
    for (mode, at) in &phases {
        match mode {
            // The wait begins with draining and, after a probe for the round trip, with cruising.
            Mode::ProbeBw(Phase::Down) | Mode::ProbeRtt => since = *at,
            Mode::ProbeBw(Phase::Refill) => waits.push(*at - since),
            _ => {}
        }
    }
    assert!(waits.len() >= 4, "{}", waits.len());
    for wait in waits {
        assert!(wait >= Time::from_secs(2) && wait < Time::from_ms(3_400), "{wait}");
    }
    let rtt_probes = phases.iter().filter(|p| p.0 == Mode::ProbeRtt).count();
    assert!((3..=4).contains(&rtt_probes), "{rtt_probes}");
    // Three rounds without growth at a gain of 1.25, but never more than the window of 2.25 BDP.
    assert!((50..=260).contains(&deepest), "{deepest}");
}

#[test]
fn too_much_is_more_than_2_per_cent_lost_or_half_marked() {
    let (_, mut control) = steady(Phase::Up);
    control.ecn_eligible = true;
    let flight = |lost, delivered_ce| Flight {
        tx_in_flight: 400,
        lost,
        delivered: 300,
        delivered_ce,
        is_app_limited: false,
    };
    // 2 % are 5/256.
    for (lost, marked, expected) in
        [(0, 0, false), (7, 0, false), (8, 0, true), (0, 150, false), (0, 151, true)]
    {
        assert_eq!(control.is_inflight_too_high(&flight(lost, marked)), expected, "{lost} {marked}");
    }
    control.ecn_eligible = false;
    assert!(!control.is_inflight_too_high(&flight(0, 300)));
}

#[test]
fn what_was_in_flight_when_losses_became_too_many() {
    // (lost_prev + prefix) / (inflight_prev + prefix) is the threshold.
    for (tx_in_flight, lost) in [(400, 8), (400, 100), (50, 1)] {
        let flight = Flight { tx_in_flight, lost, ..Flight::default() };
        let threshold = LOSS_THRESH as f64 / 256.0;
        let (inflight_prev, lost_prev) = (f64::from(tx_in_flight) - 1.0, lost as f64 - 1.0);
        let prefix = ((threshold * inflight_prev - lost_prev) / (1.0 - threshold)).max(0.0);
        let found = f64::from(inflight_at_loss(&flight));
        assert!((found - inflight_prev - prefix).abs() <= 1.1, "{found}");
    }
}

#[test]
fn a_probe_that_lost_too_much_sets_the_upper_bound_and_ends() {
    let (mut driver, mut control) = steady(Phase::Up);
    control.bw_probe_samples = true;
    driver.flow.lost = 20;
    let packet = LostPacket { tx_in_flight: 260, prior_lost: 0, is_app_limited: false };
    control.packet_lost(&mut driver.flow, &packet);
    assert_eq!(control.mode, Mode::ProbeBw(Phase::Down));
    assert_eq!(control.inflight_hi, 259);
    // Only once per probe; and never below 0.7 of the BDP of 200.
    let packet = LostPacket { tx_in_flight: 50, ..packet };
    control.packet_lost(&mut driver.flow, &packet);
    assert_eq!(control.inflight_hi, 259);
    control.bw_probe_samples = true;
    control.packet_lost(&mut driver.flow, &packet);
    assert_eq!(control.inflight_hi, part(200, 256 - BETA));
    // Cruising leaves 15 % of it free.
    control.mode = Mode::ProbeBw(Phase::Cruise);
    control.inflight_hi = 259;
    driver.flow.cwnd = 400;
    control.bound_cwnd(&mut driver.flow);
    assert_eq!(driver.flow.cwnd, 259 - part(259, INFLIGHT_HEADROOM));
}

#[test]
fn the_upper_bound_grows_twice_as_fast_each_round() {
    let (mut driver, mut control) = steady(Phase::Refill);
    control.inflight_hi = 400;
    control.start_up(&driver.flow, 1);
    let mut growth = Vec::new();
    for _ in 0..4 {
        let before = control.inflight_hi;
        driver.flow.cwnd = control.inflight_hi;
        control.round_start = false;
        let sample = RateSample { acked_sacked: 1, ..RateSample::default() };
        for ack in 0..400 {
            control.round_start = ack == 399;
            control.probe_upward(&driver.flow, &sample);
        }
        growth.push(control.inflight_hi - before);
    }
    assert_eq!(growth[0], 1);
    for pair in growth.windows(2) {
        assert!(pair[1] >= 2 * pair[0] - 1 && pair[1] <= 2 * pair[0] + 1, "{growth:?}");
    }
}

#[test]
fn losses_outside_of_probes_cut_the_lower_bounds() {
    let (driver, mut control) = steady(Phase::Cruise);
    control.loss_in_round = true;
    control.bw_latest = control.max_bw() / 2;
    control.inflight_latest = 100;
    control.adapt_lower_bounds(&driver.flow);
    assert_eq!(control.bandwidth(), (control.max_bw() * (256 - BETA)) >> 8);
    assert_eq!(control.inflight_lo, part(400, 256 - BETA));
    // Not below what still gets through.
    control.inflight_latest = 350;
    control.adapt_lower_bounds(&driver.flow);
    assert_eq!(control.inflight_lo, 350);
    // While probing they do not count, and a refill forgets them.
    control.start_refill(&driver.flow);
    control.adapt_lower_bounds(&driver.flow);
    assert_eq!((control.inflight_lo, control.bandwidth()), (NONE, control.max_bw()));
}

#[test]
fn marks_cut_the_window_by_a_third_of_alpha() {
    let (mut driver, mut control) = steady(Phase::Cruise);
    control.min_rtt = Time::from_ms(1);
    let mut expected = 1.0;
    for _ in 0..60 {
        driver.flow.delivered += 100;
        driver.flow.delivered_ce += 25;
        control.update_ecn_alpha(&driver.flow);
        expected = expected * 15.0 / 16.0 + 0.25 / 16.0;
        let alpha = control.ecn_alpha as f64 / 256.0;
        // Rounded down by up to 1/256 each time, of which 16 add up.
        assert!(alpha <= expected + 0.001 && alpha > expected - 0.063, "{alpha} {expected}");
    }
    control.ecn_in_round = true;
    control.adapt_lower_bounds(&driver.flow);
    let cut = control.ecn_alpha as f64 / 256.0 * (85.0 / 256.0);
    assert!((f64::from(control.inflight_lo) - 400.0 * (1.0 - cut)).abs() < 2.0);
    assert_eq!(control.bw_lo, u64::MAX);
    // On long paths ECN is not heeded.
    let (mut driver, mut control) = steady(Phase::Cruise);
    driver.flow.delivered += 100;
    driver.flow.delivered_ce += 100;
    control.update_ecn_alpha(&driver.flow);
    assert!(!control.ecn_eligible);
}

/// Linux rounds old and new part down, each by itself: marks of 15/256 leave nothing, of 63/256 as much as 48.
#[test]
fn few_marks_are_forgotten() {
    for (marked, alpha) in [(15, 0), (16, 16), (63, 48), (64, 64)] {
        let (mut driver, mut control) = steady(Phase::Cruise);
        control.min_rtt = Time::from_ms(1);
        for _ in 0..200 {
            driver.flow.delivered += 256;
            driver.flow.delivered_ce += marked;
            control.update_ecn_alpha(&driver.flow);
        }
        assert_eq!(control.ecn_alpha, alpha, "{marked}");
    }
}

#[test]
fn startup_ends_by_losses_or_marks() {
    let (mut driver, mut control, _) = start();
    let sample = RateSample { losses: 1, ..RateSample::default() };
    let flight = Flight { tx_in_flight: 100, lost: 8, ..Flight::default() };
    driver.flow.state = State::Recovery;
    control.inflight_latest = 77;
    for event in 1..=6 {
        assert!(!control.full_bw_reached);
        control.loss_round_start = event == 6;
        control.check_loss_in_startup(&driver.flow, &sample, &flight);
    }
    assert!(control.full_bw_reached);
    assert_eq!(control.inflight_hi, 77);
    let (mut driver, mut control, _) = start();
    control.min_rtt = Time::from_ms(1);
    for round in 1..=2 {
        assert!(!control.full_bw_reached, "{round}");
        driver.flow.delivered += 100;
        driver.flow.delivered_ce += 60;
        control.update_ecn_alpha(&driver.flow);
    }
    assert!(control.full_bw_reached);
}

#[test]
fn probing_the_round_trip_halves_the_window() {
    let (mut driver, mut control) = steady(Phase::Cruise);
    driver.flow.packets_out = 200;
    let sample = RateSample { rtt: Some(RTT * 2), delivered: 1, ..RateSample::default() };
    control.update_min_rtt(&mut driver.flow, driver.now + Time::from_ms(5_001), &sample);
    assert_eq!(control.mode, Mode::ProbeRtt);
    control.set_cwnd(&mut driver.flow, &sample, control.bandwidth());
    assert_eq!(driver.flow.cwnd, 100);
    // The smallest round trip of ten seconds is not forgotten in five.
    assert_eq!(control.min_rtt, RTT);
}

#[test]
fn a_spurious_recovery_gives_the_bounds_back() {
    let (mut driver, mut control) = steady(Phase::Cruise);
    control.inflight_hi = 300;
    control.ssthresh(&mut driver.flow, driver.now);
    control.inflight_hi = 100;
    control.inflight_lo = 50;
    control.bw_lo = 1;
    driver.flow.cwnd = 50;
    assert_eq!(control.undo_cwnd(&mut driver.flow), 400);
    assert_eq!((control.inflight_hi, control.inflight_lo, control.bw_lo), (300, NONE, u64::MAX));
}
