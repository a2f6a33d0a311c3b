//! Standard metadata in a frame, and the fields that a packet keeps from one pass to the next.

use p4lang::ir::{HeaderId, VarHome, VarId};
use p4lang::lower::v1model::{StandardMetadata, V1Model};

use super::Work;
use crate::runtime::Pipeline;

impl Pipeline {
    pub(crate) fn v1(&self) -> &V1Model {
        // Only v1model's path gets here.
        self.view.downcast_ref().expect("the program is for v1model")
    }

    pub(crate) fn set(&self, frame: &mut [u8], var: impl Fn(&StandardMetadata) -> Option<VarId>, value: u64) {
        if let Some(var) = var(&self.v1().standard) {
            let width = self.program[var].width;
            let value = if width < 64 { value & ((1 << width) - 1) } else { value };
            self.layout.set_u64(frame, var, value);
        }
    }

    pub(crate) fn get(&self, frame: &[u8], var: impl Fn(&StandardMetadata) -> Option<VarId>) -> u32 {
        var(&self.v1().standard).map_or(0, |v| self.layout.get_u64(frame, v) as u32)
    }

    /// Copies the fields of list `index` from one frame to another.
    pub(crate) fn keep(&self, from: &[u8], to: &mut [u8], index: u32) {
        let Some(list) = self.program.field_lists.iter().find(|l| l.index == index) else { return };
        for var in &list.vars {
            if self.program[*var].varbit {
                let slot = self.layout.slot(*var);
                let (bits, bytes) = slot.varbit(from);
                slot.set_varbit(to, bits, bytes);
            } else {
                self.layout.set(to, *var, &self.layout.get(from, *var));
            }
        }
        for header in &list.headers {
            let slot = self.layout.header_slot(*header);
            let range = slot.base as usize..(slot.base + slot.extent) as usize;
            to[range.clone()].copy_from_slice(&from[range]);
        }
    }

    pub(crate) fn kept(&mut self, work: Box<Work>, list: Option<u32>) -> Option<(Box<Work>, u32)> {
        match list {
            Some(list) => Some((work, list)),
            None => {
                self.keep_work(work);
                None
            }
        }
    }

    /// A clone's metadata, standard metadata too: the fields of the list as they are in `original`, all else zero, as in
    /// the reference switch. It tells egress only the packet's length, and what the queue says.
    pub(crate) fn forget_metadata(&self, copy: &mut [u8], original: &[u8], list: Option<u32>, length: u64) {
        for (index, var) in self.program.vars.iter().enumerate() {
            let id = VarId(index as u32);
            if var.home == VarHome::Global && var.varbit {
                self.layout.slot(id).set_varbit(copy, 0, &[]);
            } else if var.home == VarHome::Global {
                self.layout.set(copy, id, &Default::default());
            }
        }
        let arrays = self.program.stacks.iter().filter(|stack| stack.plain);
        for header in
            arrays.flat_map(|array| (0..array.len * array.header_stride).map(|k| array.first_header.0 + k))
        {
            if !self.program[HeaderId(header)].local {
                self.layout.header_slot(HeaderId(header)).reset(copy);
            }
        }
        if let Some(list) = list {
            self.keep(original, copy, list);
        }
        self.set(copy, |s| s.packet_length, length);
    }
}
