//! Options of IPv4 and TCP headers, which have one form: a byte for the kind, one for the length of the whole option, data; kind 0
//! ends the list, kind 1 is padding (RFC 791 section 3.1, RFC 9293 section 3.1).

use std::fmt;

use crate::between::Between;
use crate::bytes::Put;

/// Most bytes that the options of one header have.
pub const MAX: usize = 40;

const END: u8 = 0;
const PADDING: u8 = 1;

/// The options of a header, in order: kind and data. An option whose length cannot be ends the list with [`BadOption`].
#[derive(Debug, Clone)]
pub struct Iter<'a>(&'a [u8]);

/// An option's length is below two, or reaches beyond the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an option has a wrong length")]
pub struct BadOption;

impl<'a> Iter<'a> {
    /// Of the bytes behind the fixed part of a header.
    pub fn new(bytes: &'a [u8]) -> Iter<'a> {
        Iter(bytes)
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<(u8, &'a [u8]), BadOption>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (&kind, rest) = self.0.split_first()?;
            match kind {
                END => return None,
                PADDING => self.0 = rest,
                _ => {
                    let length = rest.first().map_or(0, |length| usize::from(*length));
                    if length < 2 || length > self.0.len() {
                        self.0 = &[];
                        return Some(Err(BadOption));
                    }
                    let (option, rest) = self.0.split_at(length);
                    self.0 = rest;
                    return Some(Ok((kind, &option[2..])));
                }
            }
        }
    }
}

/// The header has no room for an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the option needs {needed} bytes, and the header has room for {left}")]
pub struct NoRoom {
    pub needed: usize,
    pub left: usize,
}

/// Options one after the other, without padding: at most [`MAX`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OptionList {
    len: u8,
    bytes: [u8; MAX],
}

impl Default for OptionList {
    fn default() -> OptionList {
        OptionList::EMPTY
    }
}

impl fmt::Debug for OptionList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl OptionList {
    pub const EMPTY: OptionList = OptionList { len: 0, bytes: [0; MAX] };

    /// The options that stand in the bytes of a header, but for those that `take` does not want.
    ///
    /// # Errors
    /// An option with a wrong length.
    pub fn parse(bytes: &[u8], take: impl Fn(u8) -> bool) -> Result<OptionList, BadOption> {
        let mut list = OptionList::EMPTY;
        for option in Iter::new(bytes) {
            let (kind, data) = option?;
            if take(kind) {
                // A header has no more than a list has room for; bytes from elsewhere may.
                list.push(kind, data).map_err(|_| BadOption)?;
            }
        }
        Ok(list)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the list takes in a header: padded to a multiple of four.
    pub fn padded_len(&self) -> usize {
        usize::from(self.len).next_multiple_of(4)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        Iter::new(self.as_bytes()).filter_map(Result::ok)
    }

    /// The data of the first option of this kind.
    pub fn find(&self, kind: u8) -> Option<&[u8]> {
        self.iter().find(|(k, _)| *k == kind).map(|(_, data)| data)
    }

    /// Appends an option.
    ///
    /// # Errors
    /// No room for it.
    ///
    /// # Panics
    /// Kinds 0 and 1, which have no length, are no options.
    pub fn push(&mut self, kind: u8, data: &[u8]) -> Result<(), NoRoom> {
        assert!(kind > PADDING, "option kind {kind} carries no data");
        let (at, needed) = (usize::from(self.len), data.len() + 2);
        if at + needed > MAX {
            return Err(NoRoom { needed, left: MAX - at });
        }
        self.bytes[at] = kind;
        self.bytes[at + 1] = needed as u8;
        self.bytes[at + 2..at + needed].copy_from_slice(data);
        self.len += needed as u8;
        Ok(())
    }

    /// Takes all options of this kind out. Gives whether there was one.
    pub fn remove(&mut self, kind: u8) -> bool {
        let before = *self;
        *self = OptionList::EMPTY;
        let mut found = false;
        for (k, data) in before.iter() {
            // What was in a list fits in one.
            found |= k == kind || self.push(k, data).is_err();
        }
        found
    }

    /// Appends the list to a header, padded with `padding` to a multiple of four.
    pub fn emit(&self, padding: u8, out: &mut impl Put) {
        out.put(self.as_bytes());
        // Up to a whole word.
        out.put(&[padding; 3][..self.padded_len() - usize::from(self.len)]);
    }
}

/// What a host's agents add to a packet: options beside those of its TCP, and a header between Ethernet and IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    pub ip: OptionList,
    pub tcp: OptionList,
    pub between: Option<Between>,
}

impl Options {
    pub const EMPTY: Options = Options { ip: OptionList::EMPTY, tcp: OptionList::EMPTY, between: None };

    pub fn is_empty(&self) -> bool {
        self.ip.is_empty() && self.tcp.is_empty() && self.between.is_none()
    }

    /// Bytes that they take in the packet.
    pub fn padded_len(&self) -> u32 {
        let between = self.between.map_or(0, |header| header.wire_len());
        (self.ip.padded_len() + self.tcp.padded_len() + between) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_grow_shrink_and_end() {
        let mut list = OptionList::EMPTY;
        list.push(253, &[1, 2, 3]).expect("room");
        list.push(30, &[]).expect("room");
        assert_eq!(list.as_bytes(), [253, 5, 1, 2, 3, 30, 2]);
        assert_eq!((list.padded_len(), list.find(30), list.find(31)), (8, Some(&[][..]), None));
        assert_eq!(list.push(31, &[0; 32]), Err(NoRoom { needed: 34, left: 33 }));
        let mut out = vec![];
        list.emit(1, &mut out);
        assert_eq!(out, [253, 5, 1, 2, 3, 30, 2, 1]);
        assert_eq!(OptionList::parse(&out, |_| true), Ok(list));
        assert!(list.remove(253) && !list.remove(253));
        assert_eq!(list.as_bytes(), [30, 2]);
    }

    #[test]
    fn wrong_lengths_end_a_list() {
        for bytes in [&[5][..], &[5, 1], &[5, 0, 0], &[5, 4, 0], &[1, 1, 9, 3]] {
            assert_eq!(Iter::new(bytes).collect::<Vec<_>>(), [Err(BadOption)], "{bytes:?}");
        }
        assert_eq!(Iter::new(&[1, 0, 5]).count(), 0);
        assert_eq!(OptionList::parse(&[9; 45], |_| true), Err(BadOption));
    }
}
