//! What the pass on known bits claims, beside values that there are: of random instructions, and of all values that are asked about
//! while generated programs are compiled, as packets run through their code.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{AbiParam, InstBuilder, MemFlagsData, Type, Value};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{Linkage, Module};
use units::SplitMix;

use super::super::Jit;
use super::super::compile::{Processor, module};
use super::super::known::{Limits, bits};
use crate::layout::Layout;
use crate::pipeline::Pipeline;

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../tests/common/mod.rs"]
pub mod common;
#[path = "../../../tests/generated/program.rs"]
mod program;

const TYPES: [Type; 4] = [I8, I16, I32, I64];
const INPUTS: u64 = 8;
const INSTRUCTIONS: usize = 60;

fn pick<T: Copy>(rng: &mut SplitMix, from: &[T]) -> T {
    from[common::below(rng, from.len())]
}

/// A value at which something changes, or any.
fn number(rng: &mut SplitMix, width: u32) -> u64 {
    let all = u64::MAX >> (64 - width);
    match common::below(rng, 5) {
        0 | 1 => all,
        2 => 1 << (width - 1),
        3 => rng.between(0, 3) & all,
        _ => rng.next_u64() & all,
    }
}

/// A value of the type that has been made already, a constant half of the times.
fn operand(b: &mut FunctionBuilder<'_>, made: &[Value], ty: Type, rng: &mut SplitMix) -> Value {
    let same: Vec<Value> = made.iter().copied().filter(|value| b.func.dfg.value_type(*value) == ty).collect();
    if same.is_empty() || common::coin(rng) {
        let width = rng.between(1, u64::from(ty.bits())) as u32;
        return b.ins().iconst(ty, number(rng, width) as i64);
    }
    pick(rng, &same)
}

/// One instruction more, of any kind that the pass knows, and of some that it does not.
fn instruction(b: &mut FunctionBuilder<'_>, made: &[Value], rng: &mut SplitMix) -> Value {
    let at = common::below(rng, TYPES.len());
    let ty = TYPES[at];
    let x = operand(b, made, ty, rng);
    let y = operand(b, made, ty, rng);
    let by = b.ins().iconst(ty, rng.between(0, u64::from(ty.bits()) + 3) as i64);
    match common::below(rng, 22) {
        0 if at > 0 => {
            let narrow = operand(b, made, TYPES[common::below(rng, at)], rng);
            b.ins().uextend(ty, narrow)
        }
        1 if at > 0 => {
            let narrow = operand(b, made, TYPES[common::below(rng, at)], rng);
            b.ins().sextend(ty, narrow)
        }
        2 if at < 3 => {
            let wide = operand(b, made, I64, rng);
            b.ins().ireduce(ty, wide)
        }
        3 => b.ins().icmp(IntCC::UnsignedLessThan, x, y),
        4 => {
            let which = b.ins().icmp(IntCC::Equal, x, y);
            b.ins().select(which, x, y)
        }
        5 => b.ins().band(x, y),
        6 => b.ins().bor(x, y),
        7 => b.ins().bxor(x, y),
        8 => b.ins().umin(x, y),
        9 => b.ins().umax(x, y),
        10 => b.ins().iadd(x, y),
        11 => b.ins().imul(x, y),
        12 => b.ins().ushr(x, by),
        13 => b.ins().ishl(x, by),
        14 => b.ins().ushr(x, y),
        15 => b.ins().ishl(x, y),
        16 => b.ins().sshr(x, by),
        17 | 18 => {
            // Not 0, by which nothing is divided.
            let divisor = b.ins().bor_imm_u(y, 1);
            if common::coin(rng) { b.ins().udiv(x, divisor) } else { b.ins().urem(x, divisor) }
        }
        19 => b.ins().isub(x, y),
        20 => b.ins().rotl(x, by),
        _ => b.ins().bnot(x),
    }
}

