//! The window that a receiver offers, as Linux 6.18 finds it: a buffer whose size follows what is read per round trip, and the
//! share of it that payload takes.
//!
//! Linux charges a buffer with the memory that packets take, not with their payload, and learns the share of payload from full
//! segments (`scaling_ratio`). How much memory a packet takes depends on the network card; here it is what Linux takes for a
//! packet that is copied: the power of two above frame and overhead or, where that is beyond a page, whole pages.

use units::Time;

use super::config::Config;

/// `TCP_RMEM_TO_WIN_SCALE`; half of the buffer is window before the first full segment.
const SHARES: u64 = 256;
const FIRST_SHARE: u64 = SHARES / 2;
/// What is guessed of the peer's segments at first (`TCP_MIN_RCVMSS`).
const LEAST_SEGMENT: u32 = 536;
/// Windows from which the buffer may grow count from ten segments.
const INITIAL_SEGMENTS: u64 = 10;
/// Link, network and transport headers with timestamps, and what Linux adds to a buffer of one piece (headroom, description).
const HEADERS: u64 = 66;
const OVERHEAD: u64 = 384;
const PAGE: u64 = 4096;
/// `struct sk_buff` in its cache, and the small buffer for headers of a packet that lies in pages.
const DESCRIPTION: u64 = 256;
const SMALL_HEAD: u64 = 576;

/// Memory that a segment with so much payload takes (`skb->truesize`).
fn memory(payload: u64) -> u64 {
    let whole = (payload + HEADERS + OVERHEAD).next_power_of_two();
    if whole <= PAGE {
        return DESCRIPTION + whole;
    }
    DESCRIPTION + SMALL_HEAD + (payload + HEADERS).next_multiple_of(PAGE)
}

#[derive(Debug)]
pub(super) struct Window {
    /// Payload of the largest segments that this side takes.
    mss: u64,
    /// Of those that come.
    pub segment: u32,
    /// `nxt` when the last ACK was sent, and the window that it offered.
    pub acked: u64,
    pub offered: u64,
    pub shift: u8,
    buffer: u64,
    buffer_max: u64,
    /// Payload's share of the buffer, in 256ths.
    share: u64,
    /// Most that may be offered: of the buffer's size (`window_clamp`), and of what has come so far (`rcv_ssthresh`).
    clamp: u64,
    ssthresh: u64,
    /// What was read in the last round trip that counted, and since when the next one counts.
    space: u64,
    space_seq: u64,
    space_at: Time,
    pub rtt: Option<Time>,
    rtt_seq: u64,
    rtt_at: Time,
    /// The last timestamp that gave a sample.
    echoed: Option<u32>,
}

impl Window {
    pub fn new(config: &Config) -> Window {
        let buffer_max = config.receive_buffer_max.get();
        let buffer = config.receive_buffer.get().min(buffer_max);
        let mut window = Window {
            mss: u64::from(config.mss),
            segment: config.mss.min(LEAST_SEGMENT),
            acked: 0,
            offered: 0,
            // The window of all the buffer fits into 15 bits (`tcp_select_initial_window`).
            shift: if config.window_scaling {
                buffer_max.ilog2().saturating_sub(15).min(14) as u8
            } else {
                0
            },
            buffer,
            buffer_max,
            share: FIRST_SHARE,
            clamp: 0,
            ssthresh: 0,
            space: 0,
            space_seq: 0,
            space_at: Time::ZERO,
            rtt: None,
            rtt_seq: 0,
            rtt_at: Time::ZERO,
            echoed: None,
        };
        window.offer_first();
        window
    }

    /// Whole segments, as many as fit into what can be said without scaling.
    fn offer_first(&mut self) {
        let space = self.window_of(self.buffer);
        self.offered = if space > self.mss { space - space % self.mss } else { space }.min(65_535);
    }

