//! What can be checked by the program alone: names, numbers of keys and values, kinds and widths.

use num_bigint::BigUint;
use p4lang::diag::counted;
use p4lang::ir::{EntryMatch, MatchKind, Program, Table, TableId, ValueSet};

use crate::{Call, Error, Match, Result, check_match, fits};

/// The keys of a table, from one match for each.
///
/// # Errors
/// Another number of matches, one of another kind. Widths: [`check_key`].
pub fn key(program: &Program, id: TableId, found: &[Match]) -> Result<Vec<EntryMatch>> {
    let table = &program[id];
    demand_keys(table, found.len())?;
    let keys = table.keys.iter().zip(found);
    keys.map(|(key, m)| m.entry(key.kind, key.expr.width).map_err(|e| e.field(&key.name))).collect()
}

/// Whether so many matches are one for each key.
///
/// # Errors
/// They are not.
pub fn demand_keys(table: &Table, given: usize) -> Result<()> {
    if table.keys.len() == given {
        return Ok(());
    }
    let names: Vec<&str> = table.keys.iter().map(|k| k.name.as_str()).collect();
    let name = &table.info.name;
    let why =
        format!("table `{name}` has {} ({}), not {given}", counted(names.len(), "key"), names.join(", "));
    Err(Error::invalid(why).of(format!("table `{name}`")).field("key"))
}

/// Whether these are matches for the keys of a table.
///
/// # Errors
/// They are not.
pub fn check_key(program: &Program, id: TableId, found: &[EntryMatch]) -> Result<()> {
    let table = &program[id];
    demand_keys(table, found.len())?;
    for (key, m) in table.keys.iter().zip(found) {
        let what = || format!("key `{}` of table `{}`", key.name, table.info.name);
        // The words for a refusal are made only if there is one.
        if check_match(key.kind, key.expr.width, m, "").is_err() {
            let table = format!("table `{}`", table.info.name);
            return check_match(key.kind, key.expr.width, m, &what()).map_err(|e| e.of(table));
        }
    }
    Ok(())
}

/// Whether entries of a table have an order of priority.
pub fn prioritised(table: &Table) -> bool {
    table.keys.iter().any(|k| matches!(k.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional))
}

/// The priority of an entry: 0 in tables whose entries have none.
///
/// # Errors
/// It is missing, or of no use.
pub fn priority(program: &Program, id: TableId, given: Option<u32>) -> Result<u32> {
    let table = &program[id];
    let name = &table.info.name;
    let error = |why: String| Error::invalid(why).of(format!("table `{name}`")).field("priority");
    match (prioritised(table), given) {
        (true, Some(priority)) => Ok(priority),
        (true, None) => {
            Err(error(format!("table `{name}` has keys that need a priority")).cure("end with one"))
        }
        (false, None | Some(0)) => Ok(0),
        (false, Some(_)) => {
            Err(error(format!("entries of table `{name}` have no priority")).cure("leave it out"))
        }
    }
}

/// Index of an action in a table's list, and its values.
///
/// # Errors
/// No such action, values that are too many, too few, or too large.
pub fn call(program: &Program, table: TableId, call: &Call) -> Result<(u32, Vec<BigUint>)> {
    let index = call.action.action(program, table)?;
    let values: Vec<BigUint> = call.values.iter().map(crate::Value::number).collect();
    check_values(program, table, index, &values)?;
    Ok((index, values))
}

/// Whether so many values are one for each parameter of an action.
///
/// # Errors
/// They are not.
pub fn demand_values(program: &Program, table: TableId, action: u32, given: usize) -> Result<()> {
    let declared = &program[program[table].actions[action as usize].action];
    if declared.params.len() == given {
        return Ok(());
    }
    let (name, count) = (&declared.info.name, declared.params.len());
    let names: Vec<&str> = declared.params.iter().map(|p| p.name.as_str()).collect();
    let why = match &names[..] {
        [] => format!("action `{name}` takes no values, not {given}"),
        names => {
            format!("action `{name}` takes {} ({}), not {given}", counted(count, "value"), names.join(", "))
        }
    };
    Err(Error::invalid(why).of(format!("action `{name}`")))
}

