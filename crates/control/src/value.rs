//! Values and matches: bytes that are checked against the width of the field they are for.

use std::fmt;

use num_bigint::BigUint;
use p4lang::ir::{EntryMatch, MatchKind};
use smallvec::SmallVec;

use crate::{Error, Kind, Result};

/// An unsigned number: big-endian, without leading zeros, at least one byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Value(SmallVec<[u8; 16]>);

impl Value {
    /// Leading zeros are left out.
    pub fn from_bytes(bytes: &[u8]) -> Value {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        match &bytes[zeros..] {
            [] => Value(SmallVec::from_slice(&[0])),
            rest => Value(SmallVec::from_slice(rest)),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn number(&self) -> BigUint {
        BigUint::from_bytes_be(&self.0)
    }

    /// Bits up to the highest that is set.
    pub fn bits(&self) -> u64 {
        self.0.len() as u64 * 8 - u64::from(self.0[0].leading_zeros())
    }

    pub fn is_zero(&self) -> bool {
        self.0[..] == [0]
    }

    /// The number, if it has no more than 32 bits.
    pub fn to_u32(&self) -> Option<u32> {
        (self.bits() <= 32).then(|| self.0.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    }
}

impl From<&BigUint> for Value {
    fn from(number: &BigUint) -> Value {
        Value::from_bytes(&number.to_bytes_be())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::from_bytes(&number.to_be_bytes())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.number())
    }
}

/// What one key of one entry matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Match {
    /// Anything. Not for exact keys.
    Any,
    Exact(Value),
    /// Value and prefix length.
    Lpm(Value, u32),
    /// Value and mask.
    Ternary(Value, Value),
    /// First and last, both included.
    Range(Value, Value),
    Optional(Value),
}

impl From<&EntryMatch> for Match {
    fn from(found: &EntryMatch) -> Match {
        match found {
            EntryMatch::Exact(value) => Match::Exact(value.into()),
            EntryMatch::Lpm { value, prefix_len } => Match::Lpm(value.into(), *prefix_len),
            EntryMatch::Ternary { value, mask } => Match::Ternary(value.into(), mask.into()),
            EntryMatch::Range { lo, hi } => Match::Range(lo.into(), hi.into()),
            EntryMatch::Optional(Some(value)) => Match::Optional(value.into()),
            EntryMatch::Optional(None) => Match::Any,
        }
    }
}

/// All ones.
fn ones(width: u32) -> BigUint {
    (BigUint::from(1u8) << width) - 1u8
}

impl Match {
    /// A match of a key of so many bits, in the one form that says it: [`Match::Any`] if it holds for every value, and no bits
    /// that a mask leaves out.
    pub fn canonical(found: &EntryMatch, width: u32) -> Match {
        match found {
            EntryMatch::Lpm { prefix_len: 0, .. } => Match::Any,
            EntryMatch::Ternary { mask, .. } if mask.bits() == 0 => Match::Any,
            EntryMatch::Ternary { value, mask } => {
                Match::Ternary(Value::from(&(value & mask)), Value::from(mask))
            }
            EntryMatch::Range { lo, hi }
                if lo.bits() == 0 && hi.count_ones() == u64::from(width) && hi.bits() == u64::from(width) =>
            {
                Match::Any
            }
            found => Match::from(found),
        }
    }

