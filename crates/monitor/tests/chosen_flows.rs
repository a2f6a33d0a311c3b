//! An answer with some of the flows: those with the most bytes, of the ones whose protocol, address or port has a text.

use monitor::{Options, Rule, Watch};

const RAW_IP: u32 = 101;

/// A datagram from port `from` to port 53, of 10.0.0.1 and 10.0.0.2 or of 2001:db8::1 and 2001:db8::2.
fn datagram(six: bool, from: u16, payload: u16) -> Vec<u8> {
    let mut packet = match six {
        true => vec![0x60, 0, 0, 0],
        false => vec![0x45, 0],
    };
    let address = |end: u8| match six {
        true => [[0x20, 1, 0xd, 0xb8].as_slice(), &[0; 11], &[end]].concat(),
        false => vec![10, 0, 0, end],
    };
    let ends = [address(1), address(2)].concat();
    match six {
        true => {
            packet.extend((8 + payload).to_be_bytes());
            packet.extend([17, 64]);
        }
        false => {
            packet.extend((28 + payload).to_be_bytes());
            packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        }
    }
    packet.extend(ends);
    for field in [from, 53, 8 + payload, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet
}

#[test]
fn the_text_is_looked_for_before_the_limit() {
    let options = Options {
        files: Vec::new(),
        rule: Rule::Exact,
        most_flows: 1000,
        rtt_bytes: 1 << 30,
        samples: None,
        second: None,
    };
    let mut watch = Watch::new(&options, 0).expect("no file");
    let sent = [(false, 2000, 10), (true, 2000, 20), (false, 3000, 900), (false, 3001, 800)];
    for (six, from, payload) in sent {
        let packet = datagram(six, from, payload);
        let wire = (packet.len() + usize::from(payload)) as u32;
        watch.packet(RAW_IP, &packet, wire, 1).expect("no file");
    }
    let ports = |most, text| {
        let answer = watch.seen().answer_of(&options, most, text);
        assert_eq!(answer["flow_count"], 4);
        let flows = answer["flows"].as_array().expect("a list").clone();
        flows.iter().map(|flow| flow["src_port"].as_u64().expect("a port")).collect::<Vec<_>>()
    };
    assert_eq!(ports(1, None), [3000]);
    assert_eq!(ports(1, Some("10.0.0.1:2000")), [2000]);
    assert_eq!(ports(9, Some(":2000")), [2000, 2000]);
    assert_eq!(ports(9, Some("udp [2001:db8::1]:2000 [2001:db8::2]:53")), [2000]);
    assert_eq!(ports(1, Some("udp 10.0.0.1:300")), [3000]);
    assert_eq!(ports(9, Some("tcp")), [0; 0]);
}
