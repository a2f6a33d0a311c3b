//! Deficit round robin over queues of which some have shapers, at a port alone.

use switch::{Port, PortConfig, QueueLimit, Queued, Scheduler, Shaping};
use units::{Bytes, Rate, Time};

const BYTES: u64 = 1000;
/// Of a packet at 8 Mbit/s.
const SLOT: Time = Time::from_ms(1);

#[derive(Debug)]
struct Packet;

impl Queued for Packet {
    fn bytes(&self) -> u64 {
        BYTES
    }

    fn came(&self) -> u64 {
        0
    }
}

fn shaper(kbps: u64, burst: u64) -> Option<Shaping> {
    Some(Shaping { rate: Rate::from_kbps(kbps), burst: Bytes::new(burst) })
}

/// Packets that each queue sends in so many slots, while all of them always have one.
fn sent(port: &mut Port<Packet>, now: &mut Time, slots: usize) -> [usize; 3] {
    let mut left = [0; 3];
    for _ in 0..slots {
        *now += SLOT;
        for queue in 0..3 {
            while port.queue(*now, queue).unwrap().waiting_packets < 10 {
                port.push(queue, Packet).unwrap();
            }
        }
        if let Some(popped) = port.pop(*now) {
            port.sent(*now, popped.queue, BYTES);
            left[popped.queue] += 1;
        }
    }
    left
}

/// What a shaper holds back is not saved up for when others have something to send.
#[test]
fn shaped_queues_leave_the_others_their_shares() {
    let limit = QueueLimit { packets: Some(100), bytes: None };
    let mut config = PortConfig::new([limit; 3]);
    // The same by a turn of many packets, and by many turns for one packet.
    for quantum in [BYTES, BYTES / 20] {
        config.scheduler = Scheduler::DeficitRoundRobin { quantum: Bytes::new(quantum) };
        // Of 8 Mbit/s queue 0 is guaranteed a fifth, and has a tenth at first; the others have up to 44 % each.
        for (queue, (weight, kbps)) in config.queues.iter_mut().zip([(4, 800), (8, 3520), (8, 3520)]) {
            queue.weight = weight;
            queue.shaping = shaper(kbps, 2 * BYTES * u64::from(weight));
        }
        let (mut port, mut now) = (Port::new(&config), Time::ZERO);
        let [first, second, third] = sent(&mut port, &mut now, 20_000);
        assert!(first >= 1990 && second.min(third) >= 8780, "{quantum}: {first}, {second}, {third}");
        config.queues[0].shaping = None;
        port.configure(&config);
        let [first, second, third] = sent(&mut port, &mut now, 1000);
        assert!((196..=216).contains(&first), "{quantum}: {first}, {second}, {third}");
        assert_eq!(first + second + third, 1000);
    }
}
