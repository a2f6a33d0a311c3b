//! Variables that hold what an action was given, behind the table: where the actions have run, one address is known instead of as many
//! values, and each value is read from there where it is used.
//!
//! That needs variables that all actions leave alike: set from one place of the action's data, or, all of them, as they were before the
//! lookup, which is 0. Then the address is that of the data, or of zeros. Any other variable is merged as a value.

use std::collections::HashSet;

use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::types::I64;
use cranelift_frontend::Variable;
use p4lang::ir::{Action, ExprKind, Place, Stmt, Table, VarId};

use super::function::{Gen, Region};
use super::known;

/// What a local holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Zero,
    /// What is so far behind the beginning of the action's data.
    Data(i32),
    Other,
}

/// Of one table, while its actions are generated.
pub(super) struct Given {
    /// Each with its place in the data, `None` as long as no action has set it.
    vars: Vec<(VarId, Option<i32>)>,
    /// Where the data begins, or zeros.
    at: Variable,
}

impl Given {
    pub fn new(g: &mut Gen<'_, '_>, table: &Table) -> Given {
        let mut found = HashSet::new();
        let mut vars = Vec::new();
        for listed in &table.actions {
            for var in set_to_params(&g.program[listed.action]) {
                if found.insert(var) && g.local(var).is_some_and(|limbs| limbs.len() == 1) {
                    vars.push((var, None));
                }
            }
        }
        Given { vars, at: g.variable() }
    }

    /// At the end of an action with this data: variables that are not alike are given up.
    pub fn end(&mut self, g: &mut Gen<'_, '_>, data: Value) {
        let held: Vec<Held> = self.vars.iter().map(|(var, _)| g.held(*var, data)).collect();
        let any = held.iter().any(|held| matches!(held, Held::Data(_)));
        let at = if any { data } else { g.address(g.zeros.as_ptr()) };
        g.b.def_var(self.at, at);
        let mut held = held.into_iter();
        self.vars.retain_mut(|(_, place)| match held.next() {
            Some(Held::Data(here)) => *place.get_or_insert(here) == here,
            Some(Held::Zero) => !any,
            Some(Held::Other) | None => false,
        });
    }

    /// Where the actions have run: the variables that are left are read from the address.
    pub fn read(self, g: &mut Gen<'_, '_>) {
        for (var, place) in self.vars {
            let (Some(place), Some(limbs)) = (place, g.local(var)) else { continue };
            let at = g.b.use_var(self.at);
            let value = g.load_fixed(I64, Region::State, at, place);
            g.data.insert(value, (at, place));
            g.b.def_var(limbs[0], value);
        }
    }
}

/// Variables that an action sets to one of its parameters.
fn set_to_params(action: &Action) -> Vec<VarId> {
    let params: HashSet<VarId> = action.params.iter().map(|param| param.var).collect();
    let set = action.body.iter().filter_map(|stmt| match stmt {
        Stmt::Assign { dst: Place::Var(dst), src } => match &src.kind {
            ExprKind::Read(Place::Var(src)) if params.contains(src) => Some(*dst),
            _ => None,
        },
        _ => None,
    });
    set.collect()
}

impl Gen<'_, '_> {
    fn held(&mut self, var: VarId, data: Value) -> Held {
        let Some(limbs) = self.local(var) else { return Held::Other };
        let value = self.b.use_var(limbs[0]);
        let value = self.b.func.dfg.resolve_aliases(value);
        if known::constant(&self.b.func.dfg, value) == Some(0) {
            return Held::Zero;
        }
        match self.data.get(&value) {
            Some((at, place)) if *at == data => Held::Data(*place),
            _ => Held::Other,
        }
    }
}
