//! Numbers as people write them in tests and commands, and key matches made of them.
//!
//! Two dialects. The Simple Test Framework has wildcard digits (`0x0a**`), and what a ternary or lpm key covers follows
//! from the digits that are written. The command line of the reference switch has addresses (`10.0.0.1`, MAC, IPv6) and
//! the forms `value/length`, `value&&&mask` and `low->high`. Both end up as an [`EntryMatch`] that fits its key.

use std::net::{Ipv4Addr, Ipv6Addr};

use num_bigint::BigUint;
use num_traits::{One, Zero};
use p4lang::ir::{EntryMatch, MatchKind};

/// Bytes of the longest number that is read; no field is wider.
const MAX_DIGITS: usize = 1 << 16;

type Parsed<T> = Result<T, String>;

/// Radix and digits of a number's text.
fn radix(text: &str) -> (u32, &str) {
    let lower = text.get(..2).map(str::to_ascii_lowercase);
    match lower.as_deref() {
        Some("0x") => (16, &text[2..]),
        Some("0b") => (2, &text[2..]),
        Some("0o") => (8, &text[2..]),
        _ => (10, text),
    }
}

fn digits(text: &str, radix: u32) -> Option<BigUint> {
    if text.is_empty() || text.len() > MAX_DIGITS || text.starts_with('+') {
        return None;
    }
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    BigUint::parse_bytes(plain.as_bytes(), radix)
}

/// A number in decimal, `0x`, `0b` or `0o`.
pub fn number(text: &str) -> Parsed<BigUint> {
    let (radix, rest) = radix(text);
    digits(rest, radix).ok_or_else(|| format!("`{text}` is not a number; write 10, 0xa, 0b1010 or 0o12"))
}

/// A number that must fit in 32 bits: a port, an index, a handle.
pub fn small(what: &str, text: &str) -> Parsed<u32> {
    let value = number(text).map_err(|e| format!("{what}: {e}"))?;
    u32::try_from(&value).map_err(|_| format!("{what}: {text} is more than 32 bits"))
}

pub fn mask(width: u32) -> BigUint {
    (BigUint::one() << width) - BigUint::one()
}

fn fits(value: BigUint, width: u32, text: &str) -> Parsed<BigUint> {
    if value.bits() > u64::from(width) {
        return Err(format!("`{text}` does not fit in {width} bits"));
    }
    Ok(value)
}

/// A value on the command line of the reference switch.
pub fn cli(text: &str, width: u32) -> Parsed<BigUint> {
    let value = if let (32, Ok(address)) = (width, text.parse::<Ipv4Addr>()) {
        BigUint::from(u32::from(address))
    } else if let (128, Ok(address)) = (width, text.parse::<Ipv6Addr>()) {
        BigUint::from(u128::from(address))
    } else if let (48, Some(address)) = (width, mac(text)) {
        BigUint::from(address)
    } else if text.contains('.') || text.contains(':') {
        return Err(format!(
            "`{text}` is not a value of {width} bits; IPv4 addresses are 32 bits, MAC addresses 48, IPv6 addresses 128"
        ));
    } else {
        number(text)?
    };
    fits(value, width, text)
}

fn mac(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    if parts.len() != 6 {
        return None;
    }
    parts.iter().try_fold(0u64, |sum, part| {
        let ok = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit());
        ok.then(|| u64::from_str_radix(part, 16).ok()).flatten().map(|byte| sum << 8 | byte)
    })
}

fn lpm(value: BigUint, prefix_len: u32, width: u32) -> EntryMatch {
    let prefix_len = prefix_len.min(width);
    // Bits beyond the prefix mean nothing, as in the reference switch.
    let keep = mask(width) ^ mask(width - prefix_len);
    EntryMatch::Lpm { value: value & keep, prefix_len }
}

fn ternary(value: BigUint, mask: BigUint) -> EntryMatch {
    EntryMatch::Ternary { value: value & &mask, mask }
}

fn prefix_length(text: &str, width: u32) -> Parsed<u32> {
    let length = small("prefix length", text)?;
    if length > width {
        return Err(format!("prefix length {length} is more than the {width} bits of the key"));
    }
    Ok(length)
}

/// What a key matches when an STF entry does not mention it: anything, but exact keys match 0.
pub fn stf_missing(kind: MatchKind, width: u32) -> EntryMatch {
    match kind {
        MatchKind::Exact => EntryMatch::Exact(BigUint::zero()),
        MatchKind::Lpm => EntryMatch::Lpm { value: BigUint::zero(), prefix_len: 0 },
        MatchKind::Ternary => ternary(BigUint::zero(), BigUint::zero()),
        MatchKind::Range => EntryMatch::Range { lo: BigUint::zero(), hi: mask(width) },
        MatchKind::Optional => EntryMatch::Optional(None),
    }
}

