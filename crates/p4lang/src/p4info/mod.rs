//! P4Info (`p4.config.v1.P4Info`, P4Runtime 1.4 section 6) of a lowered program, in the protobuf text format.

pub mod ids;
mod text;

use std::collections::{BTreeMap, HashMap, HashSet};

use num_bigint::BigUint;

use crate::ir::{
    ActionParam, Annotation, AnnotationValue, CounterUnit, DataType, Info, MatchKind, MeterUnit, P4Type,
    Program, StructuredBody, Table,
};
use ids::{Ids, Kind, aliases, part_ids};
use text::Text;

struct Writer<'a> {
    program: &'a Program,
    ids: Ids,
    aliases: HashMap<String, String>,
    out: Text,
}

/// P4Info of the program.
pub fn p4info(program: &Program) -> String {
    let objects = objects(program);
    let ids = Ids::new(objects.iter().map(|(kind, info)| (*kind, info.name.as_str(), info.id)));
    let aliases = aliases(objects.iter().map(|(_, info)| info.name.as_str()));
    let mut writer = Writer { program, ids, aliases, out: Text::default() };
    writer.out.comment("proto-file: p4/config/v1/p4info.proto");
    writer.out.comment("proto-message: p4.config.v1.P4Info");
    writer.out.blank();
    writer.package();
    writer.tables();
    writer.actions();
    writer.profiles();
    writer.counters();
    writer.meters();
    writer.packet_metadata();
    writer.value_sets();
    writer.registers();
    writer.digests();
    writer.type_info();
    writer.out.finish()
}

/// Everything with an id, once, in the order of P4Info.
fn objects(program: &Program) -> Vec<(Kind, &Info)> {
    let mut all: Vec<(Kind, &Info)> = Vec::new();
    let tables = || shown_tables(program);
    all.extend(tables().map(|t| (Kind::Table, &t.info)));
    all.extend(shown_actions(program).map(|(info, _)| (Kind::Action, info)));
    all.extend(program.profiles.iter().map(|p| (Kind::ActionProfile, &p.info)));
    all.extend(program.counters.iter().map(|c| (Kind::Counter, &c.info)));
    all.extend(tables().filter_map(|t| t.direct_counter.as_ref()).map(|c| (Kind::DirectCounter, &c.info)));
    all.extend(program.meters.iter().map(|m| (Kind::Meter, &m.info)));
    all.extend(tables().filter_map(|t| t.direct_meter.as_ref()).map(|m| (Kind::DirectMeter, &m.info)));
    all.extend(program.controller_headers.iter().map(|h| (Kind::ControllerHeader, &h.info)));
    all.extend(program.value_sets.iter().map(|v| (Kind::ValueSet, &v.info)));
    all.extend(program.registers.iter().map(|r| (Kind::Register, &r.info)));
    all.extend(program.digests.iter().map(|d| (Kind::Digest, &d.info)));
    all
}

/// Tables that code applies and that are not `@hidden`.
fn shown_tables(program: &Program) -> impl Iterator<Item = &Table> {
    program.tables.iter().filter(|t| t.applied && !t.info.hidden)
}

/// Each action once, with its parameters: those of tables that are applied, then those that are only called directly,
/// which have none. One that is `@hidden` is there if a table that is shown lists it: its entries may lead to it.
fn shown_actions(program: &Program) -> impl Iterator<Item = (&Info, &[ActionParam])> {
    let mut listed: BTreeMap<usize, bool> = BTreeMap::new();
    for table in program.tables.iter().filter(|t| t.applied) {
        for action in &table.actions {
            *listed.entry(action.action.index()).or_default() |= !table.info.hidden;
        }
    }
    let of_tables = listed.into_iter().filter_map(|(index, named)| {
        let action = &program.actions[index];
        (named || !action.info.hidden).then_some((&action.info, action.params.as_slice()))
    });
    let called = program.direct_actions.iter().filter(|info| !info.hidden).map(|info| (info, &[][..]));
    let mut seen = HashSet::new();
    of_tables.chain(called).filter(move |(info, _)| seen.insert(info.name.as_str()))
}

fn match_type(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "EXACT",
        MatchKind::Lpm => "LPM",
        MatchKind::Ternary => "TERNARY",
        MatchKind::Range => "RANGE",
        MatchKind::Optional => "OPTIONAL",
    }
}

fn counter_unit(unit: CounterUnit) -> &'static str {
    match unit {
        CounterUnit::Packets => "PACKETS",
        CounterUnit::Bytes => "BYTES",
        CounterUnit::Both => "BOTH",
    }
}

