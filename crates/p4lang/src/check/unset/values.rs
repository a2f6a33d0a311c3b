//! Which values are set: declarations, reads and writes of variables and their parts.

use std::collections::BTreeSet;

use super::{Pass, Paths, Place};
use crate::check::types::{Subst, substitute};
use crate::diag::Diagnostic;
use crate::hir::{DefId, DefKind, Expr, ExprKind, Type};
use crate::source::Span;

/// Variables with more leaves are not followed.
const MAX_LEAVES: usize = 256;

impl Pass<'_> {
    /// Begins to follow a variable that has no value.
    pub(super) fn follow(&mut self, id: DefId, ty: &Type, paths: &mut Paths) {
        if !self.leaves.contains_key(&id) {
            let (mut scalars, mut headers) = (Vec::new(), Vec::new());
            self.collect(ty, &mut (id, Vec::new()), &mut scalars, &mut headers);
            if scalars.len() + headers.len() > MAX_LEAVES {
                (scalars, headers) = (Vec::new(), Vec::new());
            }
            self.leaves.insert(id, (scalars, headers));
        }
        if let Some((scalars, headers)) = self.leaves.get(&id) {
            paths.unset.extend(scalars.iter().cloned());
            paths.invalid.extend(headers.iter().cloned());
        }
    }

    fn collect(&self, ty: &Type, place: &mut Place, scalars: &mut Vec<Place>, headers: &mut Vec<Place>) {
        if scalars.len() + headers.len() > MAX_LEAVES {
            return;
        }
        let each =
            |types: Vec<Type>, place: &mut Place, scalars: &mut Vec<Place>, headers: &mut Vec<Place>| {
                for (index, ty) in types.iter().enumerate() {
                    place.1.push(index as u16);
                    self.collect(ty, place, scalars, headers);
                    place.1.pop();
                }
            };
        match ty {
            Type::Bool | Type::Bits { .. } | Type::Varbit(_) | Type::Error | Type::Enum(_) | Type::New(_) => {
                scalars.push(place.clone());
            }
            Type::Header(..) => headers.push(place.clone()),
            Type::Tuple(types) => each(types.clone(), place, scalars, headers),
            Type::Struct(id, args) => {
                if let DefKind::Struct(def) = &self.hir.def(*id).kind {
                    let subst: Subst = def.type_params.iter().copied().zip(args.iter().cloned()).collect();
                    let types = def.fields.iter().map(|f| substitute(&f.ty, &subst)).collect();
                    each(types, place, scalars, headers);
                }
            }
            _ => {}
        }
    }

    pub(super) fn declare(&mut self, id: DefId, mut paths: Paths) -> Paths {
        if let DefKind::Variable { ty, init } = &self.hir.def(id).kind {
            match init {
                None => self.follow(id, ty, &mut paths),
                Some(init) => {
                    self.read(init, &mut paths);
                    self.follow(id, ty, &mut paths);
                    self.copy(&(id, Vec::new()), init, &mut paths);
                }
            }
        }
        paths
    }

    /// What `place` is after `value` was assigned to it.
    fn copy(&mut self, place: &Place, value: &Expr, paths: &mut Paths) {
        let copied = |from: &Place, set: &BTreeSet<Place>| -> Vec<Place> {
            let below = set.iter().filter(|p| p.0 == from.0 && p.1.starts_with(&from.1));
            below.map(|p| (place.0, [&place.1[..], &p.1[from.1.len()..]].concat())).collect()
        };
        let source = self.place(value);
        let (unset, invalid) = match &source {
            Some(from) => (copied(from, &paths.unset), copied(from, &paths.invalid)),
            None if matches!(value.kind, ExprKind::Invalid) => (Vec::new(), vec![place.clone()]),
            None => (Vec::new(), Vec::new()),
        };
        paths.set(place);
        if self.leaves.contains_key(&place.0) {
            paths.unset.extend(unset);
            paths.invalid.extend(invalid);
        }
    }

    pub(super) fn place(&self, e: &Expr) -> Option<Place> {
        match &e.kind {
            ExprKind::Ref(id) => Some((*id, Vec::new())),
            ExprKind::Field(base, index) => {
                let mut place = self.place(base)?;
                place.1.push(*index as u16);
                Some(place)
            }
            _ => None,
        }
    }

    pub(super) fn write(&mut self, left: &Expr, value: Option<&Expr>, paths: &mut Paths) {
        match &left.kind {
            // A part of a number: taken as the whole.
            ExprKind::Slice { base, .. } => self.write(base, None, paths),
            ExprKind::Index(base, index) => {
                self.read(index, paths);
                if let ExprKind::Index(..) = base.kind {
                    self.write(base, None, paths);
                }
            }
            _ => {
                if let Some(place) = self.place(left) {
                    match value {
                        Some(value) => self.copy(&place, value, paths),
                        None => paths.set(&place),
                    }
                } else if let ExprKind::Field(base, _) = &left.kind {
                    self.write(base, None, paths);
                }
            }
        }
    }

    pub(super) fn read(&mut self, e: &Expr, paths: &mut Paths) {
        if self.spent {
            return;
        }
        match &e.kind {
            ExprKind::Ref(_) | ExprKind::Field(..) => match self.place(e) {
                Some(place) => self.use_of(&place, e, paths),
                None => {
                    if let ExprKind::Field(base, _) = &e.kind {
                        self.read(base, paths);
                    }
                }
            },
            ExprKind::Index(base, index) => {
                self.read(index, paths);
                if self.place(base).is_none() {
                    self.read(base, paths);
                }
            }
            ExprKind::Slice { base: e, .. }
            | ExprKind::StackNext(e)
            | ExprKind::StackLast(e)
            | ExprKind::StackLastIndex(e)
            | ExprKind::Unary(_, e)
            | ExprKind::Cast(e) => self.read(e, paths),
            ExprKind::Binary(op, a, b) => {
                self.read(a, paths);
                // What the left side shows holds on the right.
                let mut right = match op {
                    crate::ast::BinaryOp::And => self.decide(a, paths).0,
                    crate::ast::BinaryOp::Or => self.decide(a, paths).1,
                    _ => return self.read(b, paths),
                };
                self.read(b, &mut right);
            }
            ExprKind::Ternary(cond, a, b) => {
                self.read(cond, paths);
                let (mut yes, mut no) = self.decide(cond, paths);
                self.read(a, &mut yes);
                self.read(b, &mut no);
            }
            ExprKind::Struct(items, order) => {
                order
                    .indices(items.len())
                    .filter_map(|at| items[at].as_ref())
                    .for_each(|e| self.read(e, paths));
            }
            ExprKind::List(items) => items.iter().flatten().for_each(|item| self.read(item, paths)),
            ExprKind::Call(call) => self.call(call, paths),
            ExprKind::TableHit { apply, .. } => self.call(apply, paths),
            _ => {}
        }
    }

    fn use_of(&mut self, place: &Place, e: &Expr, paths: &Paths) {
        if !self.leaves.contains_key(&place.0) || self.stop(paths) {
            return;
        }
        let Some((scalars, _)) = self.leaves.get(&place.0) else { return };
        let below = |p: &Place| p.0 == place.0 && p.1.starts_with(&place.1);
        let all = scalars.iter().filter(|p| below(p)).count();
        let unset = paths.unset.iter().filter(|p| below(p)).count();
        let name = &self.hir.def(place.0).name;
        // A structure of which a part is set is fine to copy.
        if all > 0 && unset == all {
            self.report(e.span, format!("`{name}` may be read here before it is set"), place.0);
        }
        let header = |p: &&Place| p.0 == place.0 && p.1.len() < place.1.len() && place.1.starts_with(&p.1);
        if paths.invalid.iter().any(|p| header(&p)) {
            self.report(e.span, format!("a field of a header that is not valid here, in `{name}`"), place.0);
        }
    }

    fn report(&mut self, span: Span, message: String, var: DefId) {
        if self.reporting && self.reported.insert(span) {
            let mut diagnostic = Diagnostic::warning("uninitialized-read", span, message)
                .help("set it on every path that leads here, or give it a value where it is declared");
            diagnostic.related.push((self.hir.def(var).span, "declared here".into()));
            self.diagnostics.push(diagnostic);
        }
    }

    /// The block ends here.
    pub(super) fn finish(&mut self, paths: &Paths) {
        for id in self.outs.clone() {
            let span = self.hir.def(id).span;
            if paths.unset.iter().any(|p| p.0 == id) && self.reporting && self.reported.insert(span) {
                let name = &self.hir.def(id).name;
                let message = format!("the `out` parameter `{name}` may not be set on every path");
                let help = "set it, or make it `inout`";
                self.diagnostics.push(Diagnostic::warning("uninitialized-out", span, message).help(help));
            }
        }
    }
}
