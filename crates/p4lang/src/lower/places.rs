//! Sets of places, to find what statements and arguments write of what others read.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};

use crate::ir::{Place, Program, StackId};

use super::store::Store;

/// A set of places that are written.
#[derive(Default)]
pub(super) struct Places {
    vars: BTreeSet<u32>,
    /// Stacks of which it has an element at a run-time index, which may be any.
    stacks: HashSet<StackId>,
    /// All there are.
    all: bool,
    /// Work of looking for some, since it was last asked for.
    looked: Cell<usize>,
}

impl Places {
    pub(super) fn add(&mut self, store: &Store) {
        store.written(&mut |place| self.add_place(place));
    }

    pub(super) fn add_place(&mut self, place: &Place) {
        match place {
            Place::Var(var) => {
                self.vars.insert(var.0);
            }
            Place::Elem { stack, .. } => self.add_element(*stack),
        }
    }

    /// Some element of a stack.
    pub(super) fn add_element(&mut self, stack: StackId) {
        self.stacks.insert(stack);
    }

    pub(super) fn add_all(&mut self) {
        self.all = true;
    }

    /// Counts work.
    pub(super) fn look(&self) {
        self.looked.set(self.looked.get() + 1);
    }

    pub(super) fn looked(&self) -> usize {
        self.looked.take()
    }

    pub(super) fn may_have(&self, program: &Program, place: &Place) -> bool {
        self.look();
        let variables = |stack: StackId| {
            let stack = &program[stack];
            let first = program[stack.first_header].first_field.0;
            first..first + stack.len * stack.var_stride
        };
        match place {
            _ if self.all => true,
            Place::Var(var) => {
                self.vars.contains(&var.0) || self.stacks.iter().any(|s| variables(*s).contains(&var.0))
            }
            Place::Elem { stack, .. } => {
                self.stacks.contains(stack) || self.vars.range(variables(*stack)).next().is_some()
            }
        }
    }
}
