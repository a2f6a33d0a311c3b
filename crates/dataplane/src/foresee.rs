//! What packets that come soon will look up: where the keys of large tables lie in a packet, as far as the parser tells without running,
//! so that memory can be asked for before a packet's turn. Nothing but time depends on it: a wrong guess asks for memory in vain.

use std::collections::HashMap;

use p4lang::ir::{
    ExprKind, HeaderRef, MatchKind, Parser, Place, Program, StateRef, Stmt, TableId, Transition, VarId,
};
use p4lang::lower::v1model::V1Model;
use smallvec::SmallVec;

use crate::executor::View;
use crate::state::State;
use crate::state::exact::grouped;
use crate::state::table::TableState;

/// Words of a key that is looked for.
const MOST_WORDS: usize = 8;

/// Kinds of keys whose lookups wait for memory: ternary ones search longer.
const FORESEEN: [MatchKind; 2] = [MatchKind::Exact, MatchKind::Lpm];

/// A field that lies in 16 bytes: where it begins in a packet, in bits, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    from: usize,
    bits: usize,
}

impl Field {
    /// `None`: it lies in more bytes.
    fn new(from: usize, bits: usize) -> Option<Field> {
        (from % 8 + bits <= 128).then_some(Field { from, bits })
    }

    /// Its value, if the packet is long enough.
    #[inline(always)]
    fn read(self, packet: &[u8]) -> Option<u128> {
        let (first, end) = (self.from / 8, self.from + self.bits);
        if let Some(eight) = packet.get(first..).and_then(|bytes| bytes.first_chunk())
            && end <= 8 * first + 64
        {
            return Some(u128::from(u64::from_be_bytes(*eight) << (self.from % 8) >> (64 - self.bits)));
        }
        let bytes = packet.get(first..end.div_ceil(8))?;
        let all = bytes.iter().fold(0, |all: u128, byte| all << 8 | u128::from(*byte));
        let behind = end.next_multiple_of(8) - end;
        Some(all << (128 - self.bits - behind) >> (128 - self.bits))
    }
}

/// A table whose keys are fields of the packet alone.
#[derive(Debug)]
struct Foreseen {
    table: TableId,
    fields: SmallVec<[Field; MOST_WORDS]>,
}

impl Foreseen {
    /// Has `ask` ask for memory for a packet's key, of which it gets the words, if the table has many entries.
    #[inline(always)]
    fn look(&self, state: &State, packet: &[u8], ask: fn(&TableState, &[u64])) {
        let table = &state.tables[self.table.index()];
        if table.is_wide()
            && let Some((key, words)) = self.key(packet)
        {
            ask(table, &key[..words]);
        }
    }

    /// The words of a packet's key, and how many they are.
    #[inline(always)]
    fn key(&self, packet: &[u8]) -> Option<([u64; MOST_WORDS], usize)> {
        let (mut key, mut words) = ([0; MOST_WORDS], 0);
        for field in &self.fields {
            let value = field.read(packet)?;
            *key.get_mut(words)? = value as u64;
            words += 1;
            if field.bits > 64 {
                *key.get_mut(words)? = (value >> 64) as u64;
                words += 1;
            }
        }
        Some((key, words))
    }
}

/// The tables of a program that may be so large that asking for memory ahead gains.
#[derive(Debug, Default)]
pub(crate) struct Foresight(Vec<Foreseen>);

impl Foresight {
    pub fn of(program: &Program, view: &View) -> Foresight {
        let large = |id: &TableId| {
            let table = &program[*id];
            grouped(table.size as usize) && table.keys.iter().all(|key| FORESEEN.contains(&key.kind))
        };
        let tables: Vec<TableId> = (0..program.tables.len() as u32).map(TableId).filter(large).collect();
        let Some(v1) = view.downcast_ref::<V1Model>().filter(|_| !tables.is_empty()) else {
            return Foresight::default();
        };
        let places = places(program, &program[v1.parser]);
        let foreseen = |table: TableId| {
            let field = |key: &p4lang::ir::Key| match key.expr.kind {
                ExprKind::Read(Place::Var(var)) => places.get(&var).copied(),
                _ => None,
            };
            let fields: Option<SmallVec<_>> = program[table].keys.iter().map(field).collect();
            let fields = fields.filter(|fields| !fields.is_empty())?;
            Some(Foreseen { table, fields })
        };
        Foresight(tables.into_iter().filter_map(foreseen).collect())
    }

