//! `check`: compiles a program and says what is in it.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use p4lang::diag::Severity;
use p4lang::ir::{Info, Program};
use p4lang::render::render;
use serde_json::{Value, json};
use wire::pcap::plain;

use crate::load::{Source, diagnostics_json};
use crate::{Failure, Result};

/// `rendered` is for people, everything else for machines. With `p4info`, that file is written if there is no error.
/// A program for another architecture has no summary and no P4Info.
pub fn check(source: &Source, p4info: Option<&Path>, color: bool) -> Result<Value> {
    let compiled = source.compile()?;
    let mut answer = json!({
        "ok": !compiled.diagnostics.iter().any(|d| d.severity == Severity::Error),
        "program": source.path.display().to_string(),
        "diagnostics": diagnostics_json(&compiled.sources, &compiled.diagnostics),
        "rendered": render(&compiled.sources, &compiled.diagnostics, color),
    });
    if let Some(program) = &compiled.program {
        answer["summary"] = summary(program);
        if let Some(path) = p4info {
            demand_apart(path, compiled.sources.files().iter().map(|file| &*file.name))?;
            write_whole(path, p4lang::p4info::p4info(program).as_bytes())?;
            answer["p4info"] = json!(path.display().to_string());
        }
    }
    if answer["ok"] == true && compiled.program.is_none() && p4info.is_some() {
        return Err(Failure(format!(
            "{}: there is no P4Info of a program that cannot be run",
            source.path.display()
        )));
    }
    Ok(answer)
}

/// Refuses an output that would replace one of the files that were read. Built-in files have names that no file has.
fn demand_apart<'a>(path: &Path, read: impl Iterator<Item = &'a str>) -> Result<()> {
    let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
    for name in read {
        if fs::metadata(name).is_ok_and(|of| (of.dev(), of.ino()) == (there.dev(), there.ino())) {
            return Err(Failure(format!(
                "{}: is read as {name}, and the P4Info would replace it; give another file",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Characters of a file's name in that of the one that is not whole yet: with all else below the 255 bytes of a name.
const LONGEST_PART: usize = 40;

/// Writes a file so that nobody ever sees half of it. A symbolic link there is replaced, not followed; a device or a pipe, also at
/// the end of a link, is refused: a file would take its place, as that of /dev/stdout for everybody.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let cannot = |e: std::io::Error| Failure(format!("{}: cannot be written: {}", path.display(), plain(&e)));
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let why = "it is a device or a pipe; give a file";
        return Err(Failure(format!("{}: cannot be written: {why}", path.display())));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(LONGEST_PART).collect();
    // The standard library's random keys, for a name that nobody can know.
    let random = RandomState::new().build_hasher().finish();
    let temporary = path.with_file_name(format!(".{name}.{random:016x}.part"));
    let mut file = File::options().write(true).create_new(true).open(&temporary).map_err(cannot)?;
    file.write_all(bytes).and_then(|()| fs::rename(&temporary, path)).map_err(|e| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
        cannot(e)
    })
}

/// What is in a program.
pub fn summary(program: &Program) -> Value {
    let action = |id: p4lang::ir::ActionId| {
        let action = &program[id];
        json!({
            "name": action.info.name,
            "parameters": action.params.iter().map(|p| json!({
                "name": p.name, "bits": program[p.var].width,
            })).collect::<Vec<_>>(),
        })
    };
    let named = |info: &Info, size: u64| json!({"name": info.name, "size": size});
    json!({
        "architecture": program.package.architecture,
        "headers": program.headers.iter().filter(|h| !h.local).map(|h| {
            let ty = &program[h.ty];
            json!({"name": h.name, "type": ty.name, "bits": ty.fixed_bits, "fields": ty.fields.len(),
                   "varbit": ty.varbit.is_some()})
        }).collect::<Vec<_>>(),
        "parser": program.parsers.first().map(|parser| json!({
            "name": parser.name,
            "states": parser.states.iter().map(|s| s.name.as_str()).filter(|name| !name.is_empty())
                .collect::<Vec<_>>(),
        })),
        "controls": program.controls.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
        "tables": program.tables.iter().map(|t| json!({
            "name": t.info.name,
            "size": t.size,
            "keys": t.keys.iter().map(|k| json!({
                "name": k.name, "match": format!("{:?}", k.kind).to_lowercase(), "bits": k.expr.width,
            })).collect::<Vec<_>>(),
            "actions": t.actions.iter().map(|a| action(a.action)).collect::<Vec<_>>(),
            "entries": t.entries.len(),
            "const_entries": t.const_entries,
            "default_action": program[t.actions[t.default_action.action as usize].action].info.name,
            "implementation": t.implementation.map(|p| program[p].info.name.clone()),
        })).collect::<Vec<_>>(),
        "action_profiles": program.profiles.iter().map(|p| json!({
            "name": p.info.name, "size": p.size, "selector": p.selector.is_some(),
        })).collect::<Vec<_>>(),
        "counters": program.counters.iter().map(|c| named(&c.info, c.size)).collect::<Vec<_>>(),
        "meters": program.meters.iter().map(|m| named(&m.info, m.size)).collect::<Vec<_>>(),
        "registers": program.registers.iter().map(|r| json!({
            "name": r.info.name, "size": r.size, "bits": r.width,
        })).collect::<Vec<_>>(),
        "value_sets": program.value_sets.iter().map(|v| named(&v.info, v.size)).collect::<Vec<_>>(),
        "digests": program.digests.iter().map(|d| d.info.name.clone()).collect::<Vec<_>>(),
        "metadata_bits": program.vars.iter().filter(|v| v.home == p4lang::ir::VarHome::Global)
            .map(|v| u64::from(v.width)).sum::<u64>(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_that_somebody_has_prepared_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("victim"), "mine").unwrap();
        for name in ["info".to_owned(), format!(".info.{}.part", std::process::id())] {
            symlink(at("victim"), at(&name)).unwrap();
        }
        write_whole(&at("info"), b"whole").unwrap();
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(at("info")).unwrap(), "whole");
        assert!(!fs::symlink_metadata(at("info")).unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn what_is_compiled_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("more.p4"), "const bit<8> N = 1;\n").unwrap();
        fs::write(at("main.p4"), "#include \"more.p4\"\n").unwrap();
        fs::hard_link(at("more.p4"), at("again")).unwrap();
        let source = Source { path: at("main.p4"), ..Source::default() };
        let sources = source.compile().unwrap().sources;
        let names = || sources.files().iter().map(|file| &*file.name);
        for name in ["main.p4", "more.p4", "again"] {
            let Failure(why) = demand_apart(&at(name), names()).unwrap_err();
            assert!(why.ends_with("give another file"), "{why}");
        }
        demand_apart(&at("info"), names()).unwrap();
        // A link is replaced, not what it leads to.
        symlink(at("main.p4"), at("link")).unwrap();
        demand_apart(&at("link"), names()).unwrap();
    }

    #[test]
    fn a_device_stays() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink("/dev/null", &link).unwrap();
        assert!(
            write_whole(&link, b"whole").unwrap_err().0.ends_with("it is a device or a pipe; give a file")
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_name_may_be_as_long_as_the_system_takes_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("\u{e4}".repeat(127));
        write_whole(&path, b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert!(write_whole(&dir.path().join("none").join("info"), b"").is_err());
    }
}
