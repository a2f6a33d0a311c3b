//! What a lookup needs of a table's targets, close together: a row of words for the default, then one for each entry.
//!
//! A row has the entry's key, if the table's are exact ([`Packing`]), then the action's index with what the flags below say, then
//! the action's data.

use p4lang::ir::{ActionId, MatchKind, Program, Table};

use super::exact::{Keys, Packing};
use super::lines::Lines;
use super::target::Target;
use super::words::words;

#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub words: Lines,
    shape: Shape,
    /// Words of as many rows as there may be, but for those of the program's entries.
    most: usize,
}

/// Words of a table's rows: of the key, and in all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub key: usize,
    pub stride: usize,
}

impl Shape {
    /// With room for the data of any action of the table.
    pub fn of(program: &Program, table: &Table) -> Shape {
        let data = |action: ActionId| -> usize {
            program[action].params.iter().map(|param| words(program[param.var].width)).sum()
        };
        let most = table.actions.iter().map(|action| data(action.action)).max();
        let exact = table.keys.iter().all(|key| key.kind == MatchKind::Exact);
        let widths: Vec<u32> = table.keys.iter().map(|key| key.expr.width).collect();
        let key = if exact { Packing::of(&widths).words } else { 0 };
        Shape { key, stride: key + 1 + most.unwrap_or(0) }
    }
}

impl Rows {
    /// The entry leads to a member or group of the table's profile.
    pub const INDIRECT: u64 = 1 << 33;
    /// In all rows but the default's.
    pub const HIT: u64 = 1 << 32;

    /// Of a table that may have so many entries.
    pub fn new(shape: Shape, size: usize) -> Rows {
        Rows { words: Lines::new(), shape, most: size.saturating_add(1).saturating_mul(shape.stride) }
    }

    /// Where a numbered row begins, in words from the first, which is number 0.
    #[inline(always)]
    pub fn start(&self, number: u32) -> u32 {
        number * self.shape.stride as u32
    }

    /// The number of a row.
    pub fn number(&self, start: u32) -> u32 {
        start / self.shape.stride as u32
    }

    /// As [`Rows::number`], of the row at an address that [`Rows::address`] has given.
    pub fn number_at(&self, row: *const u64) -> u32 {
        let bytes = row.addr().wrapping_sub(self.words.as_ptr().addr());
        self.number((bytes / size_of::<u64>()) as u32)
    }

    /// The row that begins there.
    #[inline(always)]
    pub fn get(&self, start: u32) -> Option<&[u64]> {
        self.words.get(start as usize..start as usize + self.shape.stride)
    }

    /// The action with its flags, and its data, of the row that begins there.
    #[inline(always)]
    pub fn action(&self, start: u32) -> &[u64] {
        &self.words[start as usize + self.shape.key..start as usize + self.shape.stride]
    }

    /// The words of the row that begins there, and of those behind it; none, if there is no such row.
    #[inline(always)]
    pub fn at(&self, start: u32) -> &[u64] {
        self.words.get(start as usize..).unwrap_or_default()
    }

    /// Where in memory the row is that begins there.
    #[inline(always)]
    pub fn address(&self, start: u32) -> *const u64 {
        self.words[start as usize..].as_ptr()
    }

    /// Sets the key of a numbered row.
    pub fn set_key(&mut self, number: u32, key: &[u64]) {
        let start = self.start(number) as usize;
        self.words.reach(start + self.shape.stride, self.most);
        self.words[start..start + self.shape.key].copy_from_slice(key);
    }

    /// Sets what a numbered row leads to.
    pub fn set(&mut self, number: u32, target: &Target) {
        let start = self.start(number) as usize;
        let end = start + self.shape.stride;
        self.words.reach(end, self.most);
        let hit = if number == 0 { 0 } else { Rows::HIT };
        let row = &mut self.words[start + self.shape.key..end];
        row.fill(0);
        match target {
            Target::Action { action, args } => {
                row[0] = u64::from(*action) | hit;
                let count = args.len().min(row.len() - 1);
                row[1..=count].copy_from_slice(&args[..count]);
            }
            Target::Member(_) | Target::Group(_) | Target::Set(_) => row[0] = Rows::INDIRECT | hit,
        }
    }
}

impl Keys for Rows {
    #[inline(always)]
    fn key(&self, row: u32) -> &[u64] {
        let start = row as usize;
        &self.words[start..start + self.shape.key]
    }

    #[inline(always)]
    fn begins<const N: usize>(&self, row: u32, words: [u64; N]) -> bool {
        self.words[row as usize..].first_chunk() == Some(&words)
    }
}
