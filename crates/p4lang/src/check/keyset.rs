//! Keysets of `select` cases and table entries (P4_16 sections 13.6, 14.2.1.4).

use super::scope::Entry;
use super::{Checker, consts, walk};
use crate::ast;
use crate::hir::{Callee, DefKind, Expr, ExprKind, Keyset, KeysetElem, Type};

/// A call, except of `isValid`.
fn is_call(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Call(call) if !matches!(call.callee, Callee::IsValid(_)))
}

impl Checker {
    /// A keyset against the types of its keys. `select`: value sets and run-time values may stand in it.
    pub(super) fn keyset(&mut self, e: &ast::Expr, types: &[Type], select: bool) -> Option<Keyset> {
        let span = e.span;
        let elems = match &e.kind {
            ast::ExprKind::Default | ast::ExprKind::DontCare if types.len() != 1 => vec![KeysetElem::Any],
            ast::ExprKind::List { items, .. } if types.len() > 1 || items.len() != 1 => {
                if items.len() != types.len() {
                    self.error(
                        "bad-keyset",
                        span,
                        format!("expected {} keys, found {}", types.len(), items.len()),
                    );
                    return None;
                }
                let elems: Option<Vec<_>> =
                    items.iter().zip(types).map(|(item, ty)| self.keyset_elem(item, ty, select)).collect();
                elems?
            }
            ast::ExprKind::Name(path)
                if types.len() > 1
                    && matches!(self.find(path), Some(Entry::Defs(ids)) if matches!(self.def(ids[0]).kind, DefKind::ValueSet { .. })) =>
            {
                vec![self.keyset_elem(e, &Type::Unknown, select)?]
            }
            _ if types.len() != 1 => {
                self.error("bad-keyset", span, format!("expected {} keys, found 1", types.len())).help =
                    Some("write them as `(a, b)`".into());
                return None;
            }
            // `{k}` for a single key.
            ast::ExprKind::List { items, ellipsis: false } if items.len() == 1 => {
                vec![self.keyset_elem(&items[0], &types[0], select)?]
            }
            _ => vec![self.keyset_elem(e, &types[0], select)?],
        };
        Some(Keyset { elems, span })
    }

