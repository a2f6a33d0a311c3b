//! The known name that a mistyped one is closest to.

/// Names that are compared with one that is not known.
const MAX_CANDIDATES: usize = 5_000;

/// The candidate that looks most like `name`, if one is near: at most a third of its letters differ, and at most three.
pub fn similar<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.len() / 3).clamp(1, 3);
    candidates
        .take(MAX_CANDIDATES)
        .map(|c| (distance(name, c), c))
        // Two words of one letter each have nothing in common, although one edit makes one of the other.
        .filter(|(d, c)| *d <= limit && *d < name.len().max(c.len()))
        .min()
        .map(|(_, c)| c)
}

/// As [`similar`], of full names (`Ingress.routes`) and one that may leave out their first parts (`routes`).
pub fn similar_object<'a>(
    name: &str,
    mut candidates: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let parts = name.split('.').count();
    let near = similar(name, candidates.clone().map(|full| last_parts(full, parts)))?;
    candidates.find(|full| last_parts(full, parts) == near)
}

/// The end of a full name with so many parts, or all of it.
fn last_parts(full: &str, parts: usize) -> &str {
    full.rmatch_indices('.').nth(parts.saturating_sub(1)).map_or(full, |(at, _)| &full[at + 1..])
}

/// Edits that turn one word into the other, case aside.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    if a.len().abs_diff(b.len()) > 3 || a.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let next = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("ipv4", "ipv6"), 1);
        assert_eq!(distance("drop", "Drop"), 0);
        assert_eq!(distance("abc", "bacd"), 3);
    }

    #[test]
    fn objects_by_their_last_parts() {
        let known = ["RouterIngress.routes", "RouterIngress.next_hop", "drop"];
        let near = |name| similar_object(name, known.iter().copied());
        assert_eq!(near("rotes"), Some("RouterIngress.routes"));
        assert_eq!(near("RouterIngress.rotes"), Some("RouterIngress.routes"));
        assert_eq!(near("nexthop"), Some("RouterIngress.next_hop"));
        assert_eq!(near("dorp"), None);
        assert_eq!(near("drp"), Some("drop"));
        assert_eq!(near("servers"), None);
        assert_eq!(similar("x", ["h", "X2"].into_iter()), Some("X2"));
        assert_eq!(similar("x", ["h", "t"].into_iter()), None);
    }
}
