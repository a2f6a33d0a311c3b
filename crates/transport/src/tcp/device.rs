//! What a connection has in its host's own queue, and whether that is enough (TCP small queues: `tcp_small_queue_check`).

use std::collections::VecDeque;

use units::Time;

/// A burst that the host has been given: when its last bit leaves, and its bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Handed {
    leaves: Time,
    bytes: u64,
}

/// Bursts that have not left yet, in order. The kernel, too, hears of a burst when all of it has left.
#[derive(Debug, Default)]
pub(super) struct Device {
    /// The last that was handed down: most have left before the next one comes.
    last: Handed,
    earlier: VecDeque<Handed>,
    earlier_bytes: u64,
    /// The next segment begins a burst.
    fresh: bool,
    /// Sending goes on then: too much was waiting.
    pub waits_until: Option<Time>,
}

impl Device {
    pub fn begin_burst(&mut self) {
        self.fresh = true;
    }

    /// A burst may begin, and nothing holds it back.
    #[inline]
    pub fn is_still(&self) -> bool {
        self.fresh && self.waits_until.is_none()
    }

    /// A segment of the current burst leaves at that time.
    #[inline]
    pub fn hand(&mut self, now: Time, bytes: u64, leaves: Time) {
        if self.fresh {
            self.fresh = false;
            self.settle(now);
            if self.last.bytes > 0 {
                self.earlier.push_back(self.last);
                self.earlier_bytes += self.last.bytes;
            }
            self.last = Handed { leaves, bytes };
        } else {
            self.last.leaves = leaves;
            self.last.bytes += bytes;
        }
    }

    /// Bytes that wait.
    #[inline]
    pub fn waiting(&mut self, now: Time) -> u64 {
        self.settle(now);
        self.earlier_bytes + self.last.bytes
    }

    /// When the first burst has left.
    pub fn first_leaves(&self) -> Time {
        self.earlier.front().unwrap_or(&self.last).leaves
    }

    #[inline]
    fn settle(&mut self, now: Time) {
        if self.last.leaves <= now {
            self.last.bytes = 0;
        }
        while let Some(first) = self.earlier.front()
            && first.leaves <= now
        {
            self.earlier_bytes -= first.bytes;
            self.earlier.pop_front();
        }
    }
}
