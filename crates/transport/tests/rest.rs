//! A connection that rests: to ask it before it wakes up changes nothing, whatever the network has done before.

use std::collections::VecDeque;

use proptest::prelude::*;
use transport::cc;
use transport::segment::Segment;
use transport::tcp::{Config, Connection, Rest};
use units::{Bytes, Random, Time};

const DELAY: Time = Time::from_ms(10);

/// What a case needs to say anything.
const OFTEN: u64 = 50;

/// Two connections, of which the first writes now and then, over wires that lose, delay and disorder.
struct Pair {
    ends: [Connection; 2],
    wires: [VecDeque<(Time, Segment)>; 2],
    random: Random,
    /// Times that an end rested, by why.
    rested: [u64; 2],
}

impl Pair {
    /// Sends what is to be sent; then asks an end that rests at some time before it wakes up.
    fn ask(&mut self, side: usize, now: Time, next: Time, loss: f64) {
        while let Some(segment) = self.ends[side].transmit(now) {
            if !self.random.chance(loss) {
                let later = if self.random.chance(0.1) { Time::from_ms(6) } else { Time::ZERO };
                let at = now + DELAY + later;
                let place = self.wires[side].partition_point(|(other, _)| *other <= at);
                self.wires[side].insert(place, (at, segment));
            }
        }
        let end = &mut self.ends[side];
        let (rest, wakes) = (end.rest(), end.next_wakeup(now).min(next));
        if rest == Rest::Busy || wakes <= now {
            return;
        }
        let asked = now + Time::from_ps(self.random.next_u64() % (wakes - now).as_ps());
        self.rested[usize::from(rest == Rest::Limited)] += 1;
        if rest == Rest::Limited {
            end.still_limited(asked);
        }
        let before = format!("{end:?}");
        end.advance(asked);
        assert_eq!(end.transmit(asked), None);
        assert_eq!(format!("{end:?}"), before, "{rest:?}");
    }

    /// Runs for 20 s, or longer until end 0 has rested `OFTEN` times: where much is lost and timers back off, it rests less often.
    fn run(&mut self, loss: f64) {
        let (mut now, mut writes) = (Time::ZERO, Time::ZERO);
        while now < Time::from_secs(20) || (self.rested[0] < OFTEN && now < Time::from_secs(200)) {
            if writes <= now {
                self.ends[0].write(1 + self.random.next_u64() % 60_000);
                writes = now + Time::from_us(self.random.next_u64() % 900_000);
            }
            let arrivals = self.wires.iter().filter_map(|w| w.front().map(|(at, _)| *at));
            let next = arrivals.min().unwrap_or(Time::MAX).min(writes);
            self.ask(0, now, next, loss);
            self.ask(1, now, next, loss);
            let arrivals = self.wires.iter().filter_map(|w| w.front().map(|(at, _)| *at));
            let timers = self.ends.iter().map(|end| end.next_wakeup(now));
            now = arrivals.chain(timers).min().unwrap_or(Time::MAX).min(writes);
            for side in 0..2 {
                while self.wires[side].front().is_some_and(|(at, _)| *at <= now) {
                    if let Some((_, segment)) = self.wires[side].pop_front() {
                        self.ends[1 - side].receive(now, &segment);
                    }
                }
                if self.ends[side].next_wakeup(now) <= now {
                    self.ends[side].advance(now);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn nothing_comes_of_asking_a_connection_that_rests(
        seed in any::<u64>(),
        loss in prop_oneof![Just(0.0), Just(0.02), Just(0.2)],
        control in prop_oneof![Just("reno"), Just("cubic"), Just("htcp"), Just("bbr"), Just("bbr3")],
        sack in any::<bool>(),
        pacing in any::<bool>(),
        window in prop_oneof![Just(4_000u64), Just(131_072)],
    ) {
        let config = Config { sack, pacing, seed, receive_buffer_max: Bytes::new(window), ..Config::default() };
        let control = || cc::new(control, &[]).expect("congestion control");
        let ends =
            [Connection::connect(config.clone(), control()), Connection::listen(config.clone(), control())];
        let mut pair = Pair { ends, wires: Default::default(), random: Random::new(seed), rested: [0; 2] };
        pair.run(loss);
        prop_assert!(pair.rested[0] >= OFTEN, "{:?}", pair.rested);
    }
}
