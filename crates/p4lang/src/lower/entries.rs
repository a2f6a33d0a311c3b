//! Entries and default actions that the program itself gives (P4_16 section 14.2.1.4).

use num_bigint::BigUint;
use num_traits::{One, Zero};

use super::{Lowered, Lowerer};
use crate::ast::Direction;
use crate::hir::{DefKind, EntryAction, Expr, KeysetElem, TableDef};
use crate::ir::{self, EntryMatch, ExprKind, MatchKind};
use crate::source::Span;

impl Lowerer<'_> {
    /// A constant as the unsigned number of its bits.
    fn const_bits(&mut self, e: &Expr) -> Lowered<BigUint> {
        match self.scalar(e)?.kind {
            ExprKind::Const(value) => Ok(value),
            _ => self.fail("not-constant", e.span, "this must be known at compile time"),
        }
    }

    /// Index and arguments of an action of the table.
    pub(super) fn action_data(&mut self, table: &TableDef, action: &EntryAction) -> Lowered<ir::ActionCall> {
        let mut args = Vec::new();
        let params = match &self.def(table.actions[action.index].action).kind {
            DefKind::Action(a) => a.params.clone(),
            _ => Vec::new(),
        };
        for (param, arg) in params.iter().zip(&action.args) {
            if self.param(*param).direction != Direction::None {
                continue;
            }
            let Some(arg) = arg else { continue };
            let value = self.value(arg)?;
            let mut scalars = Vec::new();
            let ty = self.ty(&self.param(*param).ty);
            self.flatten(value, &ty, &mut scalars);
            for scalar in scalars {
                match scalar.kind {
                    ExprKind::Const(value) => args.push(value),
                    _ => {
                        return self.fail(
                            "not-constant",
                            arg.span,
                            "this argument must be known at compile time",
                        );
                    }
                }
            }
        }
        Ok(ir::ActionCall { action: action.index as u32, args })
    }

    pub(super) fn entries(&mut self, table: &TableDef, out: &mut ir::Table) -> Lowered<()> {
        let prioritised = out
            .keys
            .iter()
            .any(|k| matches!(k.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
        let mut priority: Option<i64> = None;
        let delta = i64::from(table.priority_delta);
        for (index, entry) in table.entries.iter().enumerate() {
            let mut matches = Vec::new();
            let kinds: Vec<(MatchKind, u32)> = out.keys.iter().map(|k| (k.kind, k.expr.width)).collect();
            let matched =
                entry.keyset.elems.iter().zip(&table.keys).filter(|(_, k)| &*k.match_kind != "selector");
            for ((elem, key), (kind, width)) in matched.zip(kinds) {
                matches.push(self.entry_match(elem, kind, width, &key.match_kind, entry.span)?);
            }
            // Unless given, the first entry comes first (section 14.2.1.4).
            let next = match (&entry.priority, priority) {
                (Some(given), _) => i64::try_from(given).unwrap_or(0),
                (None, None) if table.largest_priority_wins => {
                    (table.entries.len() as i64 - index as i64 - 1) * delta + 1
                }
                (None, None) => 1,
                (None, Some(before)) if table.largest_priority_wins => before - delta,
                (None, Some(before)) => before + delta,
            };
            priority = Some(next);
            let Ok(number) = u32::try_from(next) else {
                return self.fail_help(
                    "bad-size",
                    entry.span,
                    "there is no priority left for this entry",
                    "give it one with `priority = n :`",
                );
            };
            // Where others may come to them, the control plane names entries by their priorities.
            let named = prioritised && !table.const_entries;
            let least = u32::from(table.largest_priority_wins);
            let most = i32::MAX as u32 - (1 - least);
            if named && !(least..=most).contains(&number) {
                return self.fail_help(
                    "bad-size",
                    entry.span,
                    format!("the control plane has no priority {number}"),
                    format!("give the entry one from {least} to {most}"),
                );
            }
            let action = self.action_data(table, &entry.action)?;
            out.entries.push(ir::Entry {
                matches,
                priority: prioritised.then_some(number),
                action,
                is_const: entry.is_const,
                annotations: self.written(&entry.annotations),
            });
        }
        if !prioritised {
            self.duplicates(table, out);
        }
        Ok(())
    }

    /// Without priorities the second of two equal entries could never match.
    fn duplicates(&mut self, table: &TableDef, out: &ir::Table) {
        let mut seen = std::collections::HashMap::new();
        for (entry, hir) in out.entries.iter().zip(&table.entries) {
            if let Some(first) = seen.insert(entry.matches.clone(), hir.span) {
                self.diagnostics.push(
                    crate::diag::Diagnostic::error(
                        "duplicate",
                        hir.span,
                        "an entry with this key is there already",
                    )
                    .related(first, "the first one"),
                );
            }
        }
    }

    fn entry_match(
        &mut self,
        elem: &KeysetElem,
        kind: MatchKind,
        width: u32,
        name: &str,
        span: Span,
    ) -> Lowered<EntryMatch> {
        let ones = (BigUint::one() << width) - 1u8;
        let zero = BigUint::zero;
        Ok(match (kind, elem) {
            (MatchKind::Exact, KeysetElem::Value(e)) => EntryMatch::Exact(self.const_bits(e)?),
            (MatchKind::Lpm, KeysetElem::Value(e)) => {
                EntryMatch::Lpm { value: self.const_bits(e)?, prefix_len: width }
            }
            (MatchKind::Lpm, KeysetElem::Any) => EntryMatch::Lpm { value: zero(), prefix_len: 0 },
            (MatchKind::Lpm, KeysetElem::Mask(value, mask)) => {
                let (value, mask) = (self.const_bits(value)?, self.const_bits(mask)?);
                let host = &ones ^ &mask;
                // A prefix's complement is one less than a power of two.
                if !(&host & (&host + 1u8)).is_zero() {
                    return self.fail_help(
                        "bad-entry",
                        span,
                        "the mask of an lpm key must be a prefix",
                        "its ones must all be on the left",
                    );
                }
                EntryMatch::Lpm { value: value & &mask, prefix_len: width - host.bits() as u32 }
            }
            (MatchKind::Ternary, KeysetElem::Value(e)) => {
                EntryMatch::Ternary { value: self.const_bits(e)?, mask: ones }
            }
            (MatchKind::Ternary, KeysetElem::Any) => EntryMatch::Ternary { value: zero(), mask: zero() },
            (MatchKind::Ternary, KeysetElem::Mask(value, mask)) => {
                let (value, mask) = (self.const_bits(value)?, self.const_bits(mask)?);
                EntryMatch::Ternary { value: value & &mask, mask }
            }
            (MatchKind::Range, KeysetElem::Value(e)) => {
                let value = self.const_bits(e)?;
                EntryMatch::Range { lo: value.clone(), hi: value }
            }
            (MatchKind::Range, KeysetElem::Any) => EntryMatch::Range { lo: zero(), hi: ones },
            (MatchKind::Range, KeysetElem::Range(lo, hi)) => {
                let signed = self.is_signed(&self.ty(&lo.ty));
                let (lo, hi) = (self.const_bits(lo)?, self.const_bits(hi)?);
                let sign = u64::from(width.saturating_sub(1));
                if signed && lo.bit(sign) != hi.bit(sign) {
                    return self.fail_help(
                        "unsupported",
                        span,
                        "tables match ranges by their bits, in which numbers below 0 are above all others",
                        "write one entry for those below 0, and one for the others",
                    );
                }
                EntryMatch::Range { lo, hi }
            }
            (MatchKind::Optional, KeysetElem::Value(e)) => EntryMatch::Optional(Some(self.const_bits(e)?)),
            (MatchKind::Optional, KeysetElem::Any) => EntryMatch::Optional(None),
            (_, elem) => {
                let what = match elem {
                    KeysetElem::Any => "`_`",
                    KeysetElem::Mask(..) => "a mask",
                    KeysetElem::Range(..) => "a range",
                    _ => "this",
                };
                return self.fail(
                    "bad-entry",
                    span,
                    format!("{what} cannot be matched by a key of kind `{name}`"),
                );
            }
        })
    }
}
