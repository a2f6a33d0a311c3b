//! Walks over expressions: what stands in one, and whether two are the same.

use crate::ast;
use crate::hir::{Callee, Expr, ExprKind};
use crate::source::Span;

/// The parts of a written expression.
fn parts(e: &ast::Expr) -> Vec<&ast::Expr> {
    use ast::ExprKind as K;
    match &e.kind {
        K::Member { base, .. } => vec![base],
        K::Index { base, index } => vec![base, index],
        K::Slice { base, hi, lo } => vec![base, hi, lo],
        K::Unary { operand, .. } | K::Cast { operand, .. } => vec![operand],
        K::Binary { left, right, .. } => vec![left, right],
        K::Ternary { cond, then, otherwise } => vec![cond, then, otherwise],
        K::Call { callee, args, .. } => {
            std::iter::once(&**callee).chain(args.iter().map(|a| &a.value)).collect()
        }
        K::List { items, .. } => items.iter().collect(),
        K::StructInit { fields, .. } => fields.iter().map(|(_, e)| e).collect(),
        K::Mask { value, mask } => vec![value, mask],
        K::Range { lo, hi } => vec![lo, hi],
        _ => Vec::new(),
    }
}

/// Where `name` stands in an expression as an unrooted name.
pub(super) fn mention(e: &ast::Expr, name: &str) -> Option<Span> {
    match &e.kind {
        ast::ExprKind::Name(path) if !path.rooted && &*path.ident.name == name => Some(path.ident.span),
        _ => parts(e).into_iter().find_map(|part| mention(part, name)),
    }
}

/// The first part of a checked expression, itself included, for which `wanted` holds.
pub(crate) fn find<'e>(e: &'e Expr, wanted: &dyn Fn(&Expr) -> bool) -> Option<&'e Expr> {
    if wanted(e) {
        return Some(e);
    }
    let some = |items: &'e [Option<Expr>]| items.iter().flatten().find_map(|e| find(e, wanted));
    match &e.kind {
        ExprKind::Field(a, _)
        | ExprKind::Slice { base: a, .. }
        | ExprKind::StackNext(a)
        | ExprKind::StackLast(a)
        | ExprKind::StackLastIndex(a)
        | ExprKind::Unary(_, a)
        | ExprKind::Cast(a) => find(a, wanted),
        ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => find(a, wanted).or_else(|| find(b, wanted)),
        ExprKind::Ternary(a, b, c) => find(a, wanted).or_else(|| find(b, wanted)).or_else(|| find(c, wanted)),
        ExprKind::Struct(items, _) | ExprKind::List(items) => some(items),
        ExprKind::Call(call) => {
            let object = match &call.callee {
                Callee::Method { object, .. }
                | Callee::Apply(object)
                | Callee::IsValid(object)
                | Callee::SetValid(object)
                | Callee::SetInvalid(object)
                | Callee::PushFront(object, _)
                | Callee::PopFront(object, _) => find(object, wanted),
                _ => None,
            };
            object.or_else(|| some(&call.args))
        }
        _ => None,
    }
}

/// Whether two checked expressions are written alike. Calls count as alike: what they give is not known.
pub(super) fn same(a: &Expr, b: &Expr) -> bool {
    use ExprKind as K;
    match (&a.kind, &b.kind) {
        (K::Int(x), K::Int(y)) => x == y,
        (K::Bool(x), K::Bool(y)) => x == y,
        (K::Error(x), K::Error(y)) => x == y,
        (K::EnumMember(d, x), K::EnumMember(e, y)) => d == e && x == y,
        (K::Ref(x), K::Ref(y)) => x == y,
        (K::Field(x, i), K::Field(y, j)) => i == j && same(x, y),
        (K::Index(x, i), K::Index(y, j)) => same(x, y) && same(i, j),
        (K::Slice { base: x, hi, lo }, K::Slice { base: y, hi: h, lo: l }) => {
            hi == h && lo == l && same(x, y)
        }
        (K::Cast(x), K::Cast(y)) => same(x, y),
        (K::Unary(o, x), K::Unary(p, y)) => o == p && same(x, y),
        (K::Binary(o, x, i), K::Binary(p, y, j)) => o == p && same(x, y) && same(i, j),
        (K::Call(_), K::Call(_)) => true,
        (K::Struct(x, _), K::Struct(y, _)) | (K::List(x), K::List(y)) => {
            x.len() == y.len() && x.iter().flatten().zip(y.iter().flatten()).all(|(a, b)| same(a, b))
        }
        _ => std::mem::discriminant(&a.kind) == std::mem::discriminant(&b.kind),
    }
}