    /// Whether asking ahead may gain with the entries that there are.
    #[inline]
    pub fn gains(&self, state: &State) -> bool {
        self.0.iter().any(|table| state.tables[table.table.index()].is_wide())
    }

    /// Asks for what the lookups of a packet read first.
    #[inline]
    pub fn prefetch(&self, state: &State, packet: &[u8]) {
        self.0.iter().for_each(|table| table.look(state, packet, TableState::prefetch));
    }

    /// Asks for what they read then, by what [`Foresight::prefetch`] has let come.
    #[inline]
    pub fn prefetch_rows(&self, state: &State, packet: &[u8]) {
        self.0.iter().for_each(|table| table.look(state, packet, TableState::prefetch_row));
    }
}

/// Where the fields of headers lie in a packet that comes to them by as few states as can be.
fn places(program: &Program, parser: &Parser) -> HashMap<VarId, Field> {
    let mut places = HashMap::new();
    let mut seen = vec![false; parser.states.len()];
    let mut next = vec![(parser.start, 0)];
    // By the number of states before.
    while !next.is_empty() {
        let mut behind = Vec::new();
        for (state, from) in next {
            let StateRef::State(index) = state else { continue };
            let index = index as usize;
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            let state = &parser.states[index];
            let Some(to) = extracted(program, &state.body, from, &mut places) else { continue };
            match &state.next {
                Transition::Direct(state) => behind.push((*state, to)),
                Transition::Select { cases, .. } => behind.extend(cases.iter().map(|case| (case.next, to))),
            }
        }
        next = behind;
    }
    places
}

