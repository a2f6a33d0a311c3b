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
    let (number, unit) = trimmed.split_at(end_of_number(trimmed));
    let (number, unit) = (number.replace('_', ""), unit.trim());
    let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((&number, "0"));
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
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') {
        return fail("there are two points in the number");
    }
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("0{whole}{fraction}");
    let (Ok(value), Ok(exponent)) = (digits.parse::<u128>(), exponent.parse::<i32>()) else {
        return fail("the number has too many digits");
    };
    if value == 0 {
        return Ok(0);
    }
    let power = i64::from(exponent) - fraction.len() as i64;
    let Some(scale) = u32::try_from(power.abs()).ok().and_then(|power| 10u128.checked_pow(power)) else {
        return fail(if power > 0 { "it is too large" } else { "the number has too many digits" });
    };
    let (times, parts) = if power > 0 { (scale, 1) } else { (1, scale) };
    let Some(scaled) = value.checked_mul(u128::from(*factor)).and_then(|v| v.checked_mul(times)) else {
        return fail("it is too large");
    };
    if !scaled.is_multiple_of(parts) {
        return fail(&format!("it is not a whole number of {}", units[0].0));
    }
    match u64::try_from(scaled / parts) {
        Ok(value) => Ok(value),
        Err(_) => fail("it is too large"),
    }
}

/// Where the number ends that a text begins with: `0.25`, `1_000`, or as a program prints it, `1e-05`.
fn end_of_number(text: &str) -> usize {
    let end = |from: usize, is_part: fn(char) -> bool| {
        text[from..].find(|c: char| !is_part(c)).map_or(text.len(), |at| from + at)
    };
    let mantissa = end(0, |c| c.is_ascii_digit() || c == '.' || c == '_');
    let Some(behind) = text[mantissa..].strip_prefix(['e', 'E']) else { return mantissa };
    let first = mantissa + 1 + usize::from(behind.starts_with(['+', '-']));
    let exponent = end(first, |c| c.is_ascii_digit());
    if exponent > first { exponent } else { mantissa }
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
