//! When a timeout comes, and how its back-off ends.

use transport::tcp::Config;
use units::Time;

use super::{MSS, Pair, everything, plain};

/// What was sent again gives no round trip, so that the timeout stays backed off (RFC 6298 section 3), unless a timestamp tells which
/// copy arrived (RFC 7323 section 4).
#[test]
fn the_back_off_ends_with_a_round_trip() {
    for (timestamps, rto) in [(true, 220), (false, 8 * 220)] {
        let mut pair = Pair::new(&Config { sack: false, timestamps, ..plain() }, "reno");
        pair.ends[0].write(40_000);
        // The first window is lost, and two copies of its first packet.
        let mut sent = 0;
        pair.run(Time::from_ms(1590), |side, _, segment| {
            sent += usize::from(side == 0 && segment.payload > 0);
            (side == 1 || segment.payload == 0 || sent > 12).then_some(*segment)
        });
        assert_eq!(pair.ends[1].bytes_received(), u64::from(MSS) + if timestamps { 0 } else { 12 });
        assert_eq!(pair.ends[0].statistics().timeouts, 3);
        assert_eq!(pair.ends[0].rto().as_ms(), rto, "{timestamps}");
    }
}

/// No SACK block tells a round trip either where all that was sent before is lost.
#[test]
fn the_back_off_ends_with_a_copy_s_timestamp_with_sack_too() {
    for timestamps in [true, false] {
        let mut pair = Pair::new(&Config { timestamps, ..plain() }, "reno");
        pair.ends[0].write(40_000);
        pair.run(Time::from_ms(700), |side, _, segment| {
            (side == 1 || segment.payload == 0).then_some(*segment)
        });
        let backed_off = pair.ends[0].rto();
        while pair.ends[1].bytes_received() == 0 {
            pair.run(pair.now + Time::from_ms(1), everything);
        }
        // Its ACK is back, and that of what follows is not.
        pair.run(pair.now + Time::from_ms(15), everything);
        assert!(pair.ends[0].flow().snd_una > 1, "{timestamps}");
        let rto = pair.ends[0].rto();
        assert_eq!(
            rto < backed_off && rto.as_ms() <= 221,
            timestamps,
            "{timestamps}: {backed_off:?} {rto:?}"
        );
    }
}

/// As long as SACK tells of what was sent before the first packet's copy, the copy is not late (`FLAG_SET_XMIT_TIMER`).
#[test]
fn a_copy_may_take_as_long_as_what_is_before_it_in_the_queue() {
    let mut pair = Pair::new(&plain(), "reno");
    pair.slow = Time::from_ms(2);
    pair.one_by_one = true;
    pair.ends[0].write(10_000);
    let mut first = 0;
    pair.run(Time::from_secs(1), |side, _, segment| {
        let hit = side == 0 && segment.payload > 0 && segment.seq == 1;
        first += usize::from(hit);
        (!hit || first > 2).then_some(*segment)
    });
    let data = pair.data(MSS);
    let copies: Vec<u64> = data.iter().filter(|(_, n)| *n == 0).map(|(at, _)| *at).collect();
    // The third SACK comes at 48 ms, the last 14 ms later, and the timeout is 229 ms then.
    assert_eq!((copies.len(), copies[1]), (3, 48), "{data:?}");
    assert!(copies[2] >= 62 + 229, "{data:?}");
}
