//! Programs of other kinds beside the same by hand: many tables, many headers, wide arithmetic, and large packets.

use dataplane::pipeline::Pipeline;
use p4lang::ir::EntryMatch;
use units::SplitMix;

use crate::by_hand::{self, be16, be32};
use crate::map::Exact;
use crate::{BATCH, Figure, check, drive, drive_by_hand, race, setup};

const TABLES: usize = 20;
const LARGE: usize = 1500;

/// Names of the figures of a contest.
type Names = [&'static str; 3];

/// Runs both on the packets, which they must treat alike.
fn contest(
    figures: &mut Vec<Figure>,
    [native, by_hand, ratio]: Names,
    (mut jit, packets): (Pipeline, Vec<Vec<u8>>),
    mut hand: impl FnMut(&[u8], &mut Vec<u8>) -> Option<u32>,
) {
    check(&mut jit, &packets, &mut hand);
    let mut a = Vec::new();
    let (mut out, mut pool) = (Vec::new(), Vec::new());
    let times = race(&mut [&mut || drive(&mut jit, &packets, &mut a, BATCH), &mut || {
        drive_by_hand(&packets, (&mut out, &mut pool), |_, bytes, out| hand(bytes, out))
    }]);
    figures.extend([
        Figure { name: native, value: times[0], unit: "ns/packet", goal: None },
        Figure { name: by_hand, value: times[1], unit: "ns/packet", goal: None },
        Figure { name: ratio, value: times[0] / times[1], unit: "x", goal: None },
    ]);
}

/// The router with frames of 1500 bytes.
fn large(figures: &mut Vec<Figure>) {
    let routes = setup::routes();
    let mut packets = setup::packets(&routes);
    packets.truncate(1024);
    packets.iter_mut().for_each(|packet| packet.resize(LARGE, 7));
    let program = setup::program("../../examples/p4/ipv4_router/ipv4_router.p4");
    let mut jit = Pipeline::compiled(program, 1).expect("the router compiles");
    setup::add_routes(&mut jit, &routes);
    let mut hand = by_hand::Router::new(&routes);
    let names = [
        "router, 1500 bytes, native code",
        "router, 1500 bytes, by hand",
        "router, 1500 bytes, native / by hand",
    ];
    contest(figures, names, (jit, packets), |bytes, out| hand.forward(bytes, out));
}

/// A chain of tables, each with 256 entries, whose keys depend on what those before have found.
fn tables(figures: &mut Vec<Figure>) {
    let mut text = include_str!("../data/three_registers.p4").to_string();
    let from = text.find("    register<bit<32>>").expect("the program has registers");
    let to = text.find("control E(").expect("the program has an egress");
    let mut body = String::from("    bit<32> a = h.ipv4.src;\n");
    let mut applies = String::new();
    for table in 0..TABLES {
        body += &format!(
            "    action step{table}(bit<32> v) {{ a = a ^ v; }}
    table t{table} {{
        key = {{ (a ^ h.ipv4.dst) & 0xff : exact @name(\"k\"); }}
        actions = {{ step{table}; NoAction; }}
        default_action = NoAction();
    }}\n"
        );
        applies += &format!("            t{table}.apply();\n");
    }
    body += &format!(
        "    apply {{
        if (h.ipv4.isValid()) {{
{applies}            h.ipv4.identification = a[15:0];
            s.egress_spec = 1;
        }} else {{
            mark_to_drop(s);
        }}
    }}
}}
"
    );
    text.replace_range(from..to, &body);
    let mut jit = Pipeline::compiled(setup::program_text(&text), 1).expect("the tables compile");
    let mut rng = SplitMix::new(4);
    let mut maps: Vec<(Exact, Vec<u32>)> = Vec::new();
    for table in 0..TABLES {
        let (mut map, mut values) = (Exact::new(&[32]), Vec::new());
        for key in 0..256u64 {
            let value = rng.next_u64() as u32;
            let name = format!("step{table}");
            setup::add(
                &mut jit,
                &format!("t{table}"),
                vec![EntryMatch::Exact(key.into())],
                &name,
                &[value.into()],
            );
            map.insert(&[key], values.len() as u32);
            values.push(value);
        }
        maps.push((map, values));
    }
    let packets = setup::packets(&setup::routes());
    let names = ["20 tables, native code", "20 tables, by hand", "20 tables, native / by hand"];
    contest(figures, names, (jit, packets), |frame, out| {
        if frame.len() < 34 || be16(frame, 12) != 0x0800 {
            return None;
        }
        let (mut a, dst) = (be32(frame, 26), be32(frame, 30));
        for (map, values) in &maps {
            if let Some(at) = map.get(&[u64::from((a ^ dst) & 0xff)]) {
                a ^= values[at as usize];
            }
        }
        out.extend_from_slice(frame);
        out[18..20].copy_from_slice(&(a as u16).to_be_bytes());
        Some(1)
    });
}

