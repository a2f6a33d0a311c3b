//! Table properties of v1model: action profiles, direct counters and meters, idle timeouts.

use crate::diag::Diagnostic;
use crate::hir::{ExprKind as K, TableProperty};
use crate::ir;
use crate::lower::instance::Object;
use crate::lower::{Lowered, Lowerer};

impl Lowerer<'_> {
    pub(super) fn v1_property(&mut self, property: &TableProperty, out: &mut ir::Table) -> Lowered<bool> {
        let TableProperty { name, value, span, .. } = property;
        match &**name {
            "implementation" => {
                let instance = self.instance_of(value)?;
                let Object::Profile(id) = self.instances[instance.0].object.clone() else {
                    return self.fail(
                        "bad-table",
                        *span,
                        "`implementation` must be an action profile or action selector",
                    );
                };
                if let Some(info) = self.made_in_place(property, out) {
                    self.program.profiles[id.index()].info = info;
                }
                out.implementation = Some(id);
            }
            "counters" => {
                let instance = self.instance_of(value)?;
                match self.instances[instance.0].object.clone() {
                    Object::DirectCounter(mut counter) => {
                        if let Some(info) = self.made_in_place(property, out) {
                            counter.info = info;
                        }
                        out.direct_counter = Some(counter);
                    }
                    _ => return self.fail("bad-table", *span, "`counters` must be a direct_counter"),
                }
            }
            "meters" => {
                let instance = self.instance_of(value)?;
                match self.instances[instance.0].object.clone() {
                    Object::DirectMeter(mut meter, read) => {
                        if let Some(info) = self.made_in_place(property, out) {
                            meter.info = info;
                        }
                        meter.dst = *read;
                        out.direct_meter = Some(meter);
                    }
                    _ => return self.fail("bad-table", *span, "`meters` must be a direct_meter"),
                }
            }
            "support_timeout" | "idle_timeout" => {
                let Some(K::Bool(on)) = self.constant(value).map(|v| v.kind) else {
                    return self.fail("bad-table", value.span, format!("`{name}` must be `true` or `false`"));
                };
                out.support_timeout = on;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Warns of uses of direct counters and meters that no table names: the tables do what these calls ask for.
    pub(in crate::lower) fn v1_unattached(&mut self) {
        for (name, property, span) in std::mem::take(&mut self.direct_uses) {
            let attached = self.program.tables.iter().any(|table| {
                table.direct_counter.as_ref().is_some_and(|one| one.info.name == name)
                    || table.direct_meter.as_ref().is_some_and(|one| one.info.name == name)
            });
            if attached || !self.warned.insert(span) {
                continue;
            }
            let message = format!("this has no effect: no table has `{name}`");
            let short = name.rsplit('.').next().unwrap_or(&name);
            let help = format!("write `{property} = {short};` in the table whose action this is");
            self.diagnostics.push(Diagnostic::warning("no-effect", span, message).help(help));
        }
    }

    /// Keys that feed a selector need one; of lpm keys there is one at most; a direct counter or meter is of one table.
    pub(super) fn v1_table(&mut self, out: &mut ir::Table) {
        if out.keys.iter().filter(|key| key.kind == ir::MatchKind::Lpm).count() > 1 {
            let message = format!("table `{}` has several lpm keys", out.info.name);
            let help = "which prefix is the longest could not be said; make all but one ternary";
            self.diagnostics.push(Diagnostic::error("bad-table", out.info.span, message).help(help));
        }
        let counter = |table: &ir::Table| table.direct_counter.as_ref().map(|one| one.info.name.clone());
        let meter = |table: &ir::Table| table.direct_meter.as_ref().map(|one| one.info.name.clone());
        for (what, of) in [("counter", &counter as &dyn Fn(&ir::Table) -> _), ("meter", &meter)] {
            let Some(name) = of(out) else { continue };
            let Some(first) = self.program.tables.iter().find(|table| of(table).as_ref() == Some(&name))
            else {
                continue;
            };
            let message = format!("the direct {what} `{name}` is of another table already");
            let mut diagnostic = Diagnostic::error("bad-table", out.info.span, message)
                .help(format!("declare a direct {what} for each table"));
            diagnostic.related.push((first.info.span, "its table".into()));
            self.diagnostics.push(diagnostic);
        }
        if let Some(unread) = out.direct_meter.as_ref().filter(|one| one.dst.is_none()) {
            let message = format!(
                "the reference compiler wants an action that reads the direct meter `{}`",
                unread.info.name
            );
            let help = "call its `read` in an action of its table";
            self.diagnostics.push(Diagnostic::warning("unread-meter", out.info.span, message).help(help));
        }
        if !out.selector.is_empty() && out.implementation.is_none_or(|p| self.program[p].selector.is_none()) {
            let message =
                format!("table `{}` has no action selector; its `selector` keys do nothing", out.info.name);
            self.diagnostics.push(Diagnostic::warning("bad-table", out.info.span, message));
            out.selector.clear();
        }
    }
}
