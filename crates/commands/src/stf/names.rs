//! Names as STF files have them: any unambiguous end of a name, and several spellings of key names.

use p4lang::ir::{Program, TableId};

/// The index of the name that `wanted` means: itself, else the only one that ends with it in whole parts, else the
/// only one that ends with it.
fn find<'a>(what: &str, wanted: &str, names: impl Iterator<Item = &'a str> + Clone) -> Result<usize, String> {
    if let Some(at) = names.clone().position(|n| n == wanted) {
        return Ok(at);
    }
    let suffix = format!(".{wanted}");
    for end in [suffix.as_str(), wanted] {
        let found: Vec<usize> =
            names.clone().enumerate().filter(|(_, n)| n.ends_with(end)).map(|(i, _)| i).collect();
        match found[..] {
            [only] => return Ok(only),
            [] => {}
            _ => {
                return Err(format!(
                    "`{wanted}` could be any of {} {what}s; give the full name",
                    found.len()
                ));
            }
        }
    }
    let near = meant(p4lang::similar_object(wanted, names.clone()));
    let known: Vec<String> = names.take(20).map(|n| format!("`{n}`")).collect();
    Err(if known.is_empty() {
        format!("no {what} `{wanted}`; the program has none")
    } else {
        format!("no {what} `{wanted}`; {near}there are {}", known.join(", "))
    })
}

pub fn table(program: &Program, wanted: &str) -> Result<TableId, String> {
    let names = program.tables.iter().map(|t| t.info.name.as_str());
    find("table", wanted, names).map(|i| TableId(i as u32))
}

/// Index in the table's action list.
pub fn action(program: &Program, table: TableId, wanted: &str) -> Result<u32, String> {
    let names = program[table].actions.iter().map(|a| program[a.action].info.name.as_str());
    find(&format!("action of table `{}`", program[table].info.name), wanted, names).map(|i| i as u32)
}

/// Index of the key of a table.
pub fn key(program: &Program, table: TableId, wanted: &str) -> Result<usize, String> {
    let keys = &program[table].keys;
    let wanted_form = canonical(wanted);
    let forms: Vec<String> = keys.iter().map(|k| canonical(&k.name)).collect();
    if let Some(at) = forms.iter().position(|f| *f == wanted_form) {
        return Ok(at);
    }
    // `hdr.h` for `hdr.h.isValid()`, `valid` for the only validity there is.
    let validity = format!("{wanted_form}.$valid$");
    if let Some(at) = forms.iter().position(|f| *f == validity) {
        return Ok(at);
    }
    let end = if wanted_form == "valid" { "$valid$" } else { &wanted_form };
    let suffix = format!(".{end}");
    let mut ending = forms.iter().enumerate().filter(|(_, form)| *form == end || form.ends_with(&suffix));
    match (ending.next(), ending.count()) {
        (Some((at, _)), 0) => return Ok(at),
        (Some(_), others) => {
            let table = &program[table].info.name;
            return Err(format!(
                "`{wanted}` could be any of {} keys of table `{table}`; give the full name",
                others + 1
            ));
        }
        (None, _) => {}
    }
    // `h.f.slice` for `h.f[7:4]`, where it is the only slice of the field.
    if let Some(field) = wanted_form.strip_suffix(".slice") {
        let suffix = format!(".{field}");
        let mut slices = forms.iter().enumerate().filter(|(_, form)| {
            let sliced = form.strip_suffix(']').and_then(|f| f.rsplit_once('['));
            sliced.is_some_and(|(head, at)| at.contains(':') && (head == field || head.ends_with(&suffix)))
        });
        if let (Some((at, _)), None) = (slices.next(), slices.next()) {
            return Ok(at);
        }
    }
    let known: Vec<String> = keys.iter().map(|k| format!("`{}`", k.name)).collect();
    let near = meant(p4lang::similar_object(wanted, keys.iter().map(|k| k.name.as_str())));
    let table = &program[table].info.name;
    Err(format!("table `{table}` has no key `{wanted}`; {near}it has {}", known.join(", ")))
}

/// A question for a message, with a space behind it; empty if no name is near.
pub fn meant(near: Option<&str>) -> String {
    near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default()
}

/// One spelling for all: `h$0.f` is `h[0].f`, `h.isValid()`, `h.valid` and `h.$valid` are `h.$valid$`.
fn canonical(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('$') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            out.push_str(&rest[..at]);
            out.push('[');
            out.push_str(&rest[at + 1..at + 1 + digits]);
            out.push(']');
            rest = &rest[at + 1 + digits..];
        } else {
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
        }
    }
    out.push_str(rest);
    let out: String = out.chars().filter(|c| !c.is_whitespace()).collect();
    for end in [".isValid()", ".$valid$", ".$valid", ".valid"] {
        if let Some(head) = out.strip_suffix(end) {
            return format!("{head}.$valid$");
        }
    }
    match out.strip_suffix('$') {
        Some(head) if head != "$valid" && !head.is_empty() => head.to_owned(),
        _ => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_keys() {
        for (a, b) in [
            ("h$0.f", "h[0].f"),
            ("h.isValid()", "h.$valid$"),
            ("h.valid", "h.isValid()"),
            ("h.$valid", "h.isValid()"),
            ("meta.x$", "meta.x"),
        ] {
            assert_eq!(canonical(a), canonical(b), "{a}");
        }
        assert_eq!(canonical("$valid$"), "$valid$");
    }

    #[test]
    fn ends_of_names() {
        let names = ["c.t", "c.tt", "d.x", "e.x"];
        assert_eq!(find("table", "c.t", names.into_iter()), Ok(0));
        assert_eq!(find("table", "t", names.into_iter()), Ok(0));
        assert_eq!(find("table", "tt", names.into_iter()), Ok(1));
        assert!(find("table", "x", names.into_iter()).unwrap_err().contains("2 tables"));
        assert!(find("table", "y", names.into_iter()).unwrap_err().contains("`c.t`"));
    }
}
