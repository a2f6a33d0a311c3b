//! A readable form of a lowered program, for tests, bug reports and the curious.

use std::fmt::{self, Display, Formatter};

use super::{BinOp, Expr, ExprKind, HeaderRef, Place, Program};

/// An expression with the names of its variables.
pub struct Named<'a, T>(pub &'a Program, pub &'a T);

impl Display for Named<'_, Place> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.1 {
            Place::Var(var) => f.write_str(&self.0[*var].name),
            Place::Elem { var, index, .. } => {
                write!(f, "{}@[{}]", self.0[*var].name, Named(self.0, &**index))
            }
        }
    }
}

impl Display for Named<'_, HeaderRef> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.1 {
            HeaderRef::Header(header) => f.write_str(&self.0[*header].name),
            HeaderRef::Elem { header, index, .. } => {
                write!(f, "{}@[{}]", self.0[*header].name, Named(self.0, &**index))
            }
        }
    }
}

impl Display for Named<'_, Expr> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Named(program, expr) = self;
        let sub = |e| Named(program, e);
        match &expr.kind {
            ExprKind::Const(value) => write!(f, "{}w{value}", expr.width),
            ExprKind::Read(place) => write!(f, "{}", Named(program, place)),
            ExprKind::Not(e) => write!(f, "~{}", sub(&**e)),
            ExprKind::Neg(e) => write!(f, "-{}", sub(&**e)),
            ExprKind::Binary(op, a, b) => write!(f, "({} {op} {})", sub(&**a), sub(&**b)),
            ExprKind::Concat(a, b) => write!(f, "({} ++ {})", sub(&**a), sub(&**b)),
            ExprKind::Slice { base, hi, lo } => write!(f, "{}[{hi}:{lo}]", sub(&**base)),
            ExprKind::ZeroExtend(e) => write!(f, "zext{}({})", expr.width, sub(&**e)),
            ExprKind::SignExtend(e) => write!(f, "sext{}({})", expr.width, sub(&**e)),
            ExprKind::Select(c, a, b) => {
                write!(f, "({} ? {} : {})", sub(&**c), sub(&**a), sub(&**b))
            }
            ExprKind::VarbitEq(a, b) => {
                write!(f, "({} == {})", Named(program, a), Named(program, b))
            }
            ExprKind::PacketLength => f.write_str("packet.length()"),
        }
    }
}

impl Display for BinOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::Mod => "%",
            BinOp::And => "&",
            BinOp::Or => "|",
            BinOp::Xor => "^",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
            BinOp::Sar => ">>s",
            BinOp::AddSatU => "|+|",
            BinOp::AddSatS => "|+|s",
            BinOp::SubSatU => "|-|",
            BinOp::SubSatS => "|-|s",
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::LtU => "<",
            BinOp::LeU => "<=",
            BinOp::LtS => "<s",
            BinOp::LeS => "<=s",
        })
    }
}

struct Indented<'a>(&'a Program, &'a [super::Stmt], usize);

