//! Names that cannot be used as they are written (P4_16 section 6.8).
//!
//! Whether a word is a type's name decides how a program parses. The grammar's parser notes the parameters of parsers,
//! controls and functions as names of values, and variables, constants and instances; it does not note the parameters
//! of actions, nor the names of actions, tables and value sets. Where a type of the same name is visible, such a name is
//! the type's.

use super::Checker;
use super::scope::Entry;
use crate::ast::{Ident, Name, Path};
use crate::hir::{DefId, DefKind};

/// What a name in a scope is to the grammar.
enum Kind {
    Type,
    Value,
    /// The grammar does not note it.
    Unnoted,
}

impl Checker {
    fn kind_of(&self, entry: &Entry) -> Kind {
        let Entry::Defs(ids) = entry else { return Kind::Type };
        match ids.first().map(|id| &self.def(*id).kind) {
            Some(kind) if kind.is_type() => Kind::Type,
            Some(DefKind::Action(_) | DefKind::Table(_) | DefKind::ValueSet { .. }) => Kind::Unnoted,
            _ => Kind::Value,
        }
    }

    /// The type that the grammar takes `name` for, if `id`, which the name resolves to, is something it does not note.
    fn type_instead(&self, name: &Name, id: DefId) -> Option<Entry> {
        let outside = match &self.def(id).kind {
            DefKind::Param(_) => {
                let depth = self.action?;
                let is_parameter = self.scopes.get(depth)?.names.contains_key(name);
                if !is_parameter || self.scopes[depth + 1..].iter().any(|s| s.names.contains_key(name)) {
                    return None;
                }
                depth
            }
            DefKind::Action(_) | DefKind::Table(_) | DefKind::ValueSet { .. } => self.scopes.len(),
            _ => return None,
        };
        for scope in self.scopes[..outside].iter().rev() {
            let Some(entry) = scope.names.get(name) else { continue };
            match self.kind_of(entry) {
                Kind::Type => return Some(entry.clone()),
                Kind::Value => return None,
                Kind::Unnoted => {}
            }
        }
        None
    }

    /// Reports a use of `path`, which resolves to `id`, that the grammar reads as a type's name.
    pub(super) fn require_value_name(&mut self, path: &Path, id: DefId) {
        if path.rooted {
            return;
        }
        let Some(entry) = self.type_instead(&path.ident.name, id) else { return };
        let what = match &self.def(id).kind {
            DefKind::Param(_) => "parameter",
            DefKind::Action(_) => "action",
            DefKind::Table(_) => "table",
            _ => "value set",
        };
        let declared = self.def(id).span;
        let type_span = match entry {
            Entry::Defs(ids) => ids.first().map(|id| self.def(*id).span),
            Entry::TypeParam(_) => None,
        };
        let message = format!("`{}` is a type's name here, not that of the {what}", path.ident.name);
        let diagnostic = self.error("hidden-name", path.ident.span, message);
        diagnostic.related.push((declared, format!("the {what}")));
        diagnostic.related.extend(type_span.map(|span| (span, "the type".to_owned())));
        diagnostic.help = Some(format!("give the {what} another name"));
    }

    /// A declaration in a body may not hide a parameter of what is around it. Locals of a parser or control stand
    /// beside its parameters.
    pub(super) fn hidden_parameter(&mut self, ident: &Ident, id: DefId, hidden: DefId) -> bool {
        let beside =
            self.scopes.len() == 3 && matches!(self.place, super::Place::Control | super::Place::Parser);
        if beside
            || !matches!(self.def(hidden).kind, DefKind::Param(_))
            || matches!(self.def(id).kind, DefKind::Param(_))
        {
            return false;
        }
        let span = self.def(hidden).span;
        let diagnostic =
            self.error("shadowing", ident.span, format!("`{}` hides the parameter of that name", ident.name));
        diagnostic.related.push((span, "the parameter".into()));
        diagnostic.help = Some("give one of them another name".into());
        true
    }
}