/// Whether these are values for an action of a table.
///
/// # Errors
/// They are too many, too few, or too large.
pub fn check_values(program: &Program, table: TableId, action: u32, values: &[BigUint]) -> Result<()> {
    demand_values(program, table, action, values.len())?;
    let declared = &program[program[table].actions[action as usize].action];
    for (param, value) in declared.params.iter().zip(values) {
        let width = program[param.var].width;
        if value.bits() > u64::from(width) {
            let what = format!("parameter `{}` of `{}`", param.name, declared.info.name);
            return fits(&what, value, width).map_err(|e| e.of(format!("action `{}`", declared.info.name)));
        }
    }
    Ok(())
}

/// A table whose entries come from an action profile: its actions are the profile's.
///
/// # Errors
/// No table uses it.
pub fn profile_table(program: &Program, profile: usize) -> Result<TableId> {
    let at = program.tables.iter().position(|t| t.implementation.is_some_and(|p| p.index() == profile));
    match at {
        Some(at) => Ok(TableId(at as u32)),
        None => Err(Error::invalid("no table uses this action profile")
            .of(format!("action profile `{}`", program.profiles[profile].info.name))),
    }
}

fn demand_fields(declared: &ValueSet, given: usize) -> Result<()> {
    let (name, fields) = (&declared.info.name, declared.fields.len());
    if fields == given {
        return Ok(());
    }
    let why = format!("a member of value set `{name}` has {}, not {given}", counted(fields, "field"));
    Err(Error::invalid(why).of(format!("value set `{name}`")))
}

/// A member of a value set, from one match for each field.
///
/// # Errors
/// Another number of matches, one of another kind.
pub fn member(program: &Program, set: usize, found: &[Match]) -> Result<Vec<EntryMatch>> {
    let declared = &program.value_sets[set];
    demand_fields(declared, found.len())?;
    let fields = declared.fields.iter().zip(found);
    fields.map(|((field, width, kind), m)| m.entry(*kind, *width).map_err(|e| e.field(field))).collect()
}

/// Whether these are matches for the fields of a value set.
///
/// # Errors
/// They are not.
pub fn check_member(program: &Program, set: usize, member: &[EntryMatch]) -> Result<()> {
    let declared = &program.value_sets[set];
    let name = &declared.info.name;
    let object = || format!("value set `{name}`");
    demand_fields(declared, member.len())?;
    for ((field, width, kind), found) in declared.fields.iter().zip(member) {
        // The words for a refusal are made only if there is one.
        if check_match(*kind, *width, found, "").is_err() {
            let what = format!("field `{field}` of value set `{name}`");
            return check_match(*kind, *width, found, &what).map_err(|e| e.of(object()));
        }
    }
    Ok(())
}

/// The number from which on parts are asked for, and how many.
pub fn some(start: Option<u32>, count: Option<u32>) -> (u32, usize) {
    (start.unwrap_or(0), count.map_or(usize::MAX, |count| count as usize))
}

/// The cells from `from` on that are asked for; `None`: all of them.
///
/// # Errors
/// There are fewer.
pub fn range(
    what: &str,
    name: &str,
    len: usize,
    from: u32,
    count: Option<u32>,
) -> Result<std::ops::Range<usize>> {
    let from = from as usize;
    let end = count.map_or(Some(len), |count| from.checked_add(count as usize));
    if let Some(end) = end.filter(|end| from <= *end && *end <= len) {
        return Ok(from..end);
    }
    let cure = match count {
        None => format!("those from {from} on are too many"),
        Some(1) => format!("{from} is out of range"),
        Some(count) => format!("{count} from {from} on are too many"),
    };
    let object = format!("{what} `{name}`");
    let error = Error::new(crate::Kind::OutOfRange, format!("{object} has {len} cells"));
    Err(error.of(object).field("from").cure(cure))
}
