//! Names in scope (P4_16 section 6.8).

use std::collections::HashMap;

use super::Checker;
use crate::ast::{Ident, Name, Path};
use crate::diag::Diagnostic;
use crate::hir::{DefId, DefKind, TypeParamId};
use crate::similar::similar;

#[derive(Debug, Clone)]
pub(super) enum Entry {
    /// One definition; several only for overloaded functions.
    Defs(Vec<DefId>),
    TypeParam(TypeParamId),
}

#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) names: HashMap<Name, Entry>,
}

impl Checker {
    pub(super) fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(Scope::default());
        let result = f(self);
        self.scopes.pop();
        result
    }

    /// Makes a definition visible; a second of the same name in the same scope is an error unless both are
    /// functions that a call can tell apart.
    pub(super) fn declare(&mut self, ident: &Ident, id: DefId) {
        let overloadable = |kind: &DefKind| matches!(kind, DefKind::Function(_) | DefKind::ExternFn(_));
        let known = self.scopes.last().and_then(|s| s.names.get(&ident.name)).cloned();
        match known {
            Some(Entry::Defs(mut ids))
                if overloadable(&self.def(id).kind)
                    && ids.iter().all(|i| overloadable(&self.def(*i).kind)) =>
            {
                let signature = |c: &Self, id: DefId| {
                    let params = match &c.def(id).kind {
                        DefKind::Function(f) => &f.signature.params,
                        DefKind::ExternFn(s) => &s.params,
                        _ => return Vec::new(),
                    };
                    params.iter().map(|p| c.def(*p).name.clone()).collect()
                };
                let new = signature(self, id);
                if let Some(same) = ids
                    .iter()
                    .find(|i| signature(self, **i).len() == new.len() && signature(self, **i) == new)
                {
                    let other = self.def(*same).span;
                    self.error(
                        "duplicate",
                        ident.span,
                        format!("`{}` is declared twice with the same parameters", ident.name),
                    )
                    .related
                    .push((other, "first declared here".into()));
                    return;
                }
                self.budget.work(ids.len() * 8);
                ids.push(id);
                self.insert(ident.name.clone(), Entry::Defs(ids));
            }
            Some(entry) => {
                let other = match entry {
                    Entry::Defs(ids) => ids.first().map(|i| self.def(*i).span),
                    Entry::TypeParam(_) => None,
                };
                let diagnostic = self.error(
                    "duplicate",
                    ident.span,
                    format!("`{}` is declared twice in this scope", ident.name),
                );
                diagnostic.related.extend(other.map(|s| (s, "first declared here".to_owned())));
            }
            None => {
                self.shadowing(ident, id);
                self.insert(ident.name.clone(), Entry::Defs(vec![id]));
            }
        }
    }

    fn shadowing(&mut self, ident: &Ident, id: DefId) {
        // Only locals hiding locals: hiding a top-level name is common and harmless.
        let depth = self.scopes.len();
        if depth < 3 {
            return;
        }
        let outer = self.scopes[1..depth - 1].iter().rev().find_map(|s| s.names.get(&ident.name)).cloned();
        if let Some(Entry::Defs(ids)) = outer
            && let Some(first) = ids.first().copied()
            && !self.hidden_parameter(ident, id, first)
        {
            let span = self.def(first).span;
            self.report(
                Diagnostic::warning(
                    "shadowing",
                    ident.span,
                    format!("`{}` hides another declaration of that name", ident.name),
                )
                .related(span, "the one it hides"),
            );
        }
    }

    fn insert(&mut self, name: Name, entry: Entry) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name, entry);
        }
    }

    pub(super) fn declare_type_params(&mut self, params: &[Ident]) -> Vec<TypeParamId> {
        params
            .iter()
            .map(|p| {
                let id = TypeParamId(self.hir.type_params.len() as u32);
                self.hir.type_params.push(p.name.clone());
                if self.scopes.last().is_some_and(|s| s.names.contains_key(&p.name)) {
                    self.error("duplicate", p.span, format!("type parameter `{}` is declared twice", p.name));
                }
                self.insert(p.name.clone(), Entry::TypeParam(id));
                id
            })
            .collect()
    }

    /// What a name means here; `None` if nothing.
    pub(super) fn find(&self, path: &Path) -> Option<Entry> {
        let scopes = if path.rooted { &self.scopes[..1] } else { &self.scopes[..] };
        self.budget.work(scopes.len());
        let found = scopes.iter().rev().find_map(|s| s.names.get(&path.ident.name)).cloned();
        if let Some(Entry::Defs(ids)) = &found {
            self.budget.work(ids.len());
        }
        found
    }

    /// As [`Checker::find`], reporting what is not there.
    pub(super) fn lookup(&mut self, path: &Path) -> Option<Entry> {
        let found = self.find(path);
        if found.is_none() {
            let name = &path.ident.name;
            if self.declaring.contains(name) {
                self.error("recursion", path.ident.span, format!("`{name}` may not refer to itself")).help =
                    Some("P4 has no recursion; unroll it, or recirculate the packet".into());
                return None;
            }
            let similar = self.similar(name, self.scopes.iter().flat_map(|s| s.names.keys()));
            let diagnostic = self.error("unknown-name", path.ident.span, format!("`{name}` is not declared"));
            diagnostic.label = "not found in this scope".into();
            diagnostic.help = Some(match similar {
                Some(other) => format!("did you mean `{other}`?"),
                None => "names must be declared before they are used".into(),
            });
        }
        found
    }

    /// The candidate that looks most like `name`, if one is near.
    pub(super) fn similar<'a>(&self, name: &str, candidates: impl Iterator<Item = &'a Name>) -> Option<Name> {
        similar(name, candidates.map(|c| &**c)).map(Name::from)
    }
}
