//! One native function under construction: the pieces that all other generators of this module share.
//!
//! A scalar of at most 64 bits is one Cranelift `i64`, zero-extended; a wider one is `ceil(width / 64)` of them, least significant
//! first, unused high bits zero ([`Limbs`]). Local variables of few limbs live in Cranelift variables, everything else in the
//! frame. Memory that cannot overlap (different headers, stacks, variables, the context) is told apart by alias regions, so that
//! Cranelift forwards stores to loads; every access to a header uses the header's region and touches none of its neighbours
//! with a store.

use std::collections::{HashMap, HashSet};
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, AliasRegion, AliasRegionData, Block, InstBuilder, MemFlagsData, SigRef, Signature, StackSlot,
    StackSlotData, StackSlotKind, Type, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};
use p4lang::ir::{CounterId, HeaderId, LabelId, Program, RegisterId, StackId, VarHome, VarId};
use smallvec::SmallVec;

use crate::executor::{Part, View};
use crate::jit::JitError;
use crate::jit::in_place::InPlace;
use crate::jit::known::{self, Limits};
use crate::jit::native::Native;
use crate::layout::Layout;
use crate::refused::MAX_STACK;
use crate::state::places::Place;

/// A value of any width, see the module's comment.
pub(crate) type Limbs = SmallVec<[Value; 2]>;

/// Locals of more limbs than this live in the frame.
const MAX_SSA_LIMBS: u32 = 4;

/// Number of alias regions that one function may use; more objects than that share them.
const MAX_REGIONS: u32 = 8192;

/// Ways to a block that end in one jump to it: with very many ways to one block, removing those that are never taken is quadratic.
const TOGETHER: usize = 64;

/// Memory that overlaps nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Region {
    Context,
    /// Tables, registers, counters and what describes them.
    State,
    Packet,
    Output,
    Global(VarId),
    Header(HeaderId),
    Stack(StackId),
    Register(RegisterId),
    Counter(CounterId),
    /// Stack slots of the function.
    Scratch,
}

/// Where `Break` and `Continue` of a label go.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub leave: Block,
    pub again: Option<Block>,
}

/// What leads to a block that has not begun, or that is still open.
#[derive(Default)]
struct Ways {
    count: usize,
    /// Blocks in front of it, each of which ends some of the ways.
    before: Vec<Block>,
}

pub(crate) struct Gen<'a, 'f> {
    pub program: &'a Program,
    pub layout: &'a Layout,
    pub b: FunctionBuilder<'f>,
    pub call_conv: CallConv,
    /// The packet's [`crate::context::Context`].
    pub ctx: Value,
    pub frame: Value,
    pub labels: HashMap<LabelId, Target>,
    /// Where a packet goes that is dropped.
    pub out: Block,
    locals: HashMap<VarId, SmallVec<[Variable; 1]>>,
    globals: HashMap<VarId, Variable>,
    /// Whether the function begins with a frame that is zero.
    pub from_zero: bool,
    /// The global variables whose values somebody reads in the frame after the function; `None`: all. Others that are in variables
    /// here need not be in the frame as well.
    pub in_frame: Option<HashSet<VarId>>,
    regions: HashMap<Region, AliasRegion>,
    limits: Limits,
    /// Values that are read from the data of an action: from where, and how far behind.
    pub data: HashMap<Value, (Value, i32)>,
    /// As many words as any action has data.
    pub zeros: &'a [u64],
    stack_of_header: &'a [Option<StackId>],
    /// Where registers lie.
    pub places: &'a [Place],
    /// Fields that the program assigns.
    pub written: &'a HashSet<VarId>,
    /// Variables that the program reads.
    pub read: &'a HashSet<VarId>,
    signatures: HashMap<(usize, bool), SigRef>,
    /// Set in parsers.
    pub parsing: Option<super::parser::Parsing>,
    pub in_place: InPlace,
    ways: HashMap<Block, Ways>,
    /// Blocks that no more jumps lead to.
    sealed: HashSet<Block>,
    /// Of whole paths: how far the packet has come, see [`Native::stage`].
    pub stage: Option<Variable>,
    /// Whether the code so far may ask the architecture for something, see [`Native::requested`].
    pub asks: bool,
    /// While a parser with a cycle runs: what is left of the packet's work, which is in the context at its end, and for helpers.
    pub work: Option<Variable>,
    /// Where a parser has run: the bytes that it has read.
    pub parsed: Option<Variable>,
    /// False after a jump: what follows in the same IR block is dead.
    pub alive: bool,
    /// Bytes of stack slots. None is used twice.
    pub stack_used: u64,
    /// How many more values it would have with what values of many limbs cost, see [`Gen::wide`].
    pub crowding: u64,
    /// Blocks that there were as each variable was declared, summed up.
    kept: u64,
}