    fn keyset_elem(&mut self, e: &ast::Expr, ty: &Type, select: bool) -> Option<KeysetElem> {
        let value = |c: &mut Self, e: &ast::Expr| {
            let v = c.expr_as(e, ty);
            if v.ty == Type::Unknown && *ty != Type::Unknown {
                return None;
            }
            if let Some(call) = walk::find(&v, &is_call) {
                let span = call.span;
                c.error("bad-keyset", span, "no function or method can be called in a set of keys").help =
                    Some("call it before, and keep the result in a variable".into());
                return None;
            }
            if !select && v.ty != Type::Unknown && !c.compile_time(&v) {
                c.error("not-constant", v.span, "the keys of an entry must be known at compile time");
                return None;
            }
            Some(v)
        };
        let base = match ty {
            Type::Enum(id) | Type::New(id) => self.underlying(*id),
            _ => None,
        };
        match &e.kind {
            ast::ExprKind::Default | ast::ExprKind::DontCare => Some(KeysetElem::Any),
            ast::ExprKind::Mask { value: v, mask } => {
                if !matches!(base.as_ref().unwrap_or(ty), Type::Bits { .. } | Type::Unknown) {
                    let shown = self.show(ty);
                    self.error("bad-keyset", e.span, format!("a `{shown}` cannot be masked"));
                    return None;
                }
                let wide = base.unwrap_or_else(|| ty.clone());
                let (value, mask) = (self.key_number(v, &wide), self.key_number(mask, &wide));
                let (value, mask) = (value?, mask?);
                for part in [&value, &mask] {
                    if part.ty != Type::Unknown && !self.compile_time(part) {
                        self.error(
                            "not-constant",
                            part.span,
                            "a mask and its value must be known at compile time",
                        )
                        .help = Some("mask the key instead: `select(key & mask)`".into());
                        return None;
                    }
                }
                Some(KeysetElem::Mask(value, mask))
            }
            ast::ExprKind::Range { lo, hi } => {
                if !matches!(base.as_ref().unwrap_or(ty), Type::Bits { .. } | Type::Unknown) {
                    let shown = self.show(ty);
                    self.error("bad-keyset", e.span, format!("a `{shown}` has no ranges"));
                    return None;
                }
                let (lo, hi) = match &base {
                    Some(wide) => (self.key_number(lo, wide)?, self.key_number(hi, wide)?),
                    None => (value(self, lo)?, value(self, hi)?),
                };
                if let (Some(a), Some(b)) = (consts::int_value(&lo), consts::int_value(&hi))
                    && a > b
                {
                    let what = "this range ends before it starts";
                    if !select {
                        self.error("bad-keyset", e.span, what);
                        return None;
                    }
                    self.warn("bad-keyset", e.span, format!("{what}; nothing matches it"));
                }
                Some(KeysetElem::Range(lo, hi))
            }
            ast::ExprKind::Name(path) => {
                if let Some(Entry::Defs(ids)) = self.find(path)
                    && matches!(self.def(ids[0]).kind, DefKind::ValueSet { .. })
                {
                    if !select {
                        self.error("bad-keyset", e.span, "a value set cannot stand in a table's entries");
                        return None;
                    }
                    if let DefKind::ValueSet { ty: held, .. } = &self.def(ids[0]).kind
                        && matches!((held, ty), (Type::Bits { .. }, Type::Bits { .. }))
                        && held != ty
                    {
                        let (held, key) = (self.show(held), self.show(ty));
                        let message = format!("the value set holds `{held}`, the key is a `{key}`");
                        self.error("type-mismatch", e.span, message).help =
                            Some("declare the value set with the type of the key".into());
                        return None;
                    }
                    return Some(KeysetElem::ValueSet(ids[0]));
                }
                Some(KeysetElem::Value(value(self, e)?))
            }
            _ => Some(KeysetElem::Value(value(self, e)?)),
        }
    }

    /// A bound or mask for a key that is an enum or new type: a number of what that is made of.
    fn key_number(&mut self, e: &ast::Expr, wide: &Type) -> Option<Expr> {
        let value = self.expr(e, Some(wide));
        let value = self.numeric(value);
        let value = self.coerce(value, wide);
        (value.ty != Type::Unknown || *wide == Type::Unknown).then_some(value)
    }
}

pub(super) fn flatten_key<'e>(key: &'e ast::Expr, out: &mut Vec<&'e ast::Expr>) {
    match &key.kind {
        ast::ExprKind::List { items, .. } => items.iter().for_each(|item| flatten_key(item, out)),
        _ => out.push(key),
    }
}

/// A keyset for keys with tuples among them, as one for their elements: a tuple gives those of its key, `_` as many as
/// there are. What does not fit is left for [`Checker::keyset`] to say.
pub(super) fn flat_keyset(keyset: &ast::Expr, keys: &[ast::Expr]) -> ast::Expr {
    fn element(item: &ast::Expr, key: &ast::Expr, out: &mut Vec<ast::Expr>) {
        match (&item.kind, &key.kind) {
            (ast::ExprKind::Default | ast::ExprKind::DontCare, ast::ExprKind::List { items, .. }) => {
                items.iter().for_each(|key| element(item, key, out));
            }
            (ast::ExprKind::List { items: parts, .. }, ast::ExprKind::List { items, .. })
                if parts.len() == items.len() =>
            {
                parts.iter().zip(items).for_each(|(part, key)| element(part, key, out));
            }
            _ => out.push(item.clone()),
        }
    }
    let items = match &keyset.kind {
        ast::ExprKind::List { items, .. } if items.len() == keys.len() => items.as_slice(),
        _ if keys.len() == 1 => std::slice::from_ref(keyset),
        _ => return keyset.clone(),
    };
    let mut out = Vec::new();
    items.iter().zip(keys).for_each(|(item, key)| element(item, key, &mut out));
    ast::Expr { kind: ast::ExprKind::List { items: out, ellipsis: false }, span: keyset.span }
}