/// Notes where a state's headers lie if it begins at a bit; gives the bit behind them, if that is the same in all packets.
fn extracted(
    program: &Program,
    body: &[Stmt],
    mut from: usize,
    places: &mut HashMap<VarId, Field>,
) -> Option<usize> {
    for stmt in body {
        match stmt {
            Stmt::Extract { header: HeaderRef::Header(id), varbit_bits } => {
                let header = &program[*id];
                let ty = &program[header.ty];
                let before = ty.varbit.map_or(ty.fields.len(), |at| at as usize);
                for (at, field) in ty.fields[..before].iter().enumerate() {
                    if let Some(place) = Field::new(from + field.bit_offset as usize, field.width as usize) {
                        places.entry(VarId(header.first_field.0 + at as u32)).or_insert(place);
                    }
                }
                if varbit_bits.is_some() {
                    return None;
                }
                from += ty.fixed_bits as usize;
            }
            Stmt::Assign { .. }
            | Stmt::CopyHeader { .. }
            | Stmt::CopyVarbit { .. }
            | Stmt::ResetHeader(_)
            | Stmt::Lookahead { .. }
            | Stmt::Verify { .. }
            | Stmt::Extern(_) => {}
            _ => return None,
        }
    }
    Some(from)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use num_bigint::BigUint;
    use proptest::prelude::*;

    use super::*;
    use crate::pipeline::{Output, Pipeline};
    use crate::state::table::{Target, WIDE};
    use p4lang::ir::EntryMatch;

    /// A header of fields of such widths behind another, of which some packets have a third between; a table for each field.
    fn program(widths: &[u32], by_prefix: bool) -> Arc<Program> {
        let fields: String =
            widths.iter().enumerate().map(|(at, width)| format!("bit<{width}> f{at}; ")).collect();
        let padding = (8 - widths.iter().sum::<u32>() % 8) % 8;
        let last = if padding > 0 { format!("bit<{padding}> last;") } else { String::new() };
        let kind = if by_prefix { "lpm" } else { "exact" };
        let table = |at: usize| {
            format!(
                "table t{at} {{ key = {{ h.b.f{at}: {kind}; }} actions = {{ hit; miss; }} size = 70000; default_action = miss(); }}"
            )
        };
        let tables: String = (0..widths.len()).map(table).collect();
        let applied: String = (0..widths.len()).map(|at| format!("t{at}.apply(); ")).collect();
        let text = format!(
            "#include <core.p4>
             #include <v1model.p4>
             header First {{ bit<5> kind; bit<3> rest; }} header Between {{ bit<24> all; }} header B {{ {fields}{last} }}
             struct H {{ First a; Between between; B b; }} struct M {{ bit<16> hits; }}
             parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{
                 state start {{ p.extract(h.a); transition select(h.a.kind) {{ 1: longer; default: shorter; }} }}
                 state longer {{ p.extract(h.between); transition shorter; }}
                 state shorter {{ p.extract(h.b); transition accept; }}
             }}
             control V(inout H h, inout M m) {{ apply {{}} }}
             control I(inout H h, inout M m, inout standard_metadata_t s) {{
                 action hit() {{ s.egress_spec = s.egress_spec + 1; }} action miss() {{}}
                 {tables}
                 apply {{ {applied} }}
             }}
             control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
             control C(inout H h, inout M m) {{ apply {{}} }}
             control D(packet_out p, in H h) {{ apply {{ p.emit(h); }} }}
             V1Switch(P(), V(), I(), E(), C(), D()) main;"
        );
        let compiled = p4lang::compile_str("foresee.p4", &text, None, &p4lang::Options::default());
        Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
    }

    fn hit() -> Target {
        Target::Action { action: 0, args: [].into() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// The keys that are foreseen are those that the program looks up: with an entry of each, and no other, each is hit.
        #[test]
        fn foreseen_keys_are_looked_up(
            widths in prop::collection::vec(1u32..=128, 1..4),
            bytes in prop::collection::vec(any::<u8>(), 60),
            by_prefix in any::<bool>(),
        ) {
            let mut packet = bytes;
            // Not the kind that has a header between.
            packet[0] |= 0x80;
            let mut pipeline = Pipeline::interpreted(program(&widths, by_prefix), 1).unwrap();
            let foreseen = &pipeline.foresight.0;
            // All fields, but those that lie in 17 bytes.
            prop_assert!(foreseen.len() >= widths.iter().filter(|width| **width <= 121).count());
            for table in foreseen {
                let (key, words) = table.key(&packet).unwrap();
                let width = widths[table.table.index()];
                prop_assert_eq!(words, width.div_ceil(64) as usize);
                let value = BigUint::from(u128::from(key[1]) << 64 | u128::from(key[0]));
                let matched = match by_prefix {
                    true => EntryMatch::Lpm { value, prefix_len: width },
                    false => EntryMatch::Exact(value),
                };
                pipeline.state.tables[table.table.index()].insert(vec![matched], 0, hit(), false);
                // Too short for its fields: nothing is foreseen of it.
                prop_assert_eq!(table.key(&packet[..1]), None);
            }
            let mut outputs = Vec::<Output>::new();
            pipeline.process(0, 0, &packet, &mut outputs);
            prop_assert_eq!(outputs[0].port as usize, pipeline.foresight.0.len());
        }

        /// Asking changes nothing, and leads to no place that is not there, for any packet and any state of a table.
        #[test]
        fn asking_is_harmless(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..20),
            more in 0u64..2,
            by_prefix in any::<bool>(),
        ) {
            let mut pipeline = Pipeline::interpreted(program(&[32, 16], by_prefix), 1).unwrap();
            let entries = WIDE as u64 + more;
            for number in 0..entries {
                let value = (number.wrapping_mul(0x9e37_79b9) & u64::from(u32::MAX)).into();
                let matched = match by_prefix {
                    true => EntryMatch::Lpm { value, prefix_len: 32 },
                    false => EntryMatch::Exact(value),
                };
                pipeline.state.tables[0].insert(vec![matched], 0, hit(), false);
            }
            prop_assert_eq!(pipeline.foresees(), more > 0);
            for packet in &packets {
                pipeline.prefetch(packet);
                pipeline.prefetch_rows(packet);
            }
        }
    }

    /// A computed key, one of another kind, and tables that cannot be large.
    #[test]
    fn what_is_not_known_is_not_foreseen() {
        let text = include_str!("../../../examples/p4/ipv4_router/ipv4_router.p4")
            .replace("hdr.ipv4.dst : lpm;", "hdr.ipv4.dst : exact;");
        let foreseen = |text: &str| {
            let compiled = p4lang::compile_str("router.p4", text, None, &p4lang::Options::default());
            let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
            let foresight = Pipeline::interpreted(program, 1).unwrap().foresight.0;
            foresight.iter().map(|table| table.fields.to_vec()).collect::<Vec<_>>()
        };
        assert!(text.contains("hdr.ipv4.dst : exact;") && text.contains("131072"));
        assert_eq!(foreseen(&text), [[Field { from: 8 * 30, bits: 32 }]]);
        assert_eq!(
            foreseen(&text.replace("hdr.ipv4.dst : exact;", "hdr.ipv4.dst + 1 : exact @name(\"k\");")),
            [[]; 0]
        );
        assert_eq!(foreseen(&text.replace("hdr.ipv4.dst : exact;", "hdr.ipv4.dst : ternary;")), [[]; 0]);
        assert_eq!(foreseen(&text.replace("131072", "1024")), [[]; 0]);
    }
}
