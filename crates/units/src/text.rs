//! A number and a unit, exactly.

use std::fmt;

/// What was written is not a quantity; says what would be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub(crate) String);

/// Names of a unit and how many of the smallest unit it is; the first name of a size is the one that is printed.
pub(crate) type Units = [(&'static str, u64)];

/// Parses `text` as a decimal number and a unit; `what` and `example` are for the message.
pub(crate) fn parse(text: &str, units: &Units, what: &str, example: &str) -> Result<u64, ParseError> {
    let fail =
        |why: &str| Err(ParseError(format!("`{text}` is not {what}: {why}; write it as in `{example}`")));
    let trimmed = text.trim();
    let at = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..at].replace('_', ""), trimmed[at..].trim());
    if trimmed.starts_with('-') {
        return fail("it must not be negative");
    }
    if number.is_empty() || number == "." {
        return fail("it does not start with a number");
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let known: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        let why =
            if unit.is_empty() { "the unit is missing".to_owned() } else { format!("no unit `{unit}`") };
        return fail(&format!("{why} (known: {})", known.join(", ")));
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if fraction.contains('.') {
        return fail("there are two points in the number");
    }
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let digits = if digits.is_empty() { "0" } else { &digits };
    let (Ok(value), Some(scale)) = (digits.parse::<u128>(), 10u128.checked_pow(fraction.len() as u32)) else {
        return fail("the number has too many digits");
    };
    let Some(scaled) = value.checked_mul(u128::from(*factor)) else { return fail("it is too large") };
    if !scaled.is_multiple_of(scale) {
        return fail(&format!("it is not a whole number of {}", units[0].0));
    }
    match u64::try_from(scaled / scale) {
        Ok(value) => Ok(value),
        Err(_) => fail("it is too large"),
    }
}

/// Prints a value in the largest unit that makes it a number with at most three decimals.
pub(crate) fn print(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let best = units.iter().rev().find(|(_, factor)| {
        value >= *factor && (u128::from(value) * 1000).is_multiple_of(u128::from(*factor))
    });
    let (name, factor) = best.copied().unwrap_or(units[0]);
    let thousandths = (u128::from(value % factor) * 1000 / u128::from(factor)) as u64;
    let mut text = (value / factor).to_string();
    if thousandths > 0 {
        text.push_str(format!(".{thousandths:03}").trim_end_matches('0'));
    }
    f.pad(&format!("{text} {name}"))
}