/// Frames with a VLAN tag, IPv6 with none to three extension headers, VXLAN, and an inner packet.
fn deep(number: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x81, 0, 0, 5, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 80]);
    let extensions = [0, 43, 60, 17];
    let chain = &extensions[3 - number % 4..];
    frame.extend([chain[0], 64]);
    frame.extend([1; 32]);
    for next in &chain[1..] {
        frame.extend([*next, 0, 1, 4, 0, 0, 0, 0]);
    }
    frame.extend([0x30, number as u8, 0x12, 0xb5, 0, 60, 0, 0]);
    frame.extend([8, 0, 0, 0, 0, 0, 9, 0]);
    frame.extend([4; 12]);
    frame.extend([8, 0, 0x45, 0, 0, 38, 0, 1, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, (number >> 8) as u8, number as u8]);
    frame.extend([0, 80, 0, 81, 0, 18, 0, 0]);
    frame.extend([0; 10]);
    frame
}

fn headers(figures: &mut Vec<Figure>) {
    let jit = Pipeline::compiled(setup::program("benches/data/headers.p4"), 1).expect("the headers compile");
    let packets = (0..1024).map(deep).collect();
    let names = ["deep headers, native code", "deep headers, by hand", "deep headers, native / by hand"];
    contest(figures, names, (jit, packets), |frame, out| {
        let mut at = 14;
        let mut kind = be16(frame.get(..at)?, 12);
        if kind == 0x8100 {
            kind = be16(frame.get(at..at + 4)?, 2);
            at += 4;
        }
        if kind != 0x86dd {
            return None;
        }
        let mut next = frame.get(at..at + 40)?[6];
        at += 40;
        let mut extensions = 0;
        while matches!(next, 0 | 43 | 60) {
            extensions += 1;
            if extensions > 4 {
                return None;
            }
            next = frame.get(at..at + 8)?[0];
            at += 8;
        }
        if next != 17 || be16(frame.get(at..at + 8)?, 2) != 4789 {
            return None;
        }
        at += 16;
        if be16(frame.get(at..at + 14)?, 12) != 0x0800 {
            return None;
        }
        at += 14;
        let inner = frame.get(at..at + 28)?;
        if inner[9] != 17 || inner[8] <= 1 {
            return None;
        }
        out.extend_from_slice(frame);
        out[at + 8] -= 1;
        Some(1)
    });
}

/// A number of 256 bits, least significant first, from and to network order.
fn number(bytes: &[u8]) -> [u64; 4] {
    [24, 16, 8, 0].map(|at| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes")))
}

fn wide(figures: &mut Vec<Figure>) {
    let jit = Pipeline::compiled(setup::program("benches/data/wide.p4"), 1).expect("the numbers compile");
    let mut rng = SplitMix::new(5);
    let packets = (0..1024).map(|_| (0..128).map(|_| rng.next_u64() as u8).collect()).collect();
    let names =
        ["wide arithmetic, native code", "wide arithmetic, by hand", "wide arithmetic, native / by hand"];
    contest(figures, names, (jit, packets), |frame, out| {
        if frame.len() < 112 {
            return None;
        }
        let (a, b) = (number(frame), number(&frame[32..]));
        let mut sum = [0u64; 4];
        let mut carry = false;
        for ((to, a), b) in sum.iter_mut().zip(a).zip(b) {
            let (part, over) = a.overflowing_add(b);
            let (part, more) = part.overflowing_add(u64::from(carry));
            (*to, carry) = (part, over || more);
        }
        let shifted = [a[0] << 13, a[1] << 13 | a[0] >> 51, a[2] << 13 | a[1] >> 51, a[3] << 13 | a[2] >> 51];
        sum.iter_mut().zip(shifted).for_each(|(to, by)| *to ^= by);
        if a.iter().rev().lt(b.iter().rev()) {
            let mut borrow = false;
            for (to, a) in sum.iter_mut().zip(a) {
                let (part, under) = to.overflowing_sub(a);
                let (part, more) = part.overflowing_sub(u64::from(borrow));
                (*to, borrow) = (part, under || more);
            }
        }
        let low = |value: &[u64; 4]| u128::from(value[1]) << 64 | u128::from(value[0]);
        let product = low(&a).wrapping_mul(low(&b));
        out.extend_from_slice(frame);
        for (at, word) in sum.iter().rev().enumerate() {
            out[64 + 8 * at..72 + 8 * at].copy_from_slice(&word.to_be_bytes());
        }
        out[96..112].copy_from_slice(&product.to_be_bytes());
        Some(1)
    });
}

pub fn measure(figures: &mut Vec<Figure>) {
    large(figures);
    tables(figures);
    headers(figures);
    wide(figures);
}
