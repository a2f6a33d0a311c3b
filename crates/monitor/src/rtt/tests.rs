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
    acked: bool,
}

impl Piece {
    fn quarter(&self) -> u32 {
        self.start >> 30
    }
}

/// Keeps each segment apart, also of those that were sent again at once, and those that were acknowledged.
#[derive(Default)]
struct PlainTcptrace {
    left: Option<u32>,
    closed: bool,
    pieces: Vec<Piece>,
}

impl PlainTcptrace {
    fn sent(&mut self, time: u64, packet: &Tcp) {
        if packet.length() == 0 || self.closed {
            return;
        }
        self.left.get_or_insert(packet.seq);
        let (mut start, end) = (packet.seq, packet.end());
        while start != end {
            let next = (start | (u32::MAX >> 2)).wrapping_add(1);
            let until = if after(end, next) > 0 { next } else { end };
            self.note(time, start, until);
            start = until;
        }
    }

    /// A part of a packet in one quarter.
    fn note(&mut self, time: u64, mut start: u32, end: u32) {
        let left = self.left.unwrap_or(start);
        let mut first = true;
        if after(left, start) > 0 {
            self.pieces.push(Piece { start, end: left, time, resent: true, acked: true });
            (first, start) = (false, left);
        }
        while after(end, start) > 0 {
            let waiting = |piece: &&mut Piece| !piece.acked;
            let inside = |piece: &&mut Piece| after(start, piece.start) >= 0 && after(piece.end, start) > 0;
            if let Some(piece) = self.pieces.iter_mut().filter(waiting).find(inside) {
                piece.time = if first { time } else { piece.time };
                (piece.resent, first, start) = (true, false, piece.end);
                continue;
            }
            let behind = self.pieces.iter().filter(|piece| !piece.acked && after(piece.start, start) > 0);
            let until = behind.map(|piece| piece.start).filter(|next| after(end, *next) > 0);
            let until = until.min_by_key(|next| next.wrapping_sub(start)).unwrap_or(end);
            self.pieces.push(Piece { start, end: until, time, resent: false, acked: false });
            start = until;
        }
    }

    fn came(&mut self, time: u64, packet: &Tcp) -> Option<u64> {
        self.closed = packet.window == 0;
        self.left?;
        let here = |piece: &Piece| piece.quarter() == packet.ack >> 30;
        let covered = |piece: &Piece| !piece.acked && after(packet.ack, piece.start) > 0;
        let last = self
            .pieces
            .iter()
            .filter(|piece| covered(piece))
            .max_by_key(|piece| piece.end.wrapping_sub(packet.ack) as i32);
        let last = *last?;
        let before = |piece: &&Piece| after(last.start, piece.start) > 0 && (!piece.acked || here(piece));
        let newest = self.pieces.iter().filter(before).map(|piece| piece.time).max();
        let good = packet.ack == last.end && here(&last) && !last.resent && newest <= Some(last.time);
        self.left = Some(last.end);
        for piece in &mut self.pieces {
            piece.acked |= after(packet.ack, piece.start) > 0;
        }
        good.then(|| time - last.time)
    }
}

/// Packets from a number on, or about where two quarters of the numbers meet; some close the window.
fn packets() -> impl Strategy<Value = Vec<(usize, Tcp<'static>)>> {
    let packet = (0..SIDES, 100u32..200, 1u32..40, 100u32..240, any::<bool>(), 0u16..10);
    let packet = packet.prop_map(|(side, seq, length, ack, has_data, window)| {
        let payload = if has_data { length } else { 0 };
        (side, Tcp { seq, ack, flags: flag::ACK, payload, window, ..Tcp::default() })
    });
    let first = prop_oneof![Just(0u32), Just((1 << 30) - 150), Just(u32::MAX - 150)];
    (prop::collection::vec(packet, 0..200), first).prop_map(|(mut packets, first)| {
        for (_, packet) in &mut packets {
            packet.seq = packet.seq.wrapping_add(first);
            packet.ack = packet.ack.wrapping_add(first);
        }
        packets
    })
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
            let expected = plain[1 - side].came(time as u64, packet);
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
    let ack = |ack| Tcp { ack, flags: flag::ACK, window: 1, ..Tcp::default() };
    assert_eq!(sent.came(3, &ack(9000), &mut room), None);
    sent.sent(4, &data(10_000, 1), &mut room);
    assert_eq!(sent.came(9, &ack(10_001), &mut room), Some(5));
}

/// Of a connection whose begin was not seen, the first acknowledgment with the number where samples begin is no duplicate, and the
/// second one is.
#[test]
fn the_first_acknowledgment_where_samples_begin_is_no_duplicate() {
    for again in [false, true] {
        let (mut sent, mut room) = (exact::Sent::default(), Room::new(1 << 20));
        for n in 0..4 {
            let packet = Tcp { seq: 2_000 + 1_000 * n, payload: 1_000, ..Tcp::default() };
            sent.sent(u64::from(n), &packet, &mut room);
        }
        let ack = |ack| Tcp { ack, flags: flag::ACK, window: 1, ..Tcp::default() };
        let mut came = |time, number| sent.came(time, &ack(number), &mut room);
        assert_eq!(came(10, 1_000), None);
        assert_eq!(came(11, 2_000), None);
        if again {
            assert_eq!(came(12, 2_000), None);
        }
        assert_eq!(came(14, 4_000), (!again).then_some(13), "{again}");
    }
}

/// What a SYN had with it is sent again after TCP Fast Open has failed: an acknowledgment may be for either.
#[test]
fn data_of_a_syn_that_is_sent_again_gives_no_sample() {
    for begun in [0, 1_000, u32::MAX - 20] {
        let (mut sent, mut room) = (exact::Sent::default(), Room::new(1 << 20));
        let packet = |seq, payload, flags| Tcp { seq, payload, flags, ..Tcp::default() };
        let next = begun.wrapping_add(1);
        sent.sent(0, &packet(begun, 100, flag::SYN), &mut room);
        sent.sent(1_000, &packet(begun, 0, flag::SYN), &mut room);
        let ack = |ack| Tcp { ack, flags: flag::ACK, window: 1, ..Tcp::default() };
        assert_eq!(sent.came(1_010, &ack(next), &mut room), None);
        sent.sent(1_011, &packet(next, 100, flag::ACK), &mut room);
        assert_eq!(sent.came(1_020, &ack(next.wrapping_add(100)), &mut room), None);
        sent.sent(1_030, &packet(next.wrapping_add(100), 100, flag::ACK), &mut room);
        assert_eq!(sent.came(1_040, &ack(next.wrapping_add(200)), &mut room), Some(10));
        // Another connection.
        let other = begun.wrapping_add(1 << 30);
        sent.sent(2_000, &packet(other, 0, flag::SYN), &mut room);
        assert_eq!(sent.came(2_007, &ack(other.wrapping_add(1)), &mut room), Some(7));
    }
}
