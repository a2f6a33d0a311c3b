//! What a SYN that is lost costs.

use transport::segment::Flags;
use transport::tcp::{Config, EcnMode, Phase};
use units::Time;

use super::{MSS, Pair, plain};

/// A connection whose first SYNs are lost, a second after its handshake.
fn without_first_syns(config: &Config, control: &str, lost: usize, end: Time) -> Pair {
    let mut pair = Pair::new(config, control);
    pair.ends[0].write(20_000);
    pair.run(end, |side, number, segment| (side == 1 || number >= lost).then_some(*segment));
    pair
}

fn syns(pair: &Pair) -> Vec<u64> {
    let syns = pair.logs[0].iter().filter(|(_, s)| s.flags.has(Flags::SYN));
    syns.map(|(at, _)| at.as_ms() / 1000).collect()
}

/// Four timeouts of a second, then they double; these do not count as retries (`tcp_syn_linear_timeouts`).
#[test]
fn a_syn_is_sent_again_each_second_at_first() {
    let pair = without_first_syns(&plain(), "cubic", usize::MAX, Time::from_secs(200));
    assert_eq!(syns(&pair), [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
    assert_eq!(pair.ends[0].phase(), Phase::TimedOut);
}

/// Ten packets after one SYN that is lost, one after two (`tcp_init_transfer`). A timestamp tells the round trip of the copy, without
/// which the timeout is 3 s (RFC 6298 section 5.7).
#[test]
fn a_second_lost_syn_makes_a_careful_start() {
    for (lost, timestamps, window, rto) in
        [(1, true, 10, 221), (1, false, 10, 3000), (2, true, 1, 221), (2, false, 1, 3000)]
    {
        let config = Config { mss: MSS + if timestamps { 12 } else { 0 }, timestamps, ..plain() };
        let end = Time::from_ms(1000 * lost as u64 + 35);
        let pair = without_first_syns(&config, "cubic", lost, end);
        assert_eq!(pair.data(MSS).len(), window, "{lost} {timestamps}");
        let (low, high) = (rto - 1, rto);
        assert!(
            (low..=high).contains(&pair.ends[0].rto().as_ms()),
            "{lost} {timestamps}: {:?}",
            pair.ends[0].rto()
        );
    }
}

/// A path may drop what asks for ECN: RFC 3168 section 6.1.1.1 (`tcp_ecn_fallback`); with accurate ECN, from the second copy on
/// (RFC 9768 section 3.1.4.1).
#[test]
fn a_syn_that_is_sent_again_does_not_ask_for_ecn() {
    for (ecn, asks) in [(EcnMode::On, 1), (EcnMode::Accurate, 2)] {
        for lost in [asks - 1, asks] {
            let config = Config { ecn, ..plain() };
            let pair = without_first_syns(&config, "cubic", lost, Time::from_ms(3500));
            let asked = pair.logs[0].iter().filter(|(_, s)| s.flags.has(Flags::SYN | Flags::CWR)).count();
            assert_eq!(asked, asks, "{ecn:?} {lost}");
            assert_eq!(pair.ends[0].flow().ecn, lost < asks, "{ecn:?} {lost}");
        }
    }
    // What the answer to the first SYN said holds, though that answer was lost.
    let mut pair = Pair::new(&Config { ecn: EcnMode::On, ..plain() }, "cubic");
    pair.run(Time::from_ms(1500), |side, number, segment| (side == 0 || number > 0).then_some(*segment));
    assert!(pair.ends[0].flow().ecn && pair.ends[1].flow().ecn);
}
