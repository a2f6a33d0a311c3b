//! PIE, RFC 8033 appendix A: packets are dropped as they come, at random, with a probability that a PI controller sets every 15 ms
//! from the delay of the packet that left last. The delay is measured (the timestamp option of section 5.2).

use super::Fifo;
use units::Random;

const TARGET_S: f64 = 0.015;
const UPDATE: u64 = 15_000_000_000;
const MAX_BURST: u64 = 150_000_000_000;
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;

#[derive(Debug)]
pub(crate) struct Pie {
    /// An MTU.
    largest: u64,
    /// Seconds: of the packet that left last, and as it was at the last update.
    delay: f64,
    old_delay: f64,
    probability: f64,
    /// What is left of the time in which nothing is dropped.
    burst: u64,
    next_update: u64,
}

impl Pie {
    pub fn new(largest: u64) -> Pie {
        Pie { largest, delay: 0.0, old_delay: 0.0, probability: 0.0, burst: 0, next_update: UPDATE }
    }

    /// A packet that came at a time has left.
    pub fn left(&mut self, now: u64, came: u64, fifo: &Fifo) {
        self.catch_up(now);
        // An empty queue has no delay.
        self.delay = if fifo.len() == 0 { 0.0 } else { (now - came) as f64 * 1e-12 };
    }

    /// Whether a packet that comes is to be dropped.
    pub fn drops(&mut self, now: u64, fifo: &Fifo, random: &mut Random) -> bool {
        self.catch_up(now);
        let low = self.old_delay < TARGET_S / 2.0;
        if self.probability == 0.0 && self.delay < TARGET_S / 2.0 && low {
            self.burst = MAX_BURST;
        }
        let spares = (low && self.probability < 0.2) || fifo.bytes() <= 2 * self.largest;
        self.burst == 0 && !spares && random.chance(self.probability)
    }

    /// Updates that have come due. Nothing has changed between them: packets leave by calls of their own.
    fn catch_up(&mut self, now: u64) {
        while now >= self.next_update {
            self.next_update += UPDATE;
            let resting = self.probability == 0.0 && self.delay == 0.0 && self.old_delay == 0.0;
            if resting && now >= self.next_update {
                // More of them would change nothing but the burst.
                let missed = (now - self.next_update) / UPDATE + 1;
                self.next_update += missed * UPDATE;
                self.burst = self.burst.saturating_sub((missed + 1).saturating_mul(UPDATE));
                return;
            }
            self.update();
        }
    }

    fn update(&mut self) {
        let step = ALPHA * (self.delay - TARGET_S) + BETA * (self.delay - self.old_delay);
        let scale = match self.probability {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        self.probability += step / scale;
        if self.delay == 0.0 && self.old_delay == 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_delay = self.delay;
        self.burst = self.burst.saturating_sub(UPDATE);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Waiting;
    use super::*;

    const MS: u64 = 1_000_000_000;

    fn full() -> Fifo {
        let mut fifo = Fifo::default();
        for _ in 0..100 {
            fifo.push(Waiting { packet: 0, bytes: 1500, came: 0 });
        }
        fifo
    }

    #[test]
    fn the_probability_follows_its_equation() {
        let mut pie = Pie::new(1514);
        let fifo = full();
        // A delay of 25 ms, update after update: alpha times 10 ms, and beta times 25 ms the first time, scaled down.
        pie.left(10 * MS, 0, &fifo);
        pie.delay = 0.025;
        pie.catch_up(15 * MS);
        let mut expected = (0.125 * 0.010 + 1.25 * 0.025) / 2048.0;
        assert!((pie.probability - expected).abs() < 1e-12);
        pie.catch_up(30 * MS);
        expected += 0.125 * 0.010 / 512.0 * if expected < 0.000_01 { 1.0 } else { 4.0 };
        assert!((pie.probability - expected).abs() < 1e-12, "{} {expected}", pie.probability);
    }

    #[test]
    fn a_first_burst_is_let_through_and_a_short_queue_is_spared() {
        let mut random = Random::new(1);
        let fifo = full();
        let mut pie = Pie::new(1514);
        assert!(!pie.drops(0, &fifo, &mut random));
        assert_eq!(pie.burst, MAX_BURST);
        (pie.probability, pie.delay, pie.old_delay) = (1.0, 0.1, 0.1);
        let first = (1..300).find(|at| pie.drops(at * MS, &fifo, &mut random));
        assert_eq!(first, Some(150));
        assert!(!pie.drops(301 * MS, &Fifo::default(), &mut random));
    }

    #[test]
    fn it_comes_to_rest_while_nothing_is_sent() {
        let mut pie = Pie::new(1514);
        (pie.probability, pie.delay) = (0.3, 0.05);
        pie.left(MS, 0, &Fifo::default());
        pie.catch_up(60_000 * MS);
        assert_eq!((pie.probability, pie.burst), (0.0, 0));
        assert!(pie.next_update > 60_000 * MS && pie.next_update <= 60_015 * MS);
    }
}
