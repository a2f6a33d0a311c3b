//! Programs that the compiler does not make: what comes of them has no meaning, but it stays within the frame.

use p4lang::ir::*;

use super::{Builder, compile, run};

fn field(name: &str, width: u32, varbit: bool, bit_offset: u32) -> HeaderField {
    HeaderField { name: name.into(), width, varbit, bit_offset }
}

/// Copies between a long header and a short one with a varbit field, whose length then is whatever the other had there.
#[test]
fn headers_of_two_types_are_copied_as_far_as_both_go() {
    let long = HeaderType {
        name: "long".into(),
        fields: vec![field("x", 512, false, 0)],
        fixed_bits: 512,
        varbit: None,
    };
    let short = HeaderType {
        name: "short".into(),
        fields: vec![field("a", 8, false, 0), field("v", 32, true, 8)],
        fixed_bits: 8,
        varbit: Some(1),
    };
    let mut builder = Builder::default();
    let mut headers = Vec::new();
    for (number, ty) in [&long, &short, &short].into_iter().enumerate() {
        let header = HeaderId(number as u32);
        let first_field = VarId(builder.vars.len() as u32);
        for (index, declared) in ty.fields.iter().enumerate() {
            let var = builder.var(declared.width, VarHome::Field { header, field: index as u32 });
            builder.vars[var.0 as usize].varbit = declared.varbit;
        }
        let valid = builder.var(1, VarHome::Valid(header));
        let ty = HeaderTypeId(u32::from(number > 0));
        headers.push(Header { name: ty.0.to_string(), ty, first_field, valid, local: false });
    }
    let [x, varbit, other] =
        [0, 1, 2].map(|header: usize| VarId(headers[header].first_field.0 + (header > 0) as u32));
    let same = builder.var(1, VarHome::Global);
    let header = |number| HeaderRef::Header(HeaderId(number));
    let body = vec![
        Stmt::CopyHeader { dst: header(1), src: header(0) },
        Stmt::CopyVarbit { dst: Place::Var(other), src: Place::Var(varbit) },
        Stmt::Assign {
            dst: Place::Var(same),
            src: Expr { width: 1, kind: ExprKind::VarbitEq(Place::Var(varbit), Place::Var(other)) },
        },
        // The last header: there is no more memory behind it than what no load goes beyond.
        Stmt::CopyHeader { dst: header(0), src: header(2) },
    ];
    let mut bench = compile(builder.program((vec![long, short], headers, Vec::new()), body));
    let layout = bench.layout.clone();
    let mut frame = layout.frame();
    layout.set(&mut frame, x, &super::all_ones(512));
    run(&mut bench, &mut frame);
    assert_eq!(layout.get_u64(&frame, same), 1);
    assert_eq!(layout.slot(other).varbit(&frame), (32, &[0xff; 4][..]));
}
