//! Expected against received packets, and saying how they differ.

use dataplane::trace::hex;
use serde_json::{Value, json};

use super::parse::Pattern;

/// One thing that was not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Line of the `expect`, or of the `packet` that led to what nobody expected.
    pub line: usize,
    /// `None`: it is about a counter or register.
    pub port: Option<u32>,
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
        let port = self.port.map(|port| format!("port {port}: ")).unwrap_or_default();
        let mut out = format!("{file}:{}: {port}{}\n", self.line, self.what);
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
        return Some((format!("the packet is too short: {}", lengths(pattern, bytes)), received.len()));
    }
    if pattern.exact && received.len() > pattern.digits.len() {
        return Some((format!("the packet is too long: {}", lengths(pattern, bytes)), pattern.digits.len()));
    }
    None
}

/// In bytes, or in digits where half a byte is expected.
fn lengths(pattern: &Pattern, bytes: &[u8]) -> String {
    let digits = pattern.digits.len();
    if digits.is_multiple_of(2) {
        format!("{} bytes, expected {}", bytes.len(), digits / 2)
    } else {
        format!("{} hexadecimal digits, expected {digits}", 2 * bytes.len())
    }
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
        let (why, _) = differs(&pattern("0A0", true), &[0x0a, 0x0b]).unwrap();
        assert!(why.ends_with("4 hexadecimal digits, expected 3"), "{why}");
        assert_eq!(differs(&pattern("0A0B", false), &[0x0a, 0x1b]).unwrap().1, 2);
    }
}
