//! Expected against received packets, and saying how they differ.

use dataplane::trace::hex;
use serde_json::{Value, json};

use super::parse::Pattern;

/// One thing that was not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Line of the `expect`, or of the `packet` that led to what nobody expected.
    pub line: usize,
    pub port: u32,
    pub what: String,
    pub expected: Option<String>,
    pub received: Option<String>,
    /// First nibble that differs, from 0.
    pub nibble: Option<usize>,
}

impl Mismatch {
    pub fn json(&self) -> Value {
        json!({
            "line": self.line,
            "port": self.port,
            "what": self.what,
            "expected": self.expected,
            "received": self.received,
            "first_different_nibble": self.nibble,
        })
    }

    /// `FILE:LINE: ...` with the packets below each other and a mark under the first difference.
    pub fn text(&self, file: &str) -> String {
        let mut out = format!("{file}:{}: port {}: {}\n", self.line, self.port, self.what);
        if let Some(expected) = &self.expected {
            out += &format!("  expected {expected}\n");
        }
        if let Some(received) = &self.received {
            out += &format!("  received {received}\n");
        }
        if let Some(nibble) = self.nibble {
            out += &format!("           {}^ byte {}\n", " ".repeat(nibble), nibble / 2);
        }
        out
    }
}

/// What is wrong with a packet, and the first nibble where.
pub fn differs(pattern: &Pattern, bytes: &[u8]) -> Option<(String, usize)> {
    let received = hex(bytes).to_ascii_uppercase().into_bytes();
    let same = |(e, r): (&u8, &u8)| *e == b'*' || e == r;
    if let Some(at) = pattern.digits.iter().zip(&received).position(|pair| !same(pair)) {
        return Some((format!("the packet differs from byte {} on", at / 2), at));
    }
    if received.len() < pattern.digits.len() {
        return Some((
            format!(
                "the packet is too short: {} bytes, expected {}",
                bytes.len(),
                pattern.digits.len().div_ceil(2)
            ),
            received.len(),
        ));
    }
    if pattern.exact && received.len() > pattern.digits.len() {
        return Some((
            format!(
                "the packet is too long: {} bytes, expected {}",
                bytes.len(),
                pattern.digits.len().div_ceil(2)
            ),
            pattern.digits.len(),
        ));
    }
    None
}

/// The pattern as it is written, without blanks.
pub fn pattern_text(pattern: &Pattern) -> String {
    let digits = String::from_utf8_lossy(&pattern.digits).to_ascii_lowercase();
    if pattern.exact { format!("{digits}$") } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_difference() {
        let pattern = |text: &str, exact| Pattern { digits: text.as_bytes().to_vec(), exact };
        assert_eq!(differs(&pattern("0A*B", false), &[0x0a, 0xcb]), None);
        assert_eq!(differs(&pattern("0A", false), &[0x0a, 0xcb]), None);
        assert_eq!(differs(&pattern("0A", true), &[0x0a]), None);
        assert_eq!(differs(&pattern("0A", true), &[0x0a, 0xcb]).unwrap().1, 2);
        assert_eq!(differs(&pattern("0A0B", false), &[0x0a]).unwrap().1, 2);
        assert_eq!(differs(&pattern("0A0B", false), &[0x0a, 0x1b]).unwrap().1, 2);
    }
}
