//! Another connection on the same ports: what was sent before it is not of it.

use monitor::{Rule, Table, read};

const MS: u64 = 1_000_000;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A packet of TCP with timestamps over IPv4, from the client or from the server.
struct Packet {
    client: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    payload: u16,
    stamps: (u32, u32),
}

impl Packet {
    fn client(flags: u8, seq: u32, ack: u32, payload: u16, stamps: (u32, u32)) -> Packet {
        Packet { client: true, flags, seq, ack, payload, stamps }
    }

    fn server(flags: u8, seq: u32, ack: u32, stamps: (u32, u32)) -> Packet {
        Packet { client: false, flags, seq, ack, payload: 0, stamps }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0x45, 0];
        bytes.extend((52 + self.payload).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        let ends: [(u8, u16); 2] = if self.client { [(1, 1000), (2, 80)] } else { [(2, 80), (1, 1000)] };
        ends.iter().for_each(|(host, _)| bytes.extend([10, 0, 0, *host]));
        ends.iter().for_each(|(_, port)| bytes.extend(port.to_be_bytes()));
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend([0x80, self.flags, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        bytes.extend(self.stamps.0.to_be_bytes());
        bytes.extend(self.stamps.1.to_be_bytes());
        bytes
    }
}

/// Milliseconds of the samples of packets at so many milliseconds.
fn samples(rule: Rule, packets: &[(u64, Packet)]) -> Vec<u64> {
    let mut table = Table::new(rule, 10, 1 << 20);
    let samples = packets.iter().filter_map(|(at, packet)| {
        table.packet(&read(101, &packet.bytes(), 1500, at * MS).expect("a whole packet"))
    });
    samples.map(|sample| sample.rtt / MS).collect()
}

/// The first loses its last segment for good. The second has lower numbers and values, and comes to those of the first.
fn connections() -> Vec<(u64, Packet)> {
    vec![
        (0, Packet::client(SYN, 100_999, 0, 0, (1000, 0))),
        (10, Packet::server(SYN | ACK, 4999, 101_000, (7000, 1000))),
        (11, Packet::client(ACK, 101_000, 5000, 1000, (2000, 7000))),
        (60_000, Packet::client(SYN, 21_499, 0, 0, (100, 0))),
        (60_020, Packet::server(SYN | ACK, 8999, 21_500, (300, 100))),
        (60_021, Packet::client(ACK, 21_500, 9000, 0, (121, 300))),
        (60_022, Packet::client(ACK, 21_500, 9000, 60_000, (122, 300))),
        (60_042, Packet::server(ACK, 9000, 81_500, (342, 122))),
        (61_900, Packet::client(ACK, 81_500, 9000, 20_500, (2000, 342))),
        (61_920, Packet::server(ACK, 9000, 102_000, (2220, 2000))),
    ]
}

#[test]
fn samples_are_of_the_connection_that_is_there() {
    for rule in [Rule::Exact, Rule::Tshark, Rule::Tcptrace, Rule::Timestamps] {
        assert_eq!(samples(rule, &connections()), [10, 1, 20, 1, 20, 20], "{rule:?}");
    }
}

/// A SYN that is sent again begins nothing.
#[test]
fn a_syn_that_is_sent_again_is_of_the_same_connection() {
    let packets = vec![
        (0, Packet::client(SYN, 999, 0, 0, (1000, 0))),
        (1000, Packet::client(SYN, 999, 0, 0, (2000, 0))),
        (1300, Packet::server(SYN | ACK, 4999, 1000, (7000, 1000))),
    ];
    assert_eq!(samples(Rule::Tshark, &packets), [1300]);
    assert_eq!(samples(Rule::Timestamps, &packets), [1300]);
}
