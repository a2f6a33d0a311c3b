//! Register arrays: all cells of a program's in one piece of memory.
//!
//! Cells that one packet reads with one index lie next to each other, in one line of the cache ([`places`]): a packet of a program
//! with a dozen registers for each flow touches two lines, not a dozen. Whoever goes by cells sees arrays.

use std::fmt;
use std::ops::Range;

use p4lang::ir::Program;

use super::places::{LINE, Place, places};
use super::words::words;

/// The register arrays of a program.
pub struct Registers {
    /// Up to a line less one word before the first cell.
    memory: Vec<u64>,
    /// Of the first word that is on a line's beginning: in the memory, and its address, which is where native code finds it.
    first: usize,
    pub(crate) address: usize,
    arrays: Vec<Array>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Array {
    place: Place,
    len: usize,
    words_per_cell: usize,
    width: u32,
}

impl Array {
    /// The words of a cell, from the first line on.
    #[inline]
    fn cell(&self, index: usize) -> Option<Range<usize>> {
        let start = self.place.start + index * self.place.stride;
        (index < self.len).then_some(start..start + self.words_per_cell)
    }
}

/// One register array.
#[derive(Clone, Copy)]
pub struct Register<'a> {
    words: &'a [u64],
    array: Array,
}

impl<'a> Register<'a> {
    /// Of cells.
    pub fn len(self) -> usize {
        self.array.len
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// In bits.
    pub fn width(self) -> u32 {
        self.array.width
    }

    pub fn words_per_cell(self) -> usize {
        self.array.words_per_cell
    }

    /// The words of a cell.
    pub fn cell(self, index: usize) -> Option<&'a [u64]> {
        Some(&self.words[self.array.cell(index)?])
    }

    /// The words of cells, which there are, one after the other.
    pub fn words(self, cells: Range<usize>) -> impl Iterator<Item = u64> + use<'a> {
        let Array { place, words_per_cell, .. } = self.array;
        let end = if cells.is_empty() { 0 } else { (cells.end - 1) * place.stride + words_per_cell };
        let from = (cells.start * place.stride).min(end);
        let words = &self.words[place.start + from..place.start + end];
        words.chunks(place.stride).flat_map(move |cell| &cell[..words_per_cell]).copied()
    }

    /// As [`Register::words`], in bytes, the least significant of each word first.
    pub fn bytes(self, cells: Range<usize>) -> Vec<u8> {
        let Array { place, words_per_cell, .. } = self.array;
        let mut bytes = vec![0; size_of::<u64>() * words_per_cell * cells.len()];
        let from = self.words[place.start..].chunks(place.stride).skip(cells.start);
        for (to, cell) in bytes.chunks_exact_mut(size_of::<u64>() * words_per_cell).zip(from) {
            for (to, word) in to.chunks_exact_mut(size_of::<u64>()).zip(cell) {
                to.copy_from_slice(&word.to_le_bytes());
            }
        }
        bytes
    }

    /// The words of all cells.
    pub fn all(self) -> Vec<u64> {
        self.words(0..self.len()).collect()
    }
}

impl Registers {
    /// All zero; the system provides the memory as it is used.
    pub(crate) fn new(program: &Program) -> Registers {
        let arrays: Vec<Array> = program
            .registers
            .iter()
            .zip(places(program))
            .map(|(declared, place)| Array {
                place,
                len: declared.size as usize,
                words_per_cell: words(declared.width),
                width: declared.width,
            })
            .collect();
        let words = arrays.iter().try_fold(0usize, |sum, array| {
            array.len.checked_mul(array.words_per_cell).and_then(|words| sum.checked_add(words))
        });
        // What does not fit in memory is more than a program may declare.
        let words = words.expect("registers fit in memory");
        let spare = if words == 0 { 0 } else { LINE - 1 };
        Registers::of(vec![0; words + spare], arrays)
    }

    /// See [`super::State::provide`].
    pub(super) fn provide(&mut self) {
        super::touch_pages(&mut self.memory);
    }

    fn of(memory: Vec<u64>, arrays: Vec<Array>) -> Registers {
        let address = memory.as_ptr().expose_provenance();
        let first = (address.next_multiple_of(LINE * size_of::<u64>()) - address) / size_of::<u64>();
        let first = first.min(memory.len());
        Registers { address: address + first * size_of::<u64>(), memory, first, arrays }
    }

    pub fn len(&self) -> usize {
        self.arrays.len()
    }

    pub fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    /// The array with this index.
    pub fn get(&self, register: usize) -> Register<'_> {
        Register { words: &self.memory[self.first..], array: self.arrays[register] }
    }

    pub fn iter(&self) -> impl Iterator<Item = Register<'_>> {
        (0..self.len()).map(|register| self.get(register))
    }

    pub fn cell_mut(&mut self, register: usize, index: usize) -> Option<&mut [u64]> {
        let cell = self.arrays[register].cell(index)?;
        Some(&mut self.memory[self.first..][cell])
    }

    /// Sets the words of cells from one on, which there are, to others one after the other.
    pub fn set(&mut self, register: usize, from: usize, words: impl IntoIterator<Item = u64>) {
        let Array { place, words_per_cell, len, .. } = self.arrays[register];
        let cells = self.memory[self.first + place.start..].chunks_mut(place.stride);
        let cells = cells.take(len).skip(from);
        let to = cells.flat_map(|cell| &mut cell[..words_per_cell]);
        to.zip(words).for_each(|(to, word)| *to = word);
    }

    /// Whether all cells have the places that another program's have.
    pub(crate) fn lie_as(&self, other: &Registers) -> bool {
        self.arrays == other.arrays
    }
}