impl Display for Indented<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        use super::Stmt;
        let Indented(program, block, depth) = *self;
        let pad = "  ".repeat(depth);
        let expr = |e| Named::<Expr>(program, e);
        let place = |p| Named::<Place>(program, p);
        let header = |h| Named::<HeaderRef>(program, h);
        let inner = |b| Indented(program, b, depth + 1);
        for stmt in block {
            match stmt {
                Stmt::Assign { dst, src } => writeln!(f, "{pad}{} = {}", place(dst), expr(src))?,
                Stmt::CopyVarbit { dst, src } => writeln!(f, "{pad}{} = {}", place(dst), place(src))?,
                Stmt::CopyHeader { dst, src } => {
                    writeln!(f, "{pad}header {} = {}", header(dst), header(src))?
                }
                Stmt::ResetHeader(h) => writeln!(f, "{pad}reset {}", header(h))?,
                Stmt::If { cond, then, otherwise } => {
                    writeln!(f, "{pad}if {}", expr(cond))?;
                    write!(f, "{}", inner(then))?;
                    if !otherwise.is_empty() {
                        write!(f, "{pad}else\n{}", inner(otherwise))?;
                    }
                }
                Stmt::Switch { on, cases, default } => {
                    writeln!(f, "{pad}switch {}", expr(on))?;
                    for (labels, body) in cases {
                        let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
                        write!(f, "{pad}case {}\n{}", labels.join(", "), inner(body))?;
                    }
                    if !default.is_empty() {
                        write!(f, "{pad}default\n{}", inner(default))?;
                    }
                }
                Stmt::Labeled { label, body } => write!(f, "{pad}block L{}\n{}", label.0, inner(body))?,
                Stmt::Loop { label, body } => write!(f, "{pad}loop L{}\n{}", label.0, inner(body))?,
                Stmt::Break(label) => writeln!(f, "{pad}break L{}", label.0)?,
                Stmt::Continue(label) => writeln!(f, "{pad}continue L{}", label.0)?,
                Stmt::Apply { table, hit, action_run } => {
                    write!(f, "{pad}apply {}", program[*table].info.name)?;
                    if let Some(var) = hit {
                        write!(f, " hit -> {}", program[*var].name)?;
                    }
                    if let Some(var) = action_run {
                        write!(f, " action_run -> {}", program[*var].name)?;
                    }
                    writeln!(f)?;
                }
                Stmt::Extern(call) => writeln!(f, "{pad}{call:?}")?,
                Stmt::Extract { header: h, varbit_bits } => {
                    write!(f, "{pad}extract {}", header(h))?;
                    if let Some(bits) = varbit_bits {
                        write!(f, " varbit {}", expr(bits))?;
                    }
                    writeln!(f)?;
                }
                Stmt::Lookahead { into } => {
                    let into: Vec<String> = into.iter().map(|p| place(p).to_string()).collect();
                    writeln!(f, "{pad}lookahead {}", into.join(", "))?;
                }
                Stmt::Advance { bits } => writeln!(f, "{pad}advance {}", expr(bits))?,
                Stmt::Verify { cond, error } => {
                    writeln!(f, "{pad}verify {} else {}", expr(cond), expr(error))?
                }
                Stmt::Emit(h) => writeln!(f, "{pad}emit {}", header(h))?,
            }
        }
        Ok(())
    }
}

/// Parsers, controls, tables and actions in a form to be read.
impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        use super::Transition;
        for parser in &self.parsers {
            writeln!(f, "parser {} starts at {:?}", parser.name, parser.start)?;
            for (index, state) in parser.states.iter().enumerate() {
                write!(f, "  state {index} {}\n{}", state.name, Indented(self, &state.body, 2))?;
                match &state.next {
                    Transition::Direct(next) => writeln!(f, "    -> {next:?}")?,
                    Transition::Select { keys, cases } => {
                        let keys: Vec<String> = keys.iter().map(|k| Named(self, k).to_string()).collect();
                        writeln!(f, "    select {}", keys.join(", "))?;
                        for case in cases {
                            writeln!(f, "      {:?} -> {:?}", case.matches, case.next)?;
                        }
                    }
                }
            }
        }
        for action in &self.actions {
            let params: Vec<&str> = action.params.iter().map(|p| p.name.as_str()).collect();
            write!(
                f,
                "action {}({})\n{}",
                action.info.name,
                params.join(", "),
                Indented(self, &action.body, 1)
            )?;
        }
        for table in &self.tables {
            writeln!(f, "table {} size {}", table.info.name, table.size)?;
            for key in &table.keys {
                writeln!(f, "  key {} = {} : {:?}", key.name, Named(self, &key.expr), key.kind)?;
            }
            for action in &table.actions {
                writeln!(f, "  action {}", self[action.action].info.name)?;
            }
            for entry in &table.entries {
                writeln!(f, "  entry {:?} priority {:?} {:?}", entry.matches, entry.priority, entry.action)?;
            }
            writeln!(f, "  default {:?}", table.default_action)?;
        }
        for control in &self.controls {
            write!(f, "control {}\n{}", control.name, Indented(self, &control.body, 1))?;
        }
        Ok(())
    }
}
