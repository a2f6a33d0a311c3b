//! Whatever bytes and sequence numbers come: an answer, never a panic.

use monitor::{Rule, Table, read};
use proptest::prelude::*;

const RULES: [Rule; 4] = [Rule::Exact, Rule::Tshark, Rule::Tcptrace, Rule::Timestamps];

/// A TCP packet over IPv4 and Ethernet, with timestamps; sequence numbers lie near each other and near where they wrap.
fn tcp() -> impl Strategy<Value = Vec<u8>> {
    (any::<bool>(), -9000i32..9000, -9000i32..9000, any::<u8>(), 0u16..3000, any::<[u32; 2]>()).prop_map(
        |(turned, seq, ack, flags, payload, stamps)| {
            let mut frame = vec![0; 12];
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((20 + 32 + payload).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, 6, 0, 0]);
            let ends = if turned { [2, 1] } else { [1, 2] };
            ends.iter().for_each(|end| frame.extend([10, 0, 0, *end]));
            ends.iter().for_each(|end| frame.extend([0, *end]));
            frame.extend((seq as u32).to_be_bytes());
            frame.extend((ack as u32).to_be_bytes());
            frame.extend([0x80, flags, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
            stamps.iter().for_each(|stamp| frame.extend((stamp % 50).to_be_bytes()));
            frame
        },
    )
}

proptest! {
    #[test]
    fn any_bytes(link in 0u32..300, bytes in prop::collection::vec(any::<u8>(), 0..200), wire in 0u32..3000) {
        _ = read(link, &bytes, wire, 0);
    }

    #[test]
    fn bytes_behind_an_ip_header(six in any::<bool>(), bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut packet = vec![if six { 0x60 } else { 0x45 }];
        packet.extend(bytes);
        _ = read(101, &packet, packet.len() as u32, 0);
    }

    #[test]
    fn any_order_of_packets(packets in prop::collection::vec((tcp(), 0u64..1000), 0..300)) {
        for rule in RULES {
            let mut table = Table::new(rule, 10, 1 << 30);
            let (mut now, mut samples) = (0, 0);
            for (bytes, step) in &packets {
                now += step;
                let seen = read(1, bytes, 3100, now).expect("a whole packet");
                let sample = table.packet(&seen);
                samples += u64::from(sample.is_some());
                prop_assert!(sample.is_none_or(|sample| sample.rtt <= now));
            }
            prop_assert_eq!(table.flows().map(|(_, _, flow)| flow.packets).sum::<u64>(), packets.len() as u64);
            prop_assert_eq!(table.flows().map(|(_, _, flow)| flow.rtt.count()).sum::<u64>(), samples);
        }
    }
}