impl<'a, 'f> Gen<'a, 'f> {
    /// Starts a function `fn(ctx)`; `frame` and the rest are loaded by the caller.
    pub fn new(
        program: &'a Program,
        layout: &'a Layout,
        (stack_of_header, written, read): (&'a [Option<StackId>], &'a HashSet<VarId>, &'a HashSet<VarId>),
        (zeros, places): (&'a [u64], &'a [Place]),
        mut b: FunctionBuilder<'f>,
        call_conv: CallConv,
    ) -> Self {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let ctx = b.block_params(entry)[0];
        let out = b.create_block();
        Gen {
            program,
            layout,
            b,
            call_conv,
            ctx,
            frame: ctx,
            labels: HashMap::new(),
            out,
            locals: HashMap::new(),
            globals: HashMap::new(),
            from_zero: false,
            in_frame: None,
            regions: HashMap::new(),
            limits: Limits::new(),
            data: HashMap::new(),
            zeros,
            stack_of_header,
            places,
            written,
            read,
            signatures: HashMap::new(),
            parsing: None,
            in_place: InPlace::default(),
            ways: HashMap::new(),
            sealed: HashSet::new(),
            stage: None,
            asks: false,
            work: None,
            parsed: None,
            alive: true,
            stack_used: 0,
            crowding: 0,
            kept: 0,
        }
    }

    pub fn iconst(&mut self, value: u64) -> Value {
        self.b.ins().iconst(I64, value as i64)
    }

    /// An address known now. It must stay valid as long as the code does.
    pub fn address<T: ?Sized>(&mut self, at: *const T) -> Value {
        self.iconst(at.cast::<u8>() as u64)
    }

    /// The number of low bits of a value that can be other than zero.
    pub fn bits(&mut self, value: Value) -> u32 {
        let bits = known::bits(&self.b.func.dfg, &self.limits, value);
        #[cfg(test)]
        super::tests::claims::watch(&mut self.b, value, bits);
        bits
    }

    /// As [`Gen::bits`], as far as the instructions show that make the value, whatever is in variables and memory.
    pub fn shown_bits(&mut self, value: Value) -> u32 {
        let bits = known::bits(&self.b.func.dfg, &Limits::new(), value);
        #[cfg(test)]
        super::tests::claims::watch(&mut self.b, value, bits);
        bits
    }

    /// A value that is known to have no bits but the low `width`, as values of that width in variables and memory are.
    pub fn limited(&mut self, value: Value, width: u32) -> Value {
        let limit = self.limits.entry(value).or_insert(width);
        *limit = width.min(*limit);
        value
    }

    pub fn and_const(&mut self, value: Value, mask: u64) -> Value {
        if self.bits(value) <= mask.trailing_ones() {
            return value;
        }
        // As moves, which need no constant.
        let narrow = match mask {
            0xff => I8,
            0xffff => I16,
            0xffff_ffff => I32,
            _ => return self.b.ins().band_imm_u(value, mask as i64),
        };
        let value = self.b.ins().ireduce(narrow, value);
        self.b.ins().uextend(I64, value)
    }

    /// Keeps the low `width` bits.
    pub fn truncate(&mut self, value: Value, width: u32) -> Value {
        self.and_const(value, mask(width))
    }

    pub fn shl_const(&mut self, value: Value, by: u32) -> Value {
        if by == 0 {
            return value;
        }
        self.b.ins().ishl_imm_u(value, i64::from(by))
    }

    pub fn shr_const(&mut self, value: Value, by: u32) -> Value {
        if by == 0 {
            return value;
        }
        if self.bits(value) <= by {
            return self.iconst(0);
        }
        self.b.ins().ushr_imm_u(value, i64::from(by))
    }

    pub fn add_const(&mut self, value: Value, by: i64) -> Value {
        if by == 0 {
            return value;
        }
        self.b.ins().iadd_imm_s(value, by)
    }

    /// A condition (`i8`) as a number.
    pub fn extend(&mut self, cond: Value) -> Value {
        self.b.ins().uextend(I64, cond)
    }

    pub fn is_zero(&mut self, value: Value) -> Value {
        self.b.ins().icmp_imm_s(IntCC::Equal, value, 0)
    }

    pub fn flags(&mut self, region: Region) -> MemFlagsData {
        let next = self.regions.len() as u32;
        let region = match self.regions.get(&region) {
            Some(region) => *region,
            None => {
                let id = next % MAX_REGIONS;
                let data = AliasRegionData { user_id: id, description: "".into() };
                let new = self.b.func.dfg.alias_regions.insert(data);
                self.regions.insert(region, new);
                new
            }
        };
        // No access of ours can trap; none needs alignment.
        MemFlagsData::new().with_notrap().with_alias_region(Some(region))
    }

    pub fn region_of_header(&self, header: HeaderId) -> Region {
        match self.stack_of_header[header.index()] {
            Some(stack) => Region::Stack(stack),
            None => Region::Header(header),
        }
    }

    pub fn region_of_var(&self, var: VarId) -> Region {
        match self.program[var].home {
            VarHome::Field { header, .. } | VarHome::Valid(header) => self.region_of_header(header),
            VarHome::Global | VarHome::NextIndex(_) | VarHome::Local => Region::Global(var),
        }
    }

    pub fn load(&mut self, ty: Type, region: Region, at: Value, offset: i32) -> Value {
        let flags = self.flags(region);
        self.b.ins().load(ty, flags, at, offset)
    }

    /// As [`Gen::load`], of memory that nothing writes while the function runs, and that is there whenever it does: read where the value
    /// is used, and again rather than kept.
    pub fn load_fixed(&mut self, ty: Type, region: Region, at: Value, offset: i32) -> Value {
        let flags = self.flags(region).with_readonly().with_can_move();
        self.b.ins().load(ty, flags, at, offset)
    }

    pub fn store(&mut self, region: Region, value: Value, at: Value, offset: i32) {
        self.writes(region);
        let flags = self.flags(region);
        self.b.ins().store(flags, value, at, offset);
    }

    /// A field of the context, zero-extended.
    pub fn load_ctx(&mut self, offset: usize, bytes: usize) -> Value {
        let ctx = self.ctx;
        let value = self.load(int(bytes), Region::Context, ctx, offset as i32);
        if bytes == 8 { value } else { self.b.ins().uextend(I64, value) }
    }

    /// As [`Gen::load_ctx`], of a field that stays as it is while the function runs.
    pub fn load_ctx_fixed(&mut self, offset: usize) -> Value {
        let ctx = self.ctx;
        self.load_fixed(I64, Region::Context, ctx, offset as i32)
    }

    /// Where the elements of a `Vec` of the state are, given where in the state its pointer is.
    pub fn elements(&mut self, pointer: usize) -> Value {
        let state = self.load_ctx_fixed(offset_of!(Native, state));
        self.load_fixed(I64, Region::State, state, pointer as i32)
    }

    pub fn store_ctx(&mut self, offset: usize, bytes: usize, value: Value) {
        let ctx = self.ctx;
        let value = self.narrow_to(value, bytes);
        self.store(Region::Context, value, ctx, offset as i32);
    }

    /// An `i64` as the integer of `bytes` bytes.
    pub fn narrow_to(&mut self, value: Value, bytes: usize) -> Value {
        if bytes == 8 { value } else { self.b.ins().ireduce(int(bytes), value) }
    }

    /// Calls a Rust function. All arguments are `i64`; so is the result, if there is one.
    pub fn call(&mut self, function: *const u8, args: &[Value], returns: bool) -> Option<Value> {
        let signature = match self.signatures.get(&(args.len(), returns)) {
            Some(signature) => *signature,
            None => {
                let mut signature = Signature::new(self.call_conv);
                signature.params.extend(std::iter::repeat_n(AbiParam::new(I64), args.len()));
                if returns {
                    signature.returns.push(AbiParam::new(I64));
                }
                let new = self.b.import_signature(signature);
                self.signatures.insert((args.len(), returns), new);
                new
            }
        };
        let function = self.address(function);
        let call = self.b.ins().call_indirect(signature, function, args);
        self.b.inst_results(call).first().copied()
    }

    /// As [`Gen::call`], of a function that returns something.
    pub fn call_value(&mut self, function: *const u8, args: &[Value]) -> Value {
        let result = self.call(function, args, true);
        // `call` declares one result if `returns` is set.
        result.expect("declared with a result")
    }

    /// Memory of this call of the function.
    ///
    /// A function that comes to ask for more than [`MAX_STACK`] in all is not finished, see [`Gen::stack_used`].
    pub fn stack(&mut self, bytes: u64) -> StackSlot {
        let bytes = bytes.max(8).next_multiple_of(8);
        self.stack_used = self.stack_used.saturating_add(bytes);
        let bytes = if self.stack_used > MAX_STACK { 8 } else { bytes as u32 };
        self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4))
    }

    pub fn stack_addr(&mut self, slot: StackSlot) -> Value {
        self.b.ins().stack_addr(I64, slot, 0)
    }

    /// Stores limbs one after the other; gives the address.
    pub fn spill(&mut self, value: &[Value]) -> Value {
        let slot = self.stack(value.len() as u64 * 8);
        let at = self.stack_addr(slot);
        for (k, limb) in value.iter().enumerate() {
            self.store(Region::Scratch, *limb, at, k as i32 * 8);
        }
        at
    }

    /// Limbs one after the other.
    pub fn load_limbs(&mut self, region: Region, at: Value, offset: i32, count: u32) -> Limbs {
        (0..count as i32).map(|k| self.load(I64, region, at, offset + k * 8)).collect()
    }

    /// As [`Gen::load_limbs`], see [`Gen::load_fixed`].
    pub fn load_fixed_limbs(&mut self, region: Region, at: Value, offset: i32, count: u32) -> Limbs {
        (0..count as i32).map(|k| self.load_fixed(I64, region, at, offset + k * 8)).collect()
    }

    pub fn jump(&mut self, to: Block) {
        let to = self.way(to);
        self.b.ins().jump(to, &[]);
        self.alive = false;
    }

    pub fn branch(&mut self, cond: Value, then: Block, otherwise: Block) {
        let (then, otherwise) = (self.way(then), self.way(otherwise));
        self.b.ins().brif(cond, then, &[], otherwise, &[]);
        self.alive = false;
    }

    /// Begins a block to which all jumps have been made. A variable that is the same on all ways to it is known in it.
    pub fn start(&mut self, block: Block) {
        self.gather(block);
        self.start_open(block);
        self.seal(block);
    }

    /// Begins a block to which jumps are still to come; [`Gen::seal`] follows the last of them.
    pub fn start_open(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.alive = true;
    }

    /// No more jumps to a block will come.
    pub fn seal(&mut self, block: Block) {
        self.gather(block);
        self.b.seal_block(block);
        self.sealed.insert(block);
    }

    /// Where one more way to a block goes.
    fn way(&mut self, to: Block) -> Block {
        self.assert_open(to);
        let ways = self.ways.entry(to).or_default();
        ways.count += 1;
        if ways.count > TOGETHER && ways.count % TOGETHER == 1 {
            ways.before.push(self.b.create_block());
        }
        ways.before.last().copied().unwrap_or(to)
    }

    /// Ends the ways to a block, where there are many, before it begins or is sealed.
    fn gather(&mut self, to: Block) {
        let before = self.ways.remove(&to).unwrap_or_default().before;
        for block in before {
            self.b.switch_to_block(block);
            self.b.seal_block(block);
            self.b.ins().jump(to, &[]);
        }
    }

    /// What is known in a block would not hold for one more way to it.
    fn assert_open(&self, block: Block) {
        assert!(!self.sealed.contains(&block), "jumps to a block come before it is sealed");
    }

    pub fn block(&mut self) -> Block {
        self.b.create_block()
    }

    /// A block off the common path.
    pub fn cold_block(&mut self) -> Block {
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        block
    }

    /// Runs `body` if `cond`, then goes on.
    pub fn when(&mut self, cond: Value, body: impl FnOnce(&mut Self)) {
        let then = self.block();
        let done = self.block();
        self.branch(cond, then, done);
        self.start(then);
        body(self);
        if self.alive {
            self.jump(done);
        }
        self.start(done);
    }

    /// The limbs of a variable whose value is known without a look into the frame.
    pub fn known_limbs(&mut self, var: VarId) -> Option<Limbs> {
        let width = self.program[var].width;
        let variables = match self.global(var) {
            Some(variable) => smallvec::smallvec![variable],
            None => self.local(var)?,
        };
        let limbs = variables.iter().enumerate().map(|(k, variable)| {
            let value = self.b.use_var(*variable);
            self.limited(value, (width - 64 * k as u32).min(64))
        });
        Some(limbs.collect())
    }

    /// What has the value of a global variable beside the frame. To load what has just been stored takes as long as several
    /// instructions, and what depends on it waits: the key of a lookup on what the lookup before has found.
    pub fn global(&mut self, var: VarId) -> Option<Variable> {
        let declared = &self.program[var];
        if !self.from_zero || declared.home != VarHome::Global || declared.varbit || declared.width > 64 {
            return None;
        }
        // Cranelift has 0 for a variable that nobody has defined.
        if let Some(variable) = self.globals.get(&var) {
            return Some(*variable);
        }
        let variable = self.variable();
        self.globals.insert(var, variable);
        Some(variable)
    }

    /// A variable of Cranelift's.
    pub fn variable(&mut self) -> Variable {
        self.kept += self.b.func.dfg.num_blocks() as u64;
        self.b.declare_var(I64)
    }

    /// What Cranelift keeps of its variables: one number for each of the blocks before the last one that sets it.
    pub fn of_variables(&self) -> u64 {
        self.kept + (self.globals.len() * self.b.func.dfg.num_blocks()) as u64
    }

    /// Whether a global variable's value need not be in the frame.
    pub fn only_in_register(&mut self, var: VarId) -> bool {
        self.in_frame.as_ref().is_some_and(|kept| !kept.contains(&var)) && self.global(var).is_some()
    }

    /// The variables of a local that lives in registers.
    pub fn local(&mut self, var: VarId) -> Option<SmallVec<[Variable; 1]>> {
        let declared = &self.program[var];
        let limbs = declared.width.div_ceil(64);
        if declared.home != VarHome::Local || declared.varbit || limbs > MAX_SSA_LIMBS {
            return None;
        }
        if let Some(variables) = self.locals.get(&var) {
            return Some(variables.clone());
        }
        let variables: SmallVec<[Variable; 1]> = (0..limbs).map(|_| self.variable()).collect();
        self.locals.insert(var, variables.clone());
        Some(variables)
    }
}

/// The low `width` bits set (all, from 64 on).
pub(super) fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// The integer type of 1, 2, 4 or 8 bytes.
pub(super) fn int(bytes: usize) -> Type {
    match bytes {
        1 => I8,
        2 => I16,
        4 => I32,
        _ => I64,
    }
}

/// Fills the body of a function in.
pub(crate) type NativePath = fn(&mut Gen<'_, '_>, &View, Part) -> Result<(), JitError>;