#[test]
fn values_of_random_instructions_are_as_claimed() {
    let flags = MemFlagsData::new().with_notrap();
    let mut low = 0;
    for seed in 0..400 {
        let mut rng = SplitMix::new(seed);
        let mut module = module(Processor::This).unwrap();
        let mut context = module.make_context();
        context.func.signature.params.extend([AbiParam::new(I64); 2]);
        let id = module.declare_function("f", Linkage::Local, &context.func.signature).unwrap();
        let mut parts = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(&mut context.func, &mut parts);
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        b.seal_block(block);
        let (inputs, results) = (b.block_params(block)[0], b.block_params(block)[1]);
        let (mut made, mut limits, mut widths) = (Vec::new(), Limits::new(), Vec::new());
        for input in 0..INPUTS {
            let ty = pick(&mut rng, &TYPES);
            let value = b.ins().load(ty, flags, inputs, input as i32 * 8);
            // As what somebody has stored there, with a limit that it keeps.
            let width = rng.between(1, u64::from(ty.bits())) as u32;
            limits.insert(value, width);
            widths.push(width);
            made.push(value);
        }
        for _ in 0..INSTRUCTIONS {
            let next = instruction(&mut b, &made, &mut rng);
            made.push(next);
        }
        let mut claims = Vec::new();
        for (number, value) in made.iter().enumerate() {
            let ty = b.func.dfg.value_type(*value);
            claims.push((
                bits(&b.func.dfg, &limits, *value),
                b.func.dfg.display_value_inst(*value).to_string(),
            ));
            low += usize::from(claims[number].0 < ty.bits());
            let word = if ty == I64 { *value } else { b.ins().uextend(I64, *value) };
            b.ins().store(flags, word, results, number as i32 * 8);
        }
        b.ins().return_(&[]);
        b.finalize(module.target_config());
        module.define_function(id, &mut context).unwrap();
        module.finalize_definitions().unwrap();
        let code = module.get_finalized_function(id);
        // SAFETY: the function was compiled with this signature and the platform's calling convention.
        let run = unsafe { std::mem::transmute::<*const u8, extern "C" fn(*const u64, *mut u64)>(code) };
        for _ in 0..40 {
            let given: Vec<u64> = widths.iter().map(|width| number(&mut rng, *width)).collect();
            let mut found = vec![0; made.len()];
            run(given.as_ptr(), found.as_mut_ptr());
            for (value, (claim, made_by)) in found.iter().zip(&claims) {
                let used = u64::BITS - value.leading_zeros();
                assert!(used <= *claim, "seed {seed}, {made_by}: {value:#x} has more than {claim} bits");
            }
        }
        // SAFETY: the function is not called any more.
        unsafe { module.free_memory() };
    }
    assert!(low > 8000, "only {low} claims say anything");
}

/// Where code that this thread compiles notes bits that a value should not have.
#[derive(Clone, Copy)]
struct Watch {
    excess: &'static AtomicU64,
    claims: u64,
}

thread_local! {
    static WATCH: Cell<Option<Watch>> = const { Cell::new(None) };
}

/// Has the code look whether a value is as the pass claims, wherever the generator asks for it.
pub fn watch(b: &mut FunctionBuilder<'_>, value: Value, claim: u32) {
    let Some(Watch { excess, claims }) = WATCH.get() else { return };
    let ty = b.func.dfg.value_type(value);
    if claim >= ty.bits() {
        return;
    }
    WATCH.set(Some(Watch { excess, claims: claims + 1 }));
    let word = if ty == I64 { value } else { b.ins().uextend(I64, value) };
    let beyond = b.ins().ushr_imm_u(word, i64::from(claim));
    let at = b.ins().iconst(I64, excess.as_ptr() as i64);
    let flags = MemFlagsData::new().with_notrap();
    let before = b.ins().load(I64, flags, at, 0);
    let all = b.ins().bor(before, beyond);
    b.ins().store(flags, all, at, 0);
}

#[test]
fn values_of_generated_programs_are_as_claimed() {
    static EXCESS: AtomicU64 = AtomicU64::new(0);
    let mut claims = 0;
    for seed in 1..=60 {
        let mut rng = SplitMix::new(seed);
        let source = program::generate(&mut rng);
        let compiled = p4lang::compile_str("generated.p4", &source, None, &p4lang::Options::default());
        let program = Arc::new(compiled.program.expect("it compiles"));
        WATCH.set(Some(Watch { excess: &EXCESS, claims: 0 }));
        // In this thread, which has the watch.
        let layout = Arc::new(Layout::new(&program).unwrap());
        let native = Jit::with_path(program.clone(), layout.clone(), crate::path::native(&program));
        claims += WATCH.take().expect("it was set above").claims;
        let native = native.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut pipeline = [Pipeline::with_executor(program.clone(), layout, Arc::new(native), seed)];
        common::fill(&mut pipeline, &mut rng);
        let [pipeline] = &mut pipeline;
        for round in 0..100 {
            let bytes = common::packet(&program, &mut rng);
            let (now, port) = (round * 1_000_000, rng.between(0, 3) as u32);
            if round % 2 == 0 {
                pipeline.process(now, port, &bytes, &mut Vec::new());
            } else {
                common::queued(pipeline, now, port, &bytes, round % 4 == 1);
            }
            let excess = EXCESS.load(Ordering::Relaxed);
            assert_eq!(excess, 0, "seed {seed}, packet {round} {bytes:02x?}:\n{source}");
        }
    }
    assert!(claims > 10_000, "only {claims} claims");
}