/// A key's match in STF.
pub fn stf_match(text: &str, kind: MatchKind, width: u32) -> Parsed<EntryMatch> {
    match kind {
        MatchKind::Exact => Ok(EntryMatch::Exact(stf_value(text, width)?)),
        MatchKind::Optional if text == "*" => Ok(EntryMatch::Optional(None)),
        MatchKind::Optional => Ok(EntryMatch::Optional(Some(stf_value(text, width)?))),
        MatchKind::Range => {
            let (lo, hi) = text.split_once("..").or_else(|| text.split_once("->")).unwrap_or((text, text));
            range(stf_value(lo, width)?, stf_value(hi, width)?, text)
        }
        MatchKind::Lpm => {
            if let Some((value, length)) = text.split_once('/') {
                return Ok(lpm(stf_value(value, width)?, prefix_length(length, width)?, width));
            }
            if text.contains("&&&") {
                return Err(format!(
                    "`{text}`: an lpm key has no mask; write value/length, or `*` for its last digits"
                ));
            }
            let (value, covered) = wildcards(text)?;
            let value = fits(value, width, text)?;
            if radix(text).0 == 10 {
                return Ok(lpm(value, width, width));
            }
            if text.replace('_', "").trim_end_matches('*').contains('*') {
                return Err(format!("`{text}`: in an lpm key only the last digits may be `*`"));
            }
            let free =
                if covered.is_zero() { u64::from(width) } else { covered.trailing_zeros().unwrap_or(0) };
            Ok(lpm(value, width.saturating_sub(free as u32), width))
        }
        MatchKind::Ternary => {
            if let Some((value, mask)) = text.split_once("&&&") {
                return Ok(ternary(stf_value(value, width)?, stf_value(mask, width)?));
            }
            if text == "*" {
                return Ok(stf_missing(kind, width));
            }
            if text.contains('/') {
                return Err(format!(
                    "`{text}`: a ternary key has no prefix; write value&&&mask, or `*` for digits"
                ));
            }
            let (value, covered) = wildcards(text)?;
            let value = fits(value, width, text)?;
            // Decimal digits say nothing about bits: the whole key is meant.
            let covered = if radix(text).0 == 10 { mask(width) } else { covered & mask(width) };
            Ok(ternary(value, covered))
        }
    }
}

/// A value in STF.
pub fn stf_value(text: &str, width: u32) -> Parsed<BigUint> {
    fits(number(text)?, width, text)
}

/// Value with 0 for each `*`, and the bits of all other digits.
fn wildcards(text: &str) -> Parsed<(BigUint, BigUint)> {
    let (radix, rest) = radix(text);
    let rest = rest.replace('_', "");
    if radix == 10 && rest.contains('*') {
        return Err(format!("`{text}`: `*` stands for a digit of a 0x, 0o or 0b number"));
    }
    let zeros = rest.replace('*', "0");
    let value = digits(&zeros, radix).ok_or_else(|| format!("`{text}` is not a number"))?;
    let top = char::from_digit(radix - 1, radix).unwrap_or('9');
    let ones: String = rest.chars().map(|c| if c == '*' { '0' } else { top }).collect();
    let covered = digits(&ones, radix).unwrap_or_default();
    Ok((value, covered))
}

fn range(lo: BigUint, hi: BigUint, text: &str) -> Parsed<EntryMatch> {
    if lo > hi {
        return Err(format!("the range `{text}` ends before it starts"));
    }
    Ok(EntryMatch::Range { lo, hi })
}

