//! How large a value can be, as far as the instructions show that make it.
//!
//! What is known saves masks and folds of checksums. An access to memory is left unchecked only for what instructions show by
//! themselves, without [`Limits`], which rely on what others have stored. `tests/claims.rs` holds what is known against values.

use std::collections::HashMap;

use cranelift_codegen::ir::{DataFlowGraph, InstructionData, Opcode, Value, ValueDef};

/// Instructions in a row that are looked at.
const DEPTH: u32 = 6;

/// What is known of values beside the instructions that make them: each is less than 2 to the power of its number.
pub(super) type Limits = HashMap<Value, u32>;

/// The number of low bits of a value that can be other than zero.
pub(super) fn bits(dfg: &DataFlowGraph, limits: &Limits, value: Value) -> u32 {
    bound(dfg, limits, value, DEPTH)
}

fn bound(dfg: &DataFlowGraph, limits: &Limits, value: Value, depth: u32) -> u32 {
    let most = dfg.value_type(value).bits();
    let made = dfg.resolve_aliases(value);
    let limit = [value, made].iter().filter_map(|value| limits.get(value)).fold(most, |a, b| a.min(*b));
    let ValueDef::Result(inst, 0) = dfg.value_def(made) else { return limit };
    if depth == 0 {
        return limit;
    }
    let of = |value: Value| bound(dfg, limits, value, depth - 1);
    let shown = match dfg.insts[inst] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, .. } => {
            constant(dfg, made).map_or(most, |value| u64::BITS - value.leading_zeros())
        }
        InstructionData::Unary { opcode: Opcode::Uextend | Opcode::Ireduce, arg } => of(arg),
        InstructionData::IntCompare { .. } => 1,
        InstructionData::Ternary { opcode: Opcode::Select, args: [_, a, b] } => of(a).max(of(b)),
        InstructionData::Binary { opcode, args: [a, b] } => match opcode {
            Opcode::Band | Opcode::Umin => of(a).min(of(b)),
            Opcode::Bor | Opcode::Bxor | Opcode::Umax => of(a).max(of(b)),
            Opcode::Iadd => of(a).max(of(b)) + 1,
            Opcode::Imul => of(a) + of(b),
            // Amounts count modulo the width; those that are constants here are less.
            Opcode::Ushr => match constant(dfg, b) {
                Some(by) if by < u64::from(most) => of(a).saturating_sub(by as u32),
                _ => of(a),
            },
            Opcode::Ishl => match constant(dfg, b) {
                Some(by) if by < u64::from(most) => of(a) + by as u32,
                _ => most,
            },
            Opcode::Udiv | Opcode::Urem => of(a),
            _ => most,
        },
        _ => most,
    };
    shown.min(limit)
}

/// The value of a constant.
pub(super) fn constant(dfg: &DataFlowGraph, value: Value) -> Option<u64> {
    let value = dfg.resolve_aliases(value);
    let ValueDef::Result(inst, 0) = dfg.value_def(value) else { return None };
    match dfg.insts[inst] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
            Some(imm.bits() as u64 & super::function::mask(dfg.value_type(value).bits()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cranelift_codegen::ir::condcodes::IntCC;
    use cranelift_codegen::ir::types::{I8, I32, I64};
    use cranelift_codegen::ir::{AbiParam, Function, InstBuilder, MemFlagsData};
    use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

    use super::*;

    /// No bound is below what the operands can come to, and each is as low as the table says.
    #[test]
    fn bounds_of_instructions() {
        let mut function = Function::new();
        function.signature.params.push(AbiParam::new(I64));
        let mut context = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(&mut function, &mut context);
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        let any = b.block_params(block)[0];
        let byte = b.ins().load(I8, MemFlagsData::new(), any, 0);
        let byte = b.ins().uextend(I64, byte);
        let nine = b.ins().band_imm_u(any, 0x1ff);
        let sparse = b.ins().band_imm_u(any, 0x100);
        let five = b.ins().iconst(I64, 5);
        let zero = b.ins().iconst(I64, 0);
        let all = b.ins().iconst(I64, -1);
        let less = b.ins().icmp(IntCC::UnsignedLessThan, any, five);
        let flag = b.ins().uextend(I64, less);
        let half = b.ins().ireduce(I32, any);
        let half = b.ins().uextend(I64, half);
        let cases = [
            (any, 64),
            (byte, 8),
            (nine, 9),
            (sparse, 9),
            (five, 3),
            (zero, 0),
            (all, 64),
            (flag, 1),
            (half, 32),
            (b.ins().iadd(byte, nine), 10),
            (b.ins().iadd(any, five), 64),
            (b.ins().isub(byte, nine), 64),
            (b.ins().imul(byte, nine), 17),
            (b.ins().imul(half, half), 64),
            (b.ins().imul(half, any), 64),
            (b.ins().bor(byte, nine), 9),
            (b.ins().bxor(byte, five), 8),
            (b.ins().band(any, five), 3),
            (b.ins().bnot(byte), 64),
            (b.ins().ushr_imm_u(nine, 4), 5),
            (b.ins().ushr_imm_u(nine, 40), 0),
            (b.ins().ushr(nine, any), 9),
            (b.ins().sshr_imm_u(any, 60), 64),
            (b.ins().ishl_imm_u(nine, 4), 13),
            (b.ins().ishl_imm_u(nine, 60), 64),
            (b.ins().ishl(byte, nine), 64),
            (b.ins().select(less, byte, nine), 9),
            (b.ins().umin(any, nine), 9),
            (b.ins().umax(byte, nine), 9),
            (b.ins().udiv(nine, any), 9),
            (b.ins().urem(nine, any), 9),
            (b.ins().bswap(any), 64),
        ];
        for (number, (value, expected)) in cases.into_iter().enumerate() {
            let found = bits(&b.func.dfg, &Limits::new(), value);
            assert_eq!(found, expected, "case {number}");
        }
        let mut limits = Limits::new();
        limits.insert(any, 12);
        assert_eq!(bits(&b.func.dfg, &limits, any), 12);
        let sum = b.ins().iadd(any, nine);
        assert_eq!(bits(&b.func.dfg, &limits, sum), 13);
        let mut long = nine;
        for _ in 0..DEPTH {
            long = b.ins().iadd(long, five);
        }
        assert_eq!(bits(&b.func.dfg, &Limits::new(), long), 64, "too far to see");
    }
}
