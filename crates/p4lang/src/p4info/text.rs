//! The protobuf text format, as `protoc` prints it.

use std::fmt::Display;

#[derive(Debug, Default)]
pub struct Text {
    out: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, text: &str) {
        self.out.extend(std::iter::repeat_n("  ", self.depth));
        self.out.push_str(text);
        self.out.push('\n');
    }

    pub fn comment(&mut self, text: &str) {
        self.line(&format!("# {text}"));
    }

    pub fn blank(&mut self) {
        self.out.push('\n');
    }

    /// `name { ... }`
    pub fn message(&mut self, name: &str, f: impl FnOnce(&mut Text)) {
        self.line(&format!("{name} {{"));
        self.depth += 1;
        f(self);
        self.depth -= 1;
        self.line("}");
    }

    /// A number, boolean or enum value.
    pub fn field(&mut self, name: &str, value: impl Display) {
        self.line(&format!("{name}: {value}"));
    }

    /// A number that is left out when it is zero, the default.
    pub fn number(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.field(name, value);
        }
    }

    pub fn string(&mut self, name: &str, value: &str) {
        self.bytes(name, value.as_bytes());
    }

    pub fn bytes(&mut self, name: &str, value: &[u8]) {
        let mut text = String::new();
        for byte in value {
            match byte {
                b'"' => text.push_str("\\\""),
                b'\\' => text.push_str("\\\\"),
                b'\n' => text.push_str("\\n"),
                b'\t' => text.push_str("\\t"),
                b'\r' => text.push_str("\\r"),
                0x20..=0x7e => text.push(char::from(*byte)),
                _ => text.push_str(&format!("\\{byte:03o}")),
            }
        }
        self.line(&format!("{name}: \"{text}\""));
    }

    pub fn finish(self) -> String {
        self.out
    }
}
