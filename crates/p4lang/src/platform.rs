//! `@platform_property(KEY=NUMBER, ...)`: what a program asks of its switch (P4Runtime 1.5, "PkgInfo Message").

const KEYS: [&str; 3] = [
    "multicast_group_table_size",
    "multicast_group_table_total_replicas",
    "multicast_group_table_max_replicas_per_entry",
];

/// Keys and numbers; `None` if a key is unknown or given twice, or a number does not fit.
pub(crate) fn properties(text: &str) -> Option<Vec<(&'static str, i32)>> {
    let mut out: Vec<(&'static str, i32)> = Vec::new();
    for pair in text.split(',') {
        let (key, value) = pair.split_once('=')?;
        let key = *KEYS.iter().find(|known| **known == key.trim())?;
        let value = value.trim().replace('_', "");
        let value = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
            Some(digits) => i32::from_str_radix(digits, 16),
            None => value.parse(),
        };
        if out.iter().any(|(known, _)| *known == key) {
            return None;
        }
        out.push((key, value.ok().filter(|value| *value >= 0)?));
    }
    Some(out)
}