    /// As the data plane has it, for a key of this kind and width. Widths are checked where the entry is added.
    ///
    /// # Errors
    /// A match that is not for such a key.
    pub fn entry(&self, kind: MatchKind, width: u32) -> Result<EntryMatch> {
        Ok(match (kind, self) {
            (MatchKind::Exact, Match::Exact(value)) => EntryMatch::Exact(value.number()),
            (MatchKind::Optional, Match::Optional(value)) => EntryMatch::Optional(Some(value.number())),
            (MatchKind::Optional, Match::Any) => EntryMatch::Optional(None),
            (MatchKind::Lpm, Match::Lpm(value, prefix_len)) => {
                EntryMatch::Lpm { value: value.number(), prefix_len: *prefix_len }
            }
            (MatchKind::Lpm, Match::Any) => EntryMatch::Lpm { value: BigUint::default(), prefix_len: 0 },
            (MatchKind::Ternary, Match::Ternary(value, mask)) => {
                EntryMatch::Ternary { value: value.number(), mask: mask.number() }
            }
            (MatchKind::Ternary, Match::Any) => {
                EntryMatch::Ternary { value: BigUint::default(), mask: BigUint::default() }
            }
            (MatchKind::Range, Match::Range(lo, hi)) => {
                EntryMatch::Range { lo: lo.number(), hi: hi.number() }
            }
            (MatchKind::Range, Match::Any) => EntryMatch::Range { lo: BigUint::default(), hi: ones(width) },
            _ => return Err(Error::invalid(format!("this is not a match of kind {kind:?}"))),
        })
    }
}

/// Whether a value has no more bits than a field.
///
/// # Errors
/// It has more.
pub fn fits(what: &str, value: &BigUint, width: u32) -> Result<()> {
    if value.bits() > u64::from(width) {
        let why = format!("{value:#x} does not fit in the {width} bits of {what}");
        return Err(Error::new(Kind::OutOfRange, why).field(what));
    }
    Ok(())
}

/// Whether this is a match of such a kind for so many bits.
///
/// # Errors
/// It is not.
pub fn check_match(kind: MatchKind, width: u32, found: &EntryMatch, what: &str) -> Result<()> {
    match (kind, found) {
        (MatchKind::Exact, EntryMatch::Exact(v)) | (MatchKind::Optional, EntryMatch::Optional(Some(v))) => {
            fits(what, v, width)
        }
        (MatchKind::Optional, EntryMatch::Optional(None)) => Ok(()),
        (MatchKind::Lpm, EntryMatch::Lpm { value, prefix_len }) => {
            fits(what, value, width)?;
            if *prefix_len > width {
                let why = format!("prefix length {prefix_len} is more than the {width} bits of {what}");
                return Err(Error::invalid(why).field(what));
            }
            if value.trailing_zeros().is_some_and(|z| z < u64::from(width - prefix_len)) {
                let why = format!("{value:#x} has bits beyond the prefix of {prefix_len} bits of {what}");
                return Err(Error::invalid(why).field(what));
            }
            Ok(())
        }
        (MatchKind::Ternary, EntryMatch::Ternary { value, mask }) => {
            fits(what, value, width)?;
            fits(what, mask, width)
        }
        (MatchKind::Range, EntryMatch::Range { lo, hi }) => {
            fits(what, hi, width)?;
            if lo > hi {
                let why = format!("the range {lo:#x}..{hi:#x} of {what} ends before it starts");
                return Err(Error::invalid(why).field(what));
            }
            Ok(())
        }
        (kind, _) => Err(Error::invalid(format!("{what} is matched by {kind:?}, not like this")).field(what)),
    }
}

/// Whether one key's match holds for a value.
pub fn matches(m: &EntryMatch, value: &BigUint, width: u32) -> bool {
    match m {
        EntryMatch::Exact(v) | EntryMatch::Optional(Some(v)) => v == value,
        EntryMatch::Optional(None) => true,
        EntryMatch::Lpm { value: v, prefix_len } => {
            v >> (width - prefix_len) == value >> (width - prefix_len)
        }
        EntryMatch::Ternary { value: v, mask } => v & mask == value & mask,
        EntryMatch::Range { lo, hi } => lo <= value && value <= hi,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A value is the number of its bytes, whatever zeros are before it.
        #[test]
        fn a_value_is_its_number(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let value = Value::from_bytes(&bytes);
            let number = BigUint::from_bytes_be(&bytes);
            prop_assert_eq!(&value.number(), &number);
            prop_assert_eq!(value.bits(), number.bits());
            prop_assert_eq!(value.is_zero(), number.bits() == 0);
            prop_assert_eq!(&value, &Value::from(&number));
            prop_assert_eq!(value.to_u32(), u32::try_from(&number).ok());
            prop_assert!(value.bytes().len() == 1 || value.bytes()[0] != 0);
        }

        /// What a table gives back can be written again.
        #[test]
        fn a_match_comes_back(a in any::<u64>(), b in any::<u64>(), length in 0u32..=64) {
            let number = |n: u64| BigUint::from(n);
            let (lo, hi) = (number(a.min(b)), number(a.max(b)));
            for (kind, found) in [
                (MatchKind::Exact, EntryMatch::Exact(number(a))),
                (MatchKind::Lpm, EntryMatch::Lpm { value: number(a), prefix_len: length }),
                (MatchKind::Ternary, EntryMatch::Ternary { value: number(a), mask: number(b) }),
                (MatchKind::Range, EntryMatch::Range { lo, hi }),
                (MatchKind::Optional, EntryMatch::Optional(Some(number(a)))),
                (MatchKind::Optional, EntryMatch::Optional(None)),
            ] {
                prop_assert_eq!(Match::from(&found).entry(kind, 64), Ok(found.clone()));
                let canonical = Match::canonical(&found, 64).entry(kind, 64).unwrap();
                let holds = |value: u64| matches(&found, &number(value), 64);
                for value in [0, a, b, a ^ 1, a ^ 1 << 63, u64::MAX] {
                    prop_assert_eq!(matches(&canonical, &number(value), 64), holds(value));
                }
            }
        }
    }

    #[test]
    fn a_match_of_another_kind_is_refused() {
        assert!(Match::Any.entry(MatchKind::Exact, 8).is_err());
        assert!(Match::Exact(1.into()).entry(MatchKind::Lpm, 8).is_err());
        assert_eq!(
            Match::Any.entry(MatchKind::Range, 8),
            Ok(EntryMatch::Range { lo: 0u8.into(), hi: 255u8.into() })
        );
    }
}
