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
