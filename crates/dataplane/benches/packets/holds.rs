//! The longest that packets wait for one entry that is added to a table, however many it has.

use dataplane::state::State;
use dataplane::state::table::Target;
use p4lang::ir::EntryMatch;
use units::SplitMix;

use crate::{Figure, cpu_ns, setup};

const ENTRIES: u32 = 400_000;

/// Name, key, and an entry of a number that nobody has guessed.
type Kind = (&'static str, &'static str, fn(u64) -> EntryMatch);

const KINDS: [Kind; 5] = [
    ("exact", "exact", |number| EntryMatch::Exact((number as u32).into())),
    ("lpm", "lpm", |number| EntryMatch::Lpm { value: (number as u32).into(), prefix_len: 32 }),
    ("ternary, one mask", "ternary", |number| EntryMatch::Ternary {
        value: (number as u32).into(),
        mask: u32::MAX.into(),
    }),
    ("ternary, many masks", "ternary", |number| EntryMatch::Ternary {
        value: (number as u32).into(),
        mask: (number as u32).into(),
    }),
    ("range", "range", |number| {
        let lo = number as u32 >> 1;
        EntryMatch::Range { lo: lo.into(), hi: (lo + (number >> 40) as u32 % 65_536).into() }
    }),
];

/// Milliseconds of the longest insertion and of one on average. An interruption counts as well: the least of three.
fn longest(key: &str, entry: fn(u64) -> EntryMatch) -> (f64, f64) {
    let text = include_str!("../../../../examples/p4/ipv4_router/ipv4_router.p4")
        .replace("hdr.ipv4.dst : lpm;", &format!("hdr.ipv4.dst : {key};"))
        .replace("size = 131072;", &format!("size = {ENTRIES};"));
    let program = setup::program_text(&text);
    let mut least = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        let mut state = State::new(&program);
        let mut rng = SplitMix::new(5);
        let (mut most, mut sum) = (0.0f64, 0.0);
        for number in 0..ENTRIES {
            let matched = vec![entry(rng.next_u64())];
            if state.tables[0].find(&matched, number).is_some() {
                continue;
            }
            let target = Target::Action { action: 0, args: [u64::from(number), 1, 2].into() };
            let began = cpu_ns();
            state.tables[0].insert(matched, number, target, false);
            let spent = cpu_ns() - began;
            most = most.max(spent);
            sum += spent;
        }
        least = (least.0.min(most / 1e6), least.1.min(sum / 1e6 / f64::from(ENTRIES)));
    }
    least
}

pub fn measure(figures: &mut Vec<Figure>) {
    for (name, key, entry) in KINDS {
        let (most, mean) = longest(key, entry);
        let [longest, average] =
            ["longest insertion", "insertion"].map(|what| format!("{what}, {name}").leak());
        figures.extend([
            Figure { name: longest, value: most, unit: "ms", goal: Some(("at most", 1.0)) },
            Figure { name: average, value: mean * 1e3, unit: "us", goal: None },
        ]);
    }
}