    /// The peer's SYN has come; `options`: bytes that they take of each segment.
    pub fn start(&mut self, now: Time, options: u32) {
        self.mss = self.mss.saturating_sub(u64::from(options)).max(1);
        self.segment = self.segment.min(self.mss as u32);
        self.acked = 1;
        // One segment is kept in reserve (`tcp_init_buffer_space`).
        let space = self.window_of(self.buffer);
        self.clamp = space.saturating_sub(self.mss).max(2 * self.mss).min(space);
        self.ssthresh = self.clamp;
        self.space = self.clamp.min(self.offered).min(INITIAL_SEGMENTS * self.mss);
        self.space_seq = 1;
        self.space_at = now;
        self.rtt_seq = 1 + self.offered;
        self.rtt_at = now;
    }

    /// The passive side knows of the options before it offers anything.
    pub fn start_passive(&mut self, now: Time, options: u32) {
        self.mss = self.mss.saturating_sub(u64::from(options)).max(1);
        self.offer_first();
        self.start(now, 0);
    }

    fn window_of(&self, buffer: u64) -> u64 {
        buffer * self.share / SHARES
    }

    /// A segment has come (`tcp_measure_rcv_mss`).
    pub fn measure(&mut self, len: u32) {
        if len < self.segment {
            return;
        }
        if len > self.segment {
            let share = (u64::from(len) * SHARES / memory(u64::from(len))).max(1);
            if share != self.share {
                self.share = share;
                self.clamp = self.window_of(self.buffer);
                self.space = self.space.min(self.clamp);
            }
        }
        self.segment = len.min(self.mss as u32);
    }

    /// The window opens with what comes (`tcp_grow_window`), if it can; `queued` bytes wait for a hole to be filled.
    pub fn grow(&mut self, len: u32, queued: u64) -> bool {
        let len = u64::from(len);
        let free = self.window_of(self.buffer).saturating_sub(queued + len);
        let room = self.clamp.min(free).saturating_sub(self.ssthresh);
        self.ssthresh += room.min(2 * self.mss.max(len));
        room > 0
    }

    /// The peer echoes a timestamp of ours on a segment (`tcp_rcv_rtt_measure_ts`): the clock's steps are milliseconds, and each
    /// counts once.
    pub fn echo(&mut self, now_ms: u32, echoed: u32, len: u32) {
        if self.echoed == Some(echoed) {
            return;
        }
        self.echoed = Some(echoed);
        let delta = now_ms.wrapping_sub(echoed);
        if len >= self.segment && delta > 0 && delta < 1 << 20 {
            let sample = Time::from_ms(u64::from(delta));
            let smoothed = |old: Time| if sample < old { sample } else { old - old / 8 + sample / 8 };
            self.rtt = Some(self.rtt.map_or(sample, smoothed));
        }
    }

    /// In-order data up to `nxt` has come: when it is a window's worth, that took a round trip at most (`tcp_rcv_rtt_measure`).
    pub fn measure_rtt(&mut self, now: Time, nxt: u64) {
        if nxt >= self.rtt_seq {
            let rtt = now - self.rtt_at;
            self.rtt = Some(self.rtt.map_or(rtt, |old| old.min(rtt)));
            self.rtt_seq = nxt + self.offered;
            self.rtt_at = now;
        }
    }

    /// All up to `nxt` has been read (`tcp_rcv_space_adjust`); `beyond` it other data reaches so far.
    pub fn adjust(&mut self, now: Time, nxt: u64, beyond: u64) {
        if self.rtt.is_none_or(|rtt| now - self.space_at < rtt) {
            return;
        }
        let copied = nxt - self.space_seq;
        if copied > self.space {
            self.grow_buffer(copied, beyond);
        }
        self.space_seq = nxt;
        self.space_at = now;
    }

    /// Data waits for a hole to be filled, and reaches so far beyond `nxt`.
    pub fn make_room(&mut self, beyond: u64) {
        self.grow_buffer(self.space, beyond);
    }

