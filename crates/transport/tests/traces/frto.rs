//! F-RTO: what follows a timeout that may have been in vain.

use transport::segment::Segment;
use transport::tcp::Config;
use units::{Bytes, Time};

use super::{Pair, everything, plain};

/// A receive window that data behind holes keeps closed: new data cannot show whether the timeout was in vain, so that the holes are
/// filled at once, not after one more timeout.
#[test]
fn a_closed_receive_window_does_not_hold_up_repair() {
    let config =
        Config { receive_buffer: Bytes::new(30_000), receive_buffer_max: Bytes::new(30_000), ..plain() };
    let mut pair = Pair::new(&config, "reno");
    pair.ends[0].write(200_000);
    pair.run(Time::from_ms(290), everything);
    // Of a window of 13 packets the first, third, fifth and seventh are lost, and all copies until two timeouts have passed.
    let mut sent = 0;
    let mut pass = |side: usize, segment: &Segment| {
        sent += usize::from(side == 0 && segment.payload > 0);
        (side == 1 || (sent <= 13 && (sent > 7 || sent % 2 == 0))).then_some(*segment)
    };
    while pair.ends[0].statistics().timeouts < 2 {
        pair.run(pair.now + Time::from_ms(1), |side, _, segment| pass(side, segment));
    }
    pair.run(Time::from_secs(60), everything);
    assert_eq!(pair.ends[0].statistics().timeouts, 3);
}
