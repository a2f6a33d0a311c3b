//! CRCs of lists of any length: the JIT computes short ones in place, the interpreter byte by byte.

use std::fmt::Write;
use std::sync::Arc;

use dataplane::hash::{CRC16, CRC32, Crc};
use dataplane::pipeline::Pipeline;
use p4lang::{Options, compile_str};
use units::SplitMix;

/// Fields of a header, 640 bits.
const WIDTHS: [u32; 14] = [1, 7, 13, 3, 8, 16, 32, 48, 64, 128, 24, 40, 128, 128];

/// From field `from` to before field `to`, in order.
struct List {
    from: usize,
    to: usize,
}

impl List {
    /// The list's bytes, filled up with zero bits, of a header's bytes.
    fn bytes(&self, header: &[u8]) -> Vec<u8> {
        let first: u32 = WIDTHS[..self.from].iter().sum();
        let bits: u32 = WIDTHS[self.from..self.to].iter().sum();
        let bit = |at: u32| header[(at / 8) as usize] >> (7 - at % 8) & 1;
        let mut bytes = vec![0u8; bits.div_ceil(8) as usize];
        for at in 0..bits {
            bytes[(at / 8) as usize] |= bit(first + at) << (7 - at % 8);
        }
        bytes
    }
}

#[test]
fn of_any_list_they_are_those_of_its_bytes() {
    let lists: Vec<List> = (0..WIDTHS.len())
        .flat_map(|from| (from + 1..=WIDTHS.len()).map(move |to| List { from, to }))
        .collect();
    let mut fields = String::new();
    for (index, width) in WIDTHS.iter().enumerate() {
        write!(fields, "bit<{width}> f{index}; ").unwrap();
    }
    let mut body = String::new();
    for (index, list) in lists.iter().enumerate() {
        let names: Vec<_> = (list.from..list.to).map(|field| format!("h.t.f{field}")).collect();
        let list = names.join(", ");
        writeln!(
            body,
            "hash(sum, HashAlgorithm.crc16, 16w0, {{ {list} }}, 32w0x1_0000); sums.write({}, (bit<32>) sum);",
            2 * index
        )
        .unwrap();
        writeln!(
            body,
            "hash(all, HashAlgorithm.crc32, 32w0, {{ {list} }}, 64w0x1_0000_0000); sums.write({}, all);",
            2 * index + 1
        )
        .unwrap();
    }
    let source = format!(
        "#include <v1model.p4>
header T {{ {fields} }} struct H {{ T t; }} struct M {{ }}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{
    state start {{ p.extract(h.t); transition accept; }}
}}
control V(inout H h, inout M m) {{ apply {{}} }}
control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
control D(packet_out p, in H h) {{ apply {{}} }}
control I(inout H h, inout M m, inout standard_metadata_t s) {{
    register<bit<32>>({}) sums;
    apply {{ bit<16> sum; bit<32> all; {body} }}
}}
V1Switch(P(), V(), I(), E(), V(), D()) main;",
        2 * lists.len()
    );
    let program =
        Arc::new(compile_str("hashes.p4", &source, None, &Options::default()).program.expect("compiles"));
    let mut both =
        [Pipeline::interpreted(program.clone(), 1).unwrap(), Pipeline::compiled(program, 1).unwrap()];
    let (crc16, crc32) = (Crc::new(CRC16), Crc::new(CRC32));
    let mut rng = SplitMix::new(7);
    for round in 0..20 {
        let packet: Vec<u8> = match round {
            0 => vec![0; 80],
            1 => vec![0xff; 80],
            _ => (0..80).map(|_| rng.next_u64() as u8).collect(),
        };
        for pipeline in &mut both {
            pipeline.process(0, 1, &packet, &mut Vec::new());
            for (list, sums) in lists.iter().zip(pipeline.state.registers.get(0).all().chunks(2)) {
                let bytes = list.bytes(&packet);
                let expected = [crc16.sum(&bytes), crc32.sum(&bytes)];
                assert_eq!(sums, expected, "fields {} to {}, {bytes:02x?}", list.from, list.to);
            }
        }
    }
}
