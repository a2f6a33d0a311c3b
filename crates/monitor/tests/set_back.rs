//! A clock that is set back while packets come: what they are stamped with goes back, and no round-trip time is made of it.

use monitor::{Options, Rule, Watch};

const RAW_IP: u32 = 101;
const MS: u64 = 1_000_000;

/// A segment of 100 bytes from 10.0.0.1, or what acknowledges it.
fn packet(number: u32, is_ack: bool) -> Vec<u8> {
    let ends: [(u8, u16); 2] = if is_ack { [(2, 80), (1, 1000)] } else { [(1, 1000), (2, 80)] };
    let (payload, seq, ack) = match is_ack {
        true => (0u16, 1, 100 * (number + 1)),
        false => (100, 100 * number, 1),
    };
    let mut bytes = vec![0x45, 0];
    bytes.extend((40 + payload).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    ends.iter().for_each(|(host, _)| bytes.extend([10, 0, 0, *host]));
    ends.iter().for_each(|(_, port)| bytes.extend(port.to_be_bytes()));
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend([0x50, 16, 1, 0, 0, 0, 0, 0]);
    bytes
}

/// What the only flow with samples has, in milliseconds, and the packets that were set back. Each segment is acknowledged after 10 ms,
/// the next one sent 10 ms later; the clock goes back by so much before the acknowledgment of the third.
fn watched(back: u64) -> (u64, Vec<f64>, u64) {
    let options = Options {
        files: Vec::new(),
        rule: Rule::Exact,
        most_flows: 10,
        rtt_bytes: 1 << 20,
        samples: None,
        second: None,
    };
    let mut watch = Watch::new(&options, 0).expect("no file");
    for number in 0..20u32 {
        for is_ack in [false, true] {
            let turn = 2 * number + u32::from(is_ack);
            let time = 1000 * MS + 10 * MS * u64::from(turn) - if turn >= 5 { back } else { 0 };
            watch.packet(RAW_IP, &packet(number, is_ack), 140, time).expect("no file");
        }
    }
    let answer = watch.seen().answer(&options);
    let flows = answer["flows"].as_array().expect("a list");
    let flow = flows.iter().find(|flow| flow["src_port"] == 1000).expect("a flow");
    let rtts = ["min", "p50", "p99"].map(|name| flow[format!("rtt_ms_{name}")].as_f64().expect("a time"));
    (flow["rtt_samples"].as_u64().expect("a number"), rtts.to_vec(), watch.seen().set_back)
}

#[test]
fn what_was_sent_before_the_clock_has_caught_up_gives_no_time() {
    assert_eq!(watched(0), (20, vec![10.0; 3], 0));
    // The acknowledgment comes at 1045 ms in place of 1050, behind its segment at 1040: nobody can tell.
    assert_eq!(watched(5 * MS).0, 20);
    // Third to sixth: acknowledged or sent when the clock was behind what it had been.
    assert_eq!(watched(65 * MS), (16, vec![10.0; 3], 6));
}