fn meter_unit(unit: MeterUnit) -> &'static str {
    match unit {
        MeterUnit::Packets => "PACKETS",
        MeterUnit::Bytes => "BYTES",
    }
}

/// Free annotations that P4Info has fields for.
const WITH_FIELDS: [&str; 5] =
    ["@brief(", "@description(", "@max_group_size(", "@selector_size_semantics(", "@max_member_weight("];

/// Annotations; those that P4Info has a field for go there.
fn annotations(out: &mut Text, list: &[Annotation]) {
    for annotation in list {
        match annotation {
            Annotation::Free(text) if !WITH_FIELDS.iter().any(|own| text.starts_with(own)) => {
                out.string("annotations", text);
            }
            Annotation::Free(_) => {}
            Annotation::Structured { name, body } => structured(out, name, body),
        }
    }
    let [brief, description] = ["@brief(", "@description("]
        .map(|name| list.iter().find_map(|a| a.inside(name)).map(|text| text.trim_matches('"')));
    if brief.is_some() || description.is_some() {
        out.message("doc", |out| {
            if let Some(text) = brief {
                out.string("brief", text);
            }
            if let Some(text) = description {
                out.string("description", text);
            }
        });
    }
}

/// `@name[...]`; an empty one has no body.
fn structured(out: &mut Text, name: &str, body: &StructuredBody) {
    let value = |out: &mut Text, value: &AnnotationValue| match value {
        AnnotationValue::Int(value) => out.field("int64_value", value),
        AnnotationValue::String(text) => out.string("string_value", text),
        AnnotationValue::Bool(value) => out.field("bool_value", value),
    };
    out.message("structured_annotations", |out| {
        out.string("name", name);
        match body {
            StructuredBody::List(items) if items.is_empty() => {}
            StructuredBody::List(items) => out.message("expression_list", |out| {
                items.iter().for_each(|item| out.message("expressions", |out| value(out, item)));
            }),
            StructuredBody::Pairs(pairs) => out.message("kv_pair_list", |out| {
                for (key, item) in pairs {
                    out.message("kv_pairs", |out| {
                        out.string("key", key);
                        out.message("value", |out| value(out, item));
                    });
                }
            }),
        }
    });
}

fn type_name(out: &mut Text, field: &str, name: Option<&String>) {
    if let Some(name) = name {
        out.message(field, |out| out.string("name", name));
    }
}

fn bitstring(out: &mut Text, ty: &DataType) {
    match ty {
        DataType::Bits { width, signed } => {
            out.message(if *signed { "int" } else { "bit" }, |out| out.field("bitwidth", width));
        }
        DataType::Varbit(width) => out.message("varbit", |out| out.field("max_bitwidth", width)),
        _ => {}
    }
}

fn data_type(out: &mut Text, ty: &DataType) {
    let named = |out: &mut Text, field: &str, name: &str| out.message(field, |out| out.string("name", name));
    match ty {
        DataType::Bits { .. } | DataType::Varbit(_) => out.message("bitstring", |out| bitstring(out, ty)),
        DataType::Bool => out.message("bool", |_| {}),
        DataType::Error => out.message("error", |_| {}),
        DataType::Tuple(members) => out.message("tuple", |out| {
            for member in members {
                out.message("members", |out| data_type(out, member));
            }
        }),
        DataType::NewType(name) => named(out, "new_type", name),
        DataType::Enum(name) => named(out, "enum", name),
        DataType::SerializableEnum(name) => named(out, "serializable_enum", name),
        DataType::Struct(name) => named(out, "struct", name),
        DataType::Header(name) => named(out, "header", name),
    }
}

/// A value in as many bytes as its width takes.
fn padded(value: &BigUint, width: u32) -> Vec<u8> {
    let bytes = value.to_bytes_be();
    let len = (width as usize).div_ceil(8).max(1);
    let mut out = vec![0; len.saturating_sub(bytes.len())];
    out.extend(&bytes[bytes.len().saturating_sub(len)..]);
    out
}

/// `name="a", version="b"`.
fn key_values(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let Some((value, more)) = after.trim_start().strip_prefix('"').and_then(|t| t.split_once('"')) else {
            break;
        };
        out.push((key.trim_matches([',', ' ']).to_owned(), value.to_owned()));
        rest = more;
    }
    out
}