    /// Twice what was read in a round trip, and twice again by how much it grew (`tcp_rcvbuf_grow`).
    fn grow_buffer(&mut self, copied: u64, beyond: u64) {
        let old = std::mem::replace(&mut self.space, copied).max(1);
        let twice = 2 * copied;
        let grown = u128::from(twice) * u128::from(copied.saturating_sub(old)) / u128::from(old);
        let window = u128::from(twice) + 2 * grown + u128::from(beyond);
        let buffer =
            (window * u128::from(SHARES) / u128::from(self.share)).min(u128::from(self.buffer_max)) as u64;
        if buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = self.window_of(buffer);
        }
    }

    /// An ACK of `nxt` leaves; gives the window to write into it (`tcp_select_window`).
    pub fn offer(&mut self, nxt: u64, queued: u64) -> u16 {
        let window = self.now(nxt, queued);
        self.acked = nxt;
        self.offered = window;
        (window >> self.shift).min(65_535) as u16
    }

    /// The window that was offered last, as one writes it next to an ACK of `nxt`.
    pub fn offered_at(&self, nxt: u64) -> u16 {
        let window = (self.acked + self.offered).saturating_sub(nxt);
        (window >> self.shift).min(65_535) as u16
    }

    /// The window on a SYN is not scaled.
    pub fn on_syn(&self) -> u16 {
        self.offered.min(65_535) as u16
    }

    /// Never smaller than what was offered before.
    pub fn now(&self, nxt: u64, queued: u64) -> u64 {
        let free = self.window_of(self.buffer).saturating_sub(queued).min(self.ssthresh);
        let offered = (self.acked + self.offered).saturating_sub(nxt);
        let unit = 1u64 << self.shift;
        let most = 65_535u64 << self.shift;
        (free.max(offered).div_ceil(unit) * unit).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Time = Time::from_ms(10);

    /// What Linux 6.18 has said (`tcp:tcp_rcvbuf_grow`), over 10 ms between two namespaces: payload of a segment, share, then
    /// what was read in each round trip that let the buffer grow, and the buffer after it.
    #[test]
    fn the_buffer_grows_as_linuxs() {
        type Step = (u64, u64);
        let seen: [(u32, u64, &[Step]); 2] = [
            (
                1448,
                160,
                &[
                    (26_064, 216_851),
                    (53_576, 533_376),
                    (107_152, 1_028_659),
                    (218_648, 2_155_750),
                    (444_536, 4_361_750),
                    (1_093_240, 13_708_585),
                ],
            ),
            (
                8948,
                174,
                &[
                    (71_584, 322_274),
                    (197_220, 2_617_364),
                    (201_996, 2_617_364),
                    (599_516, 8_707_419),
                    (1_234_824, 11_334_364),
                ],
            ),
        ];
        for (segment, share, steps) in seen {
            let config = Config { mss: segment + 12, ..Config::default() };
            let mut window = Window::new(&config);
            window.start_passive(Time::ZERO, 12);
            window.rtt = Some(STEP);
            window.measure(segment);
            assert_eq!(window.share, share, "{segment}");
            let (mut now, mut nxt) = (Time::ZERO, 1);
            for &(read, buffer) in steps {
                now += STEP;
                nxt += read;
                window.adjust(now, nxt, 0);
                assert!(
                    window.buffer.abs_diff(buffer) <= 2,
                    "{segment}, {read}: {} for {buffer}",
                    window.buffer
                );
            }
        }
    }

    /// The windows that Linux's SYN and SYN-ACK are known by.
    #[test]
    fn first_windows_are_whole_segments() {
        for (mss, active, passive) in
            [(1460, 64_240, 65_160), (8960, 62_720, 62_636), (65_483, 65_483, 65_471)]
        {
            let config = Config { mss, ..Config::default() };
            let mut window = Window::new(&config);
            assert_eq!(window.on_syn(), active);
            window.start_passive(Time::ZERO, 12);
            assert_eq!(window.on_syn(), passive);
            assert_eq!(window.shift, 10);
        }
    }
}
