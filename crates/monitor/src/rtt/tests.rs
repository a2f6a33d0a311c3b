//! The rules beside the same written in the plainest way, on packets of one connection in whatever order; and what one packet may cost.

use proptest::prelude::*;

use super::*;

const SIDES: usize = 2;

/// Keeps all segments of a direction in the order in which they were sent, and looks at all of them for each acknowledgment.
#[derive(Default)]
struct PlainTshark(Vec<(u32, u64)>);

impl PlainTshark {
    fn sent(&mut self, time: u64, packet: &Tcp) {
        if packet.length() > 0 {
            self.0.push((packet.end(), time));
        }
    }

    fn came(&mut self, time: u64, packet: &Tcp) -> Option<u64> {
        let first = self.0.iter().find(|(end, _)| *end == packet.ack).map(|(_, sent)| time - sent);
        self.0.retain(|(end, _)| after(packet.ack, *end) < 0);
        first.filter(|sample| *sample > 0)
    }
}

#[derive(Clone, Copy)]
struct Piece {
    start: u32,
    end: u32,
    time: u64,
    resent: bool,
}

/// Keeps each segment apart, also of those that were sent again at once.
#[derive(Default)]
struct PlainTcptrace {
    left: Option<u32>,
    left_time: u64,
    waiting: Vec<Piece>,
}

impl PlainTcptrace {
    fn sent(&mut self, time: u64, packet: &Tcp) {
        if packet.length() == 0 {
            return;
        }
        let left = *self.left.get_or_insert(packet.seq);
        let (mut start, end) = (packet.seq, packet.end());
        if after(left, start) > 0 {
            self.left_time = self.left_time.max(time);
            start = left;
        }
        while after(end, start) > 0 {
            let inside = |piece: &Piece| after(start, piece.start) >= 0 && after(piece.end, start) > 0;
            if let Some(piece) = self.waiting.iter_mut().find(|piece| inside(piece)) {
                (piece.resent, piece.time, start) = (true, time, piece.end);
                continue;
            }
            let next = self.waiting.iter().filter(|piece| after(piece.start, start) > 0);
            let until = next.map(|piece| piece.start).chain([end]).min().unwrap_or(end);
            self.waiting.push(Piece { start, end: until, time, resent: false });
            self.waiting.sort_by_key(|piece| piece.start);
            start = until;
        }
    }

    fn came(&mut self, time: u64, packet: &Tcp) -> Option<u64> {
        let mut sample = None;
        while let Some(first) =
            self.waiting.first().copied().filter(|first| after(packet.ack, first.start) > 0)
        {
            if packet.ack == first.end && !first.resent && self.left_time <= first.time {
                sample = Some(time - first.time);
            }
            (self.left, self.left_time) = (Some(first.end), self.left_time.max(first.time));
            self.waiting.remove(0);
        }
        sample
    }
}

fn packets() -> impl Strategy<Value = Vec<(usize, Tcp)>> {
    let packet = (0..SIDES, 100u32..200, 1u32..40, 100u32..240, any::<bool>());
    let packet = packet.prop_map(|(side, seq, length, ack, has_data)| {
        let payload = if has_data { length } else { 0 };
        (side, Tcp { seq, ack, flags: flag::ACK, payload, ..Tcp::default() })
    });
    prop::collection::vec(packet, 0..200)
}

proptest! {
    #[test]
    fn tshark_s_samples_are_those_of_all_segments(packets in packets()) {
        let (mut tracker, mut room) = (Tracker::new(Rule::Tshark), Room::new(1 << 20));
        let mut plain: [PlainTshark; SIDES] = Default::default();
        for (time, (side, packet)) in packets.iter().enumerate() {
            let expected = plain[1 - side].came(time as u64, packet);
            plain[*side].sent(time as u64, packet);
            prop_assert_eq!(tracker.packet(*side, time as u64, packet, &mut room), expected);
        }
    }

    #[test]
    fn tcptrace_s_samples_are_those_of_all_segments(packets in packets()) {
        let (mut tracker, mut room) = (Tracker::new(Rule::Tcptrace), Room::new(1 << 20));
        let mut plain: [PlainTcptrace; SIDES] = Default::default();
        for (time, (side, packet)) in packets.iter().enumerate() {
            let expected = plain[1 - side].left.and_then(|_| plain[1 - side].came(time as u64, packet));
            plain[*side].sent(time as u64, packet);
            prop_assert_eq!(tracker.packet(*side, time as u64, packet, &mut room), expected);
        }
    }
}

/// A byte in each of many segments, and then all of them in each packet: these look at few.
#[test]
fn what_one_packet_sends_again_is_one_segment() {
    let (mut sent, mut room) = (tcptrace::Sent::default(), Room::new(1 << 20));
    let data = |seq, payload| Tcp { seq, payload, ..Tcp::default() };
    (0..WAITING as u32).for_each(|seq| sent.sent(1, &data(seq, 1), &mut room));
    assert_eq!(sent.waiting(), WAITING);
    sent.sent(2, &data(0, 9000), &mut room);
    assert_eq!(sent.waiting(), WAITING - 9000 + 1);
    // Those behind it give samples as before.
    let ack = |ack| Tcp { ack, flags: flag::ACK, ..Tcp::default() };
    assert_eq!(sent.came(3, &ack(9000), &mut room), None);
    sent.sent(4, &data(10_000, 1), &mut room);
    assert_eq!(sent.came(9, &ack(10_001), &mut room), Some(5));
}
