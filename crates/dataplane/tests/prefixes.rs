//! Tables with a prefix, alone or beside exact keys: what is found is what a list of the entries gives.

use dataplane::state::State;
use dataplane::state::table::Target;
use num_bigint::BigUint;
use p4lang::ir::EntryMatch;
use units::SplitMix;

/// Of a table with keys of these widths, the one at `lpm` a prefix's.
fn state(widths: &[u32], lpm: usize) -> State {
    let fields: String = (0..).zip(widths).map(|(at, width)| format!("bit<{width}> k{at}; ")).collect();
    let kind = |at: usize| if at == lpm { "lpm" } else { "exact" };
    let keys: String = (0..widths.len()).map(|at| format!("m.k{at}: {}; ", kind(at))).collect();
    let text = format!(
        "#include <v1model.p4>
        struct H {{}} struct M {{ {fields} }}
        parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}
        control V(inout H h, inout M m) {{ apply {{}} }}
        control I(inout H h, inout M m, inout standard_metadata_t s) {{
            action one(bit<32> v) {{ s.enq_timestamp = v; }}
            table t {{ key = {{ {keys} }} actions = {{ one; }} default_action = one(0); size = 4096; }}
            apply {{ t.apply(); }}
        }}
        control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
        control D(packet_out p, in H h) {{ apply {{}} }}
        V1Switch(P(), V(), I(), E(), V(), D()) main;"
    );
    let compiled = p4lang::compile_str("prefixes.p4", &text, None, &p4lang::Options::default());
    State::new(&compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
}

/// Few values of a width, whose bits are at its top, at its end, or anywhere.
fn value(rng: &mut SplitMix, width: u32) -> BigUint {
    let few = BigUint::from(rng.next_u64() % 3);
    match rng.next_u64() % 4 {
        0 => few % (1u64 << width.min(32)),
        1 if width > 2 => few << (width - 2),
        2 if width > 40 => few << (width / 2),
        _ => {
            BigUint::new((0..width.div_ceil(32)).map(|_| rng.next_u64() as u32).collect())
                % (BigUint::from(1u8) << width)
        }
    }
}

fn words(values: &[BigUint], widths: &[u32]) -> Vec<u64> {
    let of = |(value, width): (&BigUint, &u32)| {
        let mut digits = value.to_u64_digits();
        digits.resize(width.div_ceil(64) as usize, 0);
        digits
    };
    values.iter().zip(widths).flat_map(of).collect()
}

/// Exact values with the prefix's in its place, its length, and the handle.
type Listed = (Vec<BigUint>, u32, u32);

fn longest(list: &[Listed], key: &[BigUint], lpm: usize, width: u32) -> Option<u32> {
    let covers = |(values, length, _): &&Listed| {
        values.iter().zip(key).enumerate().all(|(at, (a, b))| match at == lpm {
            true => a >> (width - length) == b >> (width - length),
            false => a == b,
        })
    };
    list.iter().filter(covers).max_by_key(|entry| entry.1).map(|entry| entry.2)
}

/// Keys that come to one, two and three words, to more, for which there are maps, and prefixes alone of each.
#[test]
fn what_is_found_is_what_a_list_gives() {
    let shapes: [(&[u32], usize); 16] = [
        (&[32], 0),
        (&[100], 0),
        (&[128], 0),
        (&[192], 0),
        (&[300], 0),
        (&[16, 32], 1),
        (&[32, 9], 0),
        (&[7, 32, 25], 1),
        (&[64, 64], 0),
        (&[65, 32], 1),
        (&[16, 128], 1),
        (&[128, 64], 0),
        (&[64, 1, 48], 1),
        (&[1, 191], 1),
        (&[128, 65], 0),
        (&[300, 128, 8], 1),
    ];
    for (seed, (widths, lpm)) in (0..).zip(shapes) {
        let (mut rng, mut state) = (SplitMix::new(seed), state(widths, lpm));
        let width = widths[lpm];
        let mut list: Vec<Listed> = Vec::new();
        let mut found = 0;
        for round in 0..3000u32 {
            let mut values: Vec<BigUint> = widths.iter().map(|width| value(&mut rng, *width)).collect();
            let length = (rng.next_u64() % u64::from(width + 1)) as u32;
            values[lpm] = &values[lpm] >> (width - length) << (width - length);
            let matches: Vec<EntryMatch> = (0..)
                .zip(&values)
                .map(|(at, value)| match at == lpm {
                    true => EntryMatch::Lpm { value: value.clone(), prefix_len: length },
                    false => EntryMatch::Exact(value.clone()),
                })
                .collect();
            let table = &mut state.tables[0];
            let known = list.iter().position(|entry| entry.0 == values && entry.1 == length);
            assert_eq!(table.find(&matches, 0), known.map(|at| list[at].2), "{widths:?}, {round}");
            if let Some(at) = known {
                table.remove(list.swap_remove(at).2);
            } else if round % 5 == 4 && !list.is_empty() {
                let at = rng.next_u64() as usize % list.len();
                table.remove(list.swap_remove(at).2);
            } else {
                let target = Target::Action { action: 0, args: [u64::from(round)].into() };
                list.push((values, length, table.insert(matches, 0, target, false)));
            }
            // Half of the keys are of an entry, with other bits behind its prefix.
            let mut key: Vec<BigUint> = widths.iter().map(|width| value(&mut rng, *width)).collect();
            if round % 2 == 0
                && let Some((values, length, _)) = list.get(rng.next_u64() as usize % list.len().max(1))
            {
                let behind = &key[lpm] % (BigUint::from(1u8) << (width - length));
                key.clone_from(values);
                key[lpm] += behind;
            }
            let expected = longest(&list, &key, lpm, width);
            assert_eq!(table.lookup(&words(&key, widths)).entry, expected, "{widths:?}, {round}");
            found += usize::from(expected.is_some());
        }
        assert!(found > 1000, "{widths:?}: {found} of 3000 found");
    }
}
