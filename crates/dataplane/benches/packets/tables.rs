//! A lookup in a large table beside one in a small table, by match kind.

use dataplane::state::State;
use dataplane::state::table::Target;
use num_bigint::BigUint;
use p4lang::ir::EntryMatch;
use units::SplitMix;

use crate::{BATCH, Figure, cpu_ns, race, race_for, setup};

const SMALL: usize = 100;
const LARGE: usize = 100_000;

/// The router with its table's key changed, and the words of keys that are found.
fn state(kind: &str, entries: usize) -> (State, Vec<u64>) {
    let keys = match kind {
        // A table for each customer, of 1024.
        "vrf" => "hdr.ipv4.identification : exact; hdr.ipv4.dst : lpm;".to_owned(),
        // An address of IPv6, half of it known.
        "lpm128" => "hdr.ipv4.src ++ hdr.ipv4.src ++ hdr.ipv4.dst ++ hdr.ipv4.dst : lpm @name(\"address\");"
            .to_owned(),
        _ => format!("hdr.ipv4.dst : {kind};"),
    };
    let text = include_str!("../../../../examples/p4/ipv4_router/ipv4_router.p4")
        .replace("hdr.ipv4.dst : lpm;", &keys);
    let program = setup::program_text(&text);
    let mut state = State::new(&program);
    let mut rng = SplitMix::new(3);
    let mut keys = Vec::new();
    for number in 0..entries {
        let value = rng.next_u64() as u32;
        let (key, matched) = match kind {
            "exact" => (vec![value.into()], vec![EntryMatch::Exact(value.into())]),
            // A mask of 64 whose bits lie anywhere.
            "ternary" => {
                let mask = (value % 64 + 1).wrapping_mul(0x9e37_79b9) | 0xffff;
                let (value, mask) = (value & mask, mask);
                (vec![value.into()], vec![EntryMatch::Ternary { value: value.into(), mask: mask.into() }])
            }
            // Of any length up to 65 536.
            "range" => {
                let lo = value & 0x7fff_ffff;
                let hi = lo + (rng.next_u64() % 0xffff) as u32 + 1;
                (vec![lo.into()], vec![EntryMatch::Range { lo: lo.into(), hi: hi.into() }])
            }
            "lpm128" => {
                // 32 to 64 bits below one of 20 bits.
                let prefix_len = 32 + (rng.next_u64() % 33) as u32;
                let top = (0x2001_0000u64 << 32 | u64::from(value) << 12) & (u64::MAX << (64 - prefix_len));
                let matched = EntryMatch::Lpm { value: BigUint::from(top) << 64u32, prefix_len };
                (vec![rng.next_u64(), top], vec![matched])
            }
            _ => {
                let prefix_len = 16 + (rng.next_u64() % 9) as u32;
                let value = value & (u32::MAX << (32 - prefix_len));
                let matched = EntryMatch::Lpm { value: value.into(), prefix_len };
                if kind == "vrf" {
                    let vrf = rng.next_u64() % 1024;
                    (vec![vrf, value.into()], vec![EntryMatch::Exact(vrf.into()), matched])
                } else {
                    (vec![value.into()], vec![matched])
                }
            }
        };
        let args = [number as u64, 1, 2].into();
        let priority = if matches!(kind, "ternary" | "range") { rng.next_u64() as u32 >> 1 } else { 0 };
        if state.tables[0].find(&matched, priority).is_none() {
            state.tables[0].insert(matched, priority, Target::Action { action: 0, args }, false);
            keys.push(key);
        }
    }
    // In another order than that of adding.
    for at in (1..keys.len()).rev() {
        keys.swap(at, (rng.next_u64() % (at as u64 + 1)) as usize);
    }
    (state, keys.concat())
}

/// A table of 100 000 entries each of which has a mask of its own and is met by no key: what adding them takes, and a lookup that
/// tries them all.
fn masks(figures: &mut Vec<Figure>) {
    let text = include_str!("../../../../examples/p4/ipv4_router/ipv4_router.p4")
        .replace("hdr.ipv4.dst : lpm;", "hdr.ipv4.dst : ternary;");
    let program = setup::program_text(&text);
    let mut state = State::new(&program);
    let start = cpu_ns();
    for number in 1..=LARGE as u32 {
        let mask = number.reverse_bits() | 1;
        let matched = EntryMatch::Ternary { value: 1u8.into(), mask: mask.into() };
        let args = [u64::from(number), 1, 2].into();
        state.tables[0].insert(vec![matched], number, Target::Action { action: 0, args }, false);
    }
    let adding = (cpu_ns() - start) / 1e6;
    let mut spent = 0;
    let mut look = || {
        let (_, _, work) = state.tables[0].lookup_action(&[0]);
        spent = work;
    };
    look();
    let times = race_for(3, &mut [&mut || (0..3).for_each(|_| look())]);
    let lookup = times[0] * BATCH as f64 / 3.0;
    figures.extend([
        Figure { name: "masks, adding 100 000", value: adding, unit: "ms", goal: None },
        Figure { name: "masks, a lookup that tries all", value: lookup / 1e6, unit: "ms", goal: None },
        Figure {
            name: "masks, time for a unit of work",
            value: lookup / spent as f64,
            unit: "ns",
            goal: Some(("at most", 2.5)),
        },
    ]);
}

pub fn measure(figures: &mut Vec<Figure>) {
    masks(figures);
    for (kind, most, small_name, large_name, ratio_name) in [
        ("exact", 3.0, "exact, 100 entries", "exact, 100 000 entries", "exact, 100 000 / 100 entries"),
        ("lpm", 3.0, "lpm, 100 entries", "lpm, 100 000 entries", "lpm, 100 000 / 100 entries"),
        (
            "ternary",
            20.0,
            "ternary, 100 entries",
            "ternary, 100 000 entries",
            "ternary, 100 000 / 100 entries",
        ),
        (
            "lpm128",
            5.0,
            "lpm of 128 bits, 100 entries",
            "lpm of 128 bits, 100 000 entries",
            "lpm of 128 bits, 100 000 / 100 entries",
        ),
        (
            "vrf",
            5.0,
            "exact and lpm, 100 entries",
            "exact and lpm, 100 000 entries",
            "exact and lpm, 100 000 / 100 entries",
        ),
        ("range", 20.0, "range, 100 entries", "range, 100 000 entries", "range, 100 000 / 100 entries"),
    ] {
        let (small, small_keys) = state(kind, SMALL);
        let (large, large_keys) = state(kind, LARGE);
        let words = if matches!(kind, "vrf" | "lpm128") { 2 } else { 1 };
        let look = |state: &State, keys: &[u64]| {
            for at in 0..BATCH {
                let at = words * at % keys.len();
                let (entry, action, _) = state.tables[0].lookup_action(&keys[at..at + words]);
                std::hint::black_box((entry, action.map(|(action, args)| (action, args[0]))));
            }
        };
        let times = race(&mut [&mut || look(&small, &small_keys), &mut || look(&large, &large_keys)]);
        figures.extend([
            Figure { name: small_name, value: times[0], unit: "ns/lookup", goal: None },
            Figure { name: large_name, value: times[1], unit: "ns/lookup", goal: None },
            Figure { name: ratio_name, value: times[1] / times[0], unit: "x", goal: Some(("at most", most)) },
        ]);
    }
}
