//! Keysets of `select` cases and table entries (P4_16 sections 13.6, 14.2.1.4).

use super::scope::Entry;
use super::{Checker, consts, walk};
use crate::ast;
use crate::diag::counted;
use crate::hir::{Callee, DefId, DefKind, Expr, ExprKind, Keyset, KeysetElem, Type};

/// A call, except of `isValid`.
fn is_call(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Call(call) if !matches!(call.callee, Callee::IsValid(_)))
}

impl Checker {
    /// A keyset against the types of its keys. `select`: value sets and run-time values may stand in it.
    pub(super) fn keyset(&mut self, e: &ast::Expr, types: &[Type], select: bool) -> Option<Keyset> {
        let span = e.span;
        if let Some(set) = self.value_set_named(e) {
            let elem = self.value_set_elem(e, set, types, select)?;
            return Some(Keyset { elems: vec![elem], span });
        }
        let elems = match &e.kind {
            ast::ExprKind::Default | ast::ExprKind::DontCare if types.len() != 1 => vec![KeysetElem::Any],
            ast::ExprKind::List { items, .. } if types.len() > 1 || items.len() != 1 => {
                if items.len() != types.len() {
                    self.error(
                        "bad-keyset",
                        span,
                        format!("expected {}, found {}", counted(types.len(), "key"), items.len()),
                    );
                    return None;
                }
                let elems: Option<Vec<_>> =
                    items.iter().zip(types).map(|(item, ty)| self.keyset_elem(item, ty, select)).collect();
                elems?
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
        if let Some(set) = self.value_set_named(e) {
            return self.value_set_elem(e, set, std::slice::from_ref(ty), select);
        }
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
            _ => Some(KeysetElem::Value(value(self, e)?)),
        }
    }

    /// The value set that an expression names, and what it holds.
    fn value_set_named(&self, e: &ast::Expr) -> Option<(DefId, Type)> {
        let ast::ExprKind::Name(path) = &e.kind else { return None };
        let Some(Entry::Defs(ids)) = self.find(path) else { return None };
        match &self.def(ids[0]).kind {
            DefKind::ValueSet { ty, .. } => Some((ids[0], ty.clone())),
            _ => None,
        }
    }

    /// A value set, and what it holds, in the place of all of `keys`: it holds as many numbers, with their widths.
    fn value_set_elem(
        &mut self,
        e: &ast::Expr,
        (id, held): (DefId, Type),
        keys: &[Type],
        select: bool,
    ) -> Option<KeysetElem> {
        if !select {
            self.error("bad-keyset", e.span, "a value set cannot stand in a table's entries");
            return None;
        }
        let (mut parts, mut wanted) = (Vec::new(), Vec::new());
        self.scalars(&held, &mut parts);
        keys.iter().for_each(|key| self.scalars(key, &mut wanted));
        let unknown = parts.iter().chain(&wanted).any(|ty| *ty == Type::Unknown);
        if !unknown && parts.len() != wanted.len() {
            let message = format!(
                "the value set holds {} for {}",
                counted(parts.len(), "value"),
                counted(wanted.len(), "key")
            );
            self.error("bad-keyset", e.span, message).help =
                Some("declare the value set of a struct or tuple with a field for each key".into());
            return None;
        }
        // What a type parameter stands for is compared when it is known.
        let open = |ty: &Type| matches!(ty, Type::Unknown | Type::Param(_));
        let differs = |(held, key): &(&Type, &Type)| {
            held != key && !open(held) && !open(key) && {
                let (a, b) = (self.number_below(held), self.number_below(key));
                a.is_none() || a != b
            }
        };
        if let Some((held, key)) = parts.iter().zip(&wanted).find(differs) {
            let (held, key) = (self.show(held), self.show(key));
            let message = format!("the value set holds `{held}`, the key is a `{key}`");
            self.error("type-mismatch", e.span, message).help =
                Some("declare the value set with the type of the key".into());
            return None;
        }
        Some(KeysetElem::ValueSet(id))
    }

    /// The number that a new type or enum is made from, below all its names; `None` for what is none.
    fn number_below(&self, ty: &Type) -> Option<Type> {
        match ty {
            Type::Bits { .. } | Type::Bool => Some(ty.clone()),
            Type::New(id) | Type::Enum(id) => self.number_below(&self.underlying(*id)?),
            _ => None,
        }
    }

    /// The types of the scalars that a value of a struct or tuple consists of, in order.
    fn scalars(&self, ty: &Type, out: &mut Vec<Type>) {
        match ty {
            Type::Tuple(items) => items.iter().for_each(|item| self.scalars(item, out)),
            Type::Struct(..) => match self.fields(ty) {
                Some(fields) => fields.iter().for_each(|(_, field)| self.scalars(field, out)),
                None => out.push(Type::Unknown),
            },
            _ => out.push(ty.clone()),
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