/// A key's match on the command line of the reference switch.
pub fn cli_match(text: &str, kind: MatchKind, width: u32) -> Parsed<EntryMatch> {
    match kind {
        MatchKind::Exact => Ok(EntryMatch::Exact(cli(text, width)?)),
        MatchKind::Lpm => match text.split_once('/') {
            Some((value, length)) => Ok(lpm(cli(value, width)?, prefix_length(length, width)?, width)),
            None => Err(format!("`{text}` has no prefix length; write value/length")),
        },
        MatchKind::Ternary => match text.split_once("&&&") {
            Some((value, mask)) => Ok(ternary(cli(value, width)?, cli(mask, width)?)),
            None => Err(format!("`{text}` has no mask; write value&&&mask")),
        },
        MatchKind::Range => match text.split_once("->") {
            Some((lo, hi)) => range(cli(lo, width)?, cli(hi, width)?, text),
            None => Err(format!("`{text}` is not a range; write low->high")),
        },
        // The reference compiler hands optional keys to its switch as ternary ones.
        MatchKind::Optional => match text.split_once("&&&") {
            None => Ok(EntryMatch::Optional(Some(cli(text, width)?))),
            Some((value, covered)) => {
                let (value, covered) = (cli(value, width)?, cli(covered, width)?);
                if covered.is_zero() {
                    Ok(EntryMatch::Optional(None))
                } else if covered == mask(width) {
                    Ok(EntryMatch::Optional(Some(value)))
                } else {
                    Err(format!("`{text}`: the mask of an optional key is all ones or zero"))
                }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(v: u64) -> BigUint {
        v.into()
    }

    #[test]
    fn stf_forms() {
        for (text, kind, width, want) in [
            ("10", MatchKind::Exact, 8, EntryMatch::Exact(n(10))),
            ("0X0a", MatchKind::Exact, 8, EntryMatch::Exact(n(10))),
            ("0b1010", MatchKind::Exact, 8, EntryMatch::Exact(n(10))),
            ("0o12", MatchKind::Exact, 8, EntryMatch::Exact(n(10))),
            ("0x0a00/8", MatchKind::Lpm, 16, EntryMatch::Lpm { value: n(0x0a00), prefix_len: 8 }),
            ("0x0aff/8", MatchKind::Lpm, 16, EntryMatch::Lpm { value: n(0x0a00), prefix_len: 8 }),
            ("0x0a**", MatchKind::Lpm, 16, EntryMatch::Lpm { value: n(0x0a00), prefix_len: 8 }),
            ("0x0a00", MatchKind::Lpm, 16, EntryMatch::Lpm { value: n(0x0a00), prefix_len: 16 }),
            ("10", MatchKind::Lpm, 16, EntryMatch::Lpm { value: n(10), prefix_len: 16 }),
            ("0x1**", MatchKind::Lpm, 9, EntryMatch::Lpm { value: n(0x100), prefix_len: 1 }),
            ("0x0a_**", MatchKind::Lpm, 16, EntryMatch::Lpm { value: n(0x0a00), prefix_len: 8 }),
            ("0x1_*_*", MatchKind::Lpm, 12, EntryMatch::Lpm { value: n(0x100), prefix_len: 4 }),
            ("0x**", MatchKind::Lpm, 8, EntryMatch::Lpm { value: n(0), prefix_len: 0 }),
            ("0x5", MatchKind::Lpm, 16, EntryMatch::Lpm { value: n(5), prefix_len: 16 }),
            ("0x0_1", MatchKind::Ternary, 16, EntryMatch::Ternary { value: n(1), mask: n(0xff) }),
            ("0x0a**", MatchKind::Ternary, 16, EntryMatch::Ternary { value: n(0x0a00), mask: n(0xff00) }),
            ("0x1", MatchKind::Ternary, 16, EntryMatch::Ternary { value: n(1), mask: n(0xf) }),
            ("0b1*0", MatchKind::Ternary, 16, EntryMatch::Ternary { value: n(4), mask: n(5) }),
            ("0x000", MatchKind::Ternary, 9, EntryMatch::Ternary { value: n(0), mask: n(0x1ff) }),
            ("5", MatchKind::Ternary, 8, EntryMatch::Ternary { value: n(5), mask: n(0xff) }),
            ("7&&&3", MatchKind::Ternary, 8, EntryMatch::Ternary { value: n(3), mask: n(3) }),
            ("1..5", MatchKind::Range, 8, EntryMatch::Range { lo: n(1), hi: n(5) }),
            ("1->5", MatchKind::Range, 8, EntryMatch::Range { lo: n(1), hi: n(5) }),
            ("9", MatchKind::Range, 8, EntryMatch::Range { lo: n(9), hi: n(9) }),
            ("9", MatchKind::Optional, 8, EntryMatch::Optional(Some(n(9)))),
        ] {
            assert_eq!(stf_match(text, kind, width), Ok(want), "{text}");
        }
        for (text, kind) in [
            ("256", MatchKind::Exact),
            ("", MatchKind::Exact),
            ("0x", MatchKind::Exact),
            ("0x**", MatchKind::Exact),
            ("1*", MatchKind::Ternary),
            ("1/9", MatchKind::Lpm),
            ("0x*1", MatchKind::Lpm),
            ("0x10&&&0xf0", MatchKind::Lpm),
            ("0x10/4", MatchKind::Ternary),
            ("5..1", MatchKind::Range),
            ("-1", MatchKind::Exact),
        ] {
            assert!(stf_match(text, kind, 8).is_err(), "{text}");
        }
    }

    #[test]
    fn command_forms() {
        assert_eq!(cli("10.0.0.1", 32), Ok(n(0x0a00_0001)));
        assert_eq!(cli("00:11:22:33:44:55", 48), Ok(n(0x0011_2233_4455)));
        assert_eq!(cli("::1", 128), Ok(n(1)));
        assert!(cli("10.0.0.1", 16).is_err());
        assert!(cli("10.0.0.256", 32).is_err());
        assert!(cli("0x100", 8).is_err());
        assert_eq!(
            cli_match("10.0.0.0/8", MatchKind::Lpm, 32),
            Ok(EntryMatch::Lpm { value: n(0x0a00_0000), prefix_len: 8 })
        );
        assert_eq!(
            cli_match("10.0.0.1&&&255.0.0.0", MatchKind::Ternary, 32),
            Ok(EntryMatch::Ternary { value: n(0x0a00_0000), mask: n(0xff00_0000) })
        );
        assert_eq!(
            cli_match("0x10->0x20", MatchKind::Range, 16),
            Ok(EntryMatch::Range { lo: n(16), hi: n(32) })
        );
        assert_eq!(cli_match("0&&&0", MatchKind::Optional, 8), Ok(EntryMatch::Optional(None)));
        assert!(cli_match("1", MatchKind::Lpm, 8).is_err());
        assert!(cli_match("1", MatchKind::Ternary, 8).is_err());
    }
}