/// Width in the control plane of a value of new type `named`: `@p4runtime_translation` changes it; 0 is a string
/// (P4Runtime 1.4, section 8.4.6).
fn control_width(program: &Program, named: Option<&str>, width: u32) -> u32 {
    let translation = program.p4_types.iter().find_map(|ty| match ty {
        P4Type::NewType { name, translation, .. } if Some(name.as_str()) == named => translation.as_ref(),
        _ => None,
    });
    translation.map_or(width, |t| t.sdn_width.unwrap_or(0))
}

impl Writer<'_> {
    /// `@pkginfo(name="...", version="...")`, `@brief`, `@description` and what else is said of the package.
    fn package(&mut self) {
        let list = &self.program.package_annotations;
        let mut given: Vec<(String, String)> = Vec::new();
        let mut platform = Vec::new();
        let mut rest = Vec::new();
        for annotation in list {
            if let Some(pairs) = annotation.inside("@pkginfo(") {
                given.extend(key_values(pairs));
            } else if let Some(pairs) = annotation.inside("@platform_property(") {
                platform.extend(crate::platform::properties(pairs).unwrap_or_default());
            } else {
                rest.push(annotation.clone());
            }
            if let Annotation::Structured { name, body: StructuredBody::Pairs(pairs) } = annotation
                && name == "pkginfo"
            {
                given.extend(pairs.iter().filter_map(|(key, value)| match value {
                    AnnotationValue::String(text) => Some((key.clone(), text.clone())),
                    AnnotationValue::Int(_) | AnnotationValue::Bool(_) => None,
                }));
            }
        }
        let get = |key: &str| given.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        self.out.message("pkg_info", |out| {
            for key in ["name", "version"] {
                if let Some(value) = get(key) {
                    out.string(key, value);
                }
            }
            annotations(out, &rest);
            out.string("arch", self.program.package.architecture);
            for key in ["organization", "contact", "url"] {
                if let Some(value) = get(key) {
                    out.string(key, value);
                }
            }
            if !platform.is_empty() {
                out.message("platform_properties", |out| {
                    for (key, value) in platform {
                        out.field(key, value);
                    }
                });
            }
        });
    }

    fn preamble(&mut self, kind: Kind, info: &Info) {
        let id = self.ids.get(kind, &info.name);
        let alias = self.aliases.get(&info.name).cloned().unwrap_or_else(|| info.name.clone());
        self.out.message("preamble", |out| {
            out.field("id", id);
            out.string("name", &info.name);
            out.string("alias", &alias);
            annotations(out, &info.annotations);
        });
    }

    /// A message that starts with a preamble.
    fn object(&mut self, field: &str, kind: Kind, info: &Info, rest: impl FnOnce(&mut Text, &Ids)) {
        let mut out = std::mem::take(&mut self.out);
        out.message(field, |inner| {
            std::mem::swap(&mut self.out, inner);
            self.preamble(kind, info);
            std::mem::swap(&mut self.out, inner);
            rest(inner, &self.ids);
        });
        self.out = out;
    }

    fn tables(&mut self) {
        let program = self.program;
        for table in shown_tables(program) {
            self.object("tables", Kind::Table, &table.info, |out, ids| {
                let key_ids = part_ids(table.keys.iter().map(|k| k.id));
                for (key, id) in table.keys.iter().zip(key_ids) {
                    out.message("match_fields", |out| {
                        out.field("id", id);
                        out.string("name", &key.name);
                        annotations(out, &key.annotations);
                        let width = control_width(program, key.type_name.as_deref(), key.shown_width);
                        out.number("bitwidth", u64::from(width));
                        out.field("match_type", match_type(key.kind));
                        type_name(out, "type_name", key.type_name.as_ref());
                    });
                }
                for action in &table.actions {
                    out.message("action_refs", |out| {
                        out.field("id", ids.get(Kind::Action, &program[action.action].info.name));
                        annotations(out, &action.annotations);
                        if action.default_only {
                            out.field("scope", "DEFAULT_ONLY");
                        } else if action.table_only {
                            out.field("scope", "TABLE_ONLY");
                        }
                    });
                }
                if table.const_default
                    && let Some(action) = table.actions.get(table.default_action.action as usize)
                {
                    out.field(
                        "const_default_action_id",
                        ids.get(Kind::Action, &program[action.action].info.name),
                    );
                }
                if let Some(listed) = table.actions.get(table.default_action.action as usize) {
                    let action = &program[listed.action];
                    out.message("initial_default_action", |out| {
                        out.field("action_id", ids.get(Kind::Action, &action.info.name));
                        let param_ids = part_ids(action.params.iter().map(|p| p.id));
                        for ((param, id), value) in
                            action.params.iter().zip(param_ids).zip(&table.default_action.args)
                        {
                            out.message("arguments", |out| {
                                out.field("param_id", id);
                                out.bytes("value", &padded(value, program[param.var].width));
                            });
                        }
                    });
                }
                if let Some(profile) = table.implementation {
                    out.field("implementation_id", ids.get(Kind::ActionProfile, &program[profile].info.name));
                }
                if let Some(counter) = &table.direct_counter {
                    out.field("direct_resource_ids", ids.get(Kind::DirectCounter, &counter.info.name));
                }
                if let Some(meter) = &table.direct_meter {
                    out.field("direct_resource_ids", ids.get(Kind::DirectMeter, &meter.info.name));
                }
                out.number("size", table.size);
                if table.support_timeout {
                    out.field("idle_timeout_behavior", "NOTIFY_CONTROL");
                }
                if table.const_entries {
                    out.field("is_const_table", true);
                }
                if !table.entries.is_empty() {
                    out.field("has_initial_entries", true);
                }
            });
        }
    }

    fn actions(&mut self) {
        let program = self.program;
        for (info, params) in shown_actions(program) {
            self.object("actions", Kind::Action, info, |out, _| {
                let param_ids = part_ids(params.iter().map(|p| p.id));
                for (param, id) in params.iter().zip(param_ids) {
                    out.message("params", |out| {
                        out.field("id", id);
                        out.string("name", &param.name);
                        annotations(out, &param.annotations);
                        let width = control_width(program, param.type_name.as_deref(), param.shown_width);
                        out.number("bitwidth", u64::from(width));
                        type_name(out, "type_name", param.type_name.as_ref());
                    });
                }
            });
        }
    }

    fn profiles(&mut self) {
        let program = self.program;
        for (index, profile) in program.profiles.iter().enumerate() {
            self.object("action_profiles", Kind::ActionProfile, &profile.info, |out, ids| {
                for table in shown_tables(program) {
                    if table.implementation.is_some_and(|p| p.index() == index) {
                        out.field("table_ids", ids.get(Kind::Table, &table.info.name));
                    }
                }
                if profile.selector.is_some() {
                    out.field("with_selector", true);
                }
                out.number("size", profile.size);
                if let Some(selector) = &profile.selector {
                    out.number("max_group_size", u64::from(selector.max_group_size));
                    if let Some(weight) = profile.sum_of_members() {
                        out.message("sum_of_members", |out| {
                            out.number("max_member_weight", u64::from(weight))
                        });
                    } else if profile.says_sum_of_weights() {
                        out.message("sum_of_weights", |_| {});
                    }
                }
            });
        }
    }

    fn counters(&mut self) {
        let program = self.program;
        for counter in &program.counters {
            self.object("counters", Kind::Counter, &counter.info, |out, _| {
                out.message("spec", |out| out.field("unit", counter_unit(counter.unit)));
                out.number("size", counter.size);
                type_name(out, "index_type_name", counter.index_type_name.as_ref());
            });
        }
        for table in shown_tables(program) {
            let Some(counter) = &table.direct_counter else { continue };
            self.object("direct_counters", Kind::DirectCounter, &counter.info, |out, ids| {
                out.message("spec", |out| out.field("unit", counter_unit(counter.unit)));
                out.field("direct_table_id", ids.get(Kind::Table, &table.info.name));
            });
        }
    }

    fn meters(&mut self) {
        let program = self.program;
        for meter in &program.meters {
            self.object("meters", Kind::Meter, &meter.info, |out, _| {
                out.message("spec", |out| out.field("unit", meter_unit(meter.unit)));
                out.number("size", meter.size);
                type_name(out, "index_type_name", meter.index_type_name.as_ref());
            });
        }
        for table in shown_tables(program) {
            let Some(meter) = &table.direct_meter else { continue };
            self.object("direct_meters", Kind::DirectMeter, &meter.info, |out, ids| {
                out.message("spec", |out| out.field("unit", meter_unit(meter.unit)));
                out.field("direct_table_id", ids.get(Kind::Table, &table.info.name));
            });
        }
    }

    fn packet_metadata(&mut self) {
        let program = self.program;
        for header in &program.controller_headers {
            let mut info = header.info.clone();
            let text = format!("@controller_header(\"{}\")", header.direction);
            info.annotations.push(Annotation::Free(text));
            let id = self.ids.get(Kind::ControllerHeader, &header.info.name);
            self.out.message("controller_packet_metadata", |out| {
                out.message("preamble", |out| {
                    out.field("id", id);
                    out.string("name", &header.direction);
                    out.string("alias", &header.direction);
                    annotations(out, &info.annotations);
                });
                let ids = part_ids(header.fields.iter().map(|f| f.id));
                for (field, id) in header.fields.iter().zip(ids) {
                    out.message("metadata", |out| {
                        out.field("id", id);
                        out.string("name", &field.name);
                        annotations(out, &field.annotations);
                        let width = control_width(program, field.type_name.as_deref(), field.width);
                        out.number("bitwidth", u64::from(width));
                        type_name(out, "type_name", field.type_name.as_ref());
                    });
                }
            });
        }
    }

    fn value_sets(&mut self) {
        let program = self.program;
        for set in &program.value_sets {
            self.object("value_sets", Kind::ValueSet, &set.info, |out, _| {
                let ids = part_ids((0..set.fields.len()).map(|i| set.described.get(i).and_then(|f| f.id)));
                for (index, (name, width, kind)) in set.fields.iter().enumerate() {
                    let described = set.described.get(index);
                    out.message("match", |out| {
                        out.field("id", ids[index]);
                        if described.is_some() || set.fields.len() > 1 {
                            out.string("name", name);
                        }
                        if let Some(described) = described {
                            annotations(out, &described.annotations);
                        }
                        let named = set.type_names.get(index).and_then(|name| name.as_ref());
                        let width = control_width(program, named.map(String::as_str), *width);
                        out.number("bitwidth", u64::from(width));
                        out.field("match_type", match_type(*kind));
                        type_name(out, "type_name", named);
                    });
                }
                out.number("size", set.size);
            });
        }
    }

    fn registers(&mut self) {
        let program = self.program;
        for register in &program.registers {
            self.object("registers", Kind::Register, &register.info, |out, _| {
                out.message("type_spec", |out| data_type(out, &register.data));
                out.number("size", register.size);
                type_name(out, "index_type_name", register.index_type_name.as_ref());
            });
        }
    }

    fn digests(&mut self) {
        let program = self.program;
        for digest in &program.digests {
            self.object("digests", Kind::Digest, &digest.info, |out, _| {
                out.message("type_spec", |out| data_type(out, &digest.data));
            });
        }
    }

    fn type_info(&mut self) {
        let program = self.program;
        self.out.message("type_info", |out| {
            for ty in &program.p4_types {
                let P4Type::Struct { name, fields } = ty else { continue };
                out.message("structs", |out| {
                    out.string("key", name);
                    out.message("value", |out| {
                        for (field, ty) in fields {
                            out.message("members", |out| {
                                out.string("name", field);
                                out.message("type_spec", |out| data_type(out, ty));
                            });
                        }
                    });
                });
            }
            for ty in &program.p4_types {
                let P4Type::Header { name, fields } = ty else { continue };
                out.message("headers", |out| {
                    out.string("key", name);
                    out.message("value", |out| {
                        for (field, ty) in fields {
                            out.message("members", |out| {
                                out.string("name", field);
                                out.message("type_spec", |out| bitstring(out, ty));
                            });
                        }
                    });
                });
            }
            for ty in &program.p4_types {
                if let P4Type::SerializableEnum { name, width, members } = ty {
                    out.message("serializable_enums", |out| {
                        out.string("key", name);
                        out.message("value", |out| {
                            out.message("underlying_type", |out| out.field("bitwidth", width));
                            for (member, value) in members {
                                out.message("members", |out| {
                                    out.string("name", member);
                                    out.bytes("value", &padded(value, *width));
                                });
                            }
                        });
                    });
                }
            }
            for ty in &program.p4_types {
                if let P4Type::Enum { name, members } = ty {
                    out.message("enums", |out| {
                        out.string("key", name);
                        out.message("value", |out| {
                            for member in members {
                                out.message("members", |out| out.string("name", member));
                            }
                        });
                    });
                }
            }
            if program.p4_types.iter().any(|ty| matches!(ty, P4Type::Error)) {
                out.message("error", |out| program.errors.iter().for_each(|e| out.string("members", e)));
            }
            for ty in &program.p4_types {
                if let P4Type::NewType { name, original, annotations: said, translation } = ty {
                    out.message("new_types", |out| {
                        out.string("key", name);
                        out.message("value", |out| {
                            match translation {
                                Some(translation) => out.message("translated_type", |out| {
                                    out.string("uri", &translation.uri);
                                    match translation.sdn_width {
                                        Some(width) => out.field("sdn_bitwidth", width),
                                        None => out.message("sdn_string", |_| {}),
                                    }
                                }),
                                None => out.message("original_type", |out| data_type(out, original)),
                            }
                            annotations(out, said);
                        });
                    });
                }
            }
        });
    }
}
