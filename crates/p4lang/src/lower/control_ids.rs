//! Names and ids that the control plane knows objects by: no two objects share one (P4_16 section 20.3.3; P4Runtime
//! 1.4, section 6.3).

use std::collections::{HashMap, HashSet};

use super::Lowerer;
use crate::diag::Diagnostic;
use crate::hir::Def;
use crate::ir::Info;
use crate::p4info::ids::Kind;
use crate::source::Span;

impl Lowerer<'_> {
    pub(super) fn control_ids(&mut self) {
        let mut found = Vec::new();
        self.names(&mut found);
        self.ids(&mut found);
        self.part_ids(&mut found);
        self.diagnostics.extend(found);
    }

    fn objects(&self) -> Vec<(Kind, &'static str, &Info)> {
        let program = &self.program;
        let mut all = Vec::new();
        all.extend(program.tables.iter().map(|t| (Kind::Table, "table", &t.info)));
        all.extend(program.registers.iter().map(|r| (Kind::Register, "register", &r.info)));
        all.extend(program.counters.iter().map(|c| (Kind::Counter, "counter", &c.info)));
        all.extend(program.meters.iter().map(|m| (Kind::Meter, "meter", &m.info)));
        all.extend(program.value_sets.iter().map(|v| (Kind::ValueSet, "value set", &v.info)));
        all
    }

    fn names(&self, found: &mut Vec<Diagnostic>) {
        let is_absolute = |d: &&Def| {
            crate::check::name_annotation(&d.annotations).is_some_and(|name| name.starts_with('.'))
        };
        let absolute: HashSet<Span> = self.hir.defs.iter().filter(is_absolute).map(|d| d.span).collect();
        let twice = self.made_twice();
        let mut seen: HashMap<(Kind, &str), Span> = HashMap::new();
        for (kind, what, info) in self.objects() {
            // Objects constructed in place have their type's name, and none of their own.
            if info.name.rsplit('.').next() == Some(what) {
                continue;
            }
            let Some(first) = seen.insert((kind, &info.name), info.span) else { continue };
            let message = format!("a second {what} is called `{}` in the control plane", info.name);
            self.budget.work(twice.len());
            let inside = |path: &str| info.name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
            if first == info.span
                && !absolute.contains(&info.span)
                && let Some((path, first, second)) = twice.iter().find(|(path, ..)| inside(path))
            {
                found.push(
                    Diagnostic::error("duplicate", *second, message)
                        .related(*first, format!("the first `{path}`"))
                        .help("declare an instance with a name of its own for each"),
                );
                continue;
            }
            found.push(
                Diagnostic::error("duplicate", info.span, message)
                    .related(first, "the first one")
                    .help("give one of them another `@name`, or remove the dot at the start of the name"),
            );
        }
    }

    /// Names that two instances have which are made in different places, and these places.
    fn made_twice(&self) -> Vec<(&str, Span, Span)> {
        let mut made: HashMap<&str, Span> = HashMap::new();
        let mut twice = Vec::new();
        for instance in &self.instances {
            let Some(path) = instance.path.first() else { continue };
            match made.insert(path, instance.span) {
                Some(first) if first != instance.span => twice.push((path.as_str(), first, instance.span)),
                _ => {}
            }
        }
        twice
    }

    fn ids(&self, found: &mut Vec<Diagnostic>) {
        let mut seen: HashMap<u32, Span> = HashMap::new();
        let program = &self.program;
        let mut all = self.objects();
        all.extend(program.actions.iter().map(|a| (Kind::Action, "action", &a.info)));
        all.extend(program.profiles.iter().map(|p| (Kind::ActionProfile, "action profile", &p.info)));
        all.extend(
            program.controller_headers.iter().map(|h| (Kind::ControllerHeader, "controller header", &h.info)),
        );
        for table in &program.tables {
            let counter =
                table.direct_counter.iter().map(|c| (Kind::DirectCounter, "direct counter", &c.info));
            let meter = table.direct_meter.iter().map(|m| (Kind::DirectMeter, "direct meter", &m.info));
            all.extend(counter.chain(meter));
        }
        for (kind, what, info) in all {
            let Some(wanted) = info.id else { continue };
            let prefix = kind as u32;
            let help = format!("leave the high byte 0, or make it 0x{prefix:02x}");
            let id = match wanted >> 24 {
                0 => prefix << 24 | wanted,
                high if high == prefix => wanted,
                high => {
                    let message = format!("the id of a {what} cannot begin with the byte 0x{high:02x}");
                    found.push(Diagnostic::error("bad-id", info.span, message).help(help));
                    continue;
                }
            };
            // One declaration may have become several objects.
            if let Some(first) = seen.insert(id, info.span)
                && first != info.span
            {
                let message = format!("a second object has the id {wanted}");
                found.push(
                    Diagnostic::error("bad-id", info.span, message)
                        .related(first, "the first one")
                        .help("give one of them another `@id`"),
                );
            }
        }
    }

    /// Ids of keys, parameters and fields.
    fn part_ids(&self, found: &mut Vec<Diagnostic>) {
        let mut one = |span: Span, what: &str, ids: &mut dyn Iterator<Item = Option<u32>>| {
            let mut seen = HashSet::new();
            for id in ids.flatten() {
                let message = match id {
                    0 => format!("the id of a {what} cannot be 0"),
                    _ if seen.insert(id) => continue,
                    _ => format!("two {what}s have the id {id}"),
                };
                let help = format!("give each {what} an id of its own, from 1 on");
                found.push(Diagnostic::error("bad-id", span, message).help(help));
            }
        };
        for table in &self.program.tables {
            one(table.info.span, "key", &mut table.keys.iter().map(|k| k.id));
        }
        for action in &self.program.actions {
            one(action.info.span, "parameter", &mut action.params.iter().map(|p| p.id));
        }
        for set in &self.program.value_sets {
            one(set.info.span, "field", &mut set.described.iter().map(|f| f.id));
        }
        for header in &self.program.controller_headers {
            one(header.info.span, "field", &mut header.fields.iter().map(|f| f.id));
        }
    }
}