impl Clone for Registers {
    fn clone(&self) -> Registers {
        if self.memory.is_empty() {
            return Registers::of(Vec::new(), self.arrays.clone());
        }
        // Its first line begins elsewhere.
        let mut clone = Registers::of(vec![0; self.memory.len()], self.arrays.clone());
        let words = self.memory.len() + 1 - LINE;
        clone.memory[clone.first..][..words].copy_from_slice(&self.memory[self.first..][..words]);
        clone
    }
}

impl PartialEq for Registers {
    fn eq(&self, other: &Registers) -> bool {
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|(a, b)| {
                a.width() == b.width() && a.len() == b.len() && a.words(0..a.len()).eq(b.words(0..b.len()))
            })
    }
}

impl fmt::Debug for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Register::all)).finish()
    }
}

#[cfg(test)]
mod tests {
    use units::SplitMix;

    use super::*;

    /// Registers of these lengths and words for each cell, and places.
    fn registers(arrays: &[(usize, usize, Place)]) -> Registers {
        let arrays = arrays.iter().map(|(len, words_per_cell, place)| Array {
            place: *place,
            len: *len,
            words_per_cell: *words_per_cell,
            width: 64 * *words_per_cell as u32,
        });
        let arrays: Vec<Array> = arrays.collect();
        let words: usize = arrays.iter().map(|array| array.len * array.words_per_cell).sum();
        Registers::of(vec![0; words + LINE - 1], arrays)
    }

    fn apart_and_together() -> [Registers; 2] {
        let place = |start, stride| Place { start, stride };
        let apart = [(5, 1, place(0, 1)), (5, 1, place(5, 1)), (5, 2, place(10, 2)), (3, 3, place(20, 3))];
        let together = [(5, 1, place(0, 4)), (5, 1, place(1, 4)), (5, 2, place(2, 4)), (3, 3, place(20, 3))];
        [registers(&apart), registers(&together)]
    }

    #[test]
    fn cells_are_those_of_arrays_wherever_they_lie() {
        let mut rng = SplitMix::new(1);
        let mut both = apart_and_together();
        let mut model: Vec<Vec<u64>> = both[0].iter().map(Register::all).collect();
        for _ in 0..500 {
            let register = rng.between(0, 3) as usize;
            let [len, width] = [both[0].get(register).len(), both[0].get(register).words_per_cell()];
            let from = rng.between(0, len as u64) as usize;
            let count = rng.between(0, (len - from) as u64) as usize;
            let words: Vec<u64> = (0..count * width).map(|_| rng.next_u64()).collect();
            for registers in &mut both {
                registers.set(register, from, words.iter().copied());
                assert_eq!(registers.cell_mut(register, len), None);
            }
            model[register][from * width..][..words.len()].copy_from_slice(&words);
            for registers in &both {
                assert_eq!(registers.iter().map(Register::all).collect::<Vec<_>>(), model);
                assert_eq!(registers.get(register).words(from..from + count).collect::<Vec<_>>(), words);
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                assert_eq!(registers.get(register).bytes(from..from + count), bytes);
                for cell in 0..len {
                    let words = &model[register][cell * width..][..width];
                    assert_eq!(registers.get(register).cell(cell), Some(words));
                }
                assert_eq!(registers.get(register).cell(len), None);
            }
            assert_eq!(both[0], both[1]);
            assert_eq!(format!("{:?}", both[0]), format!("{:?}", both[1]));
        }
    }

    #[test]
    fn copies_and_those_in_other_places_are_equal_and_begin_on_a_line() {
        let [mut apart, mut together] = apart_and_together();
        let set = |registers: &mut Registers| {
            for (register, cell) in [(0, 4), (1, 0), (2, 3), (3, 2)] {
                let words = vec![register as u64 + 7; registers.get(register).words_per_cell()];
                registers.set(register, cell, words);
            }
        };
        set(&mut apart);
        assert_ne!(apart, together);
        set(&mut together);
        assert!(!together.lie_as(&apart));
        // Of addresses some begin on a line, and some do not.
        let copies: Vec<Registers> = (0..9).map(|_| together.clone()).collect();
        for registers in copies.iter().chain([&together]) {
            assert_eq!(*registers, apart);
            assert_eq!(registers.address % 64, 0);
            assert_eq!(registers.address, registers.memory[registers.first..].as_ptr().addr());
        }
        let none = registers(&[]).clone();
        assert!(none.is_empty() && Registers::of(Vec::new(), Vec::new()).clone().is_empty());
    }
}
