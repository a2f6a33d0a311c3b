//! The v1model architecture: its package, its metadata, its externs and table properties.

mod externs;
mod messages;
mod objects;
mod tables;

use super::architecture::{Architecture, KeyUse, Param, Role, Shared};
use super::expr::Value;
use super::instance::{InstanceId, Object};
use super::{Lowered, Lowerer};
use crate::hir::{Call, Construct, TableDef, TableProperty, Type};
use crate::ir::{self, ControlId, MatchKind, Package, ParserId, VarId};

/// As P4Info names it.
pub const NAME: &str = "v1model";

/// The blocks of a program for v1model.
#[derive(Debug, Clone, Copy)]
pub struct V1Model {
    pub parser: ParserId,
    pub verify_checksum: ControlId,
    pub ingress: ControlId,
    pub egress: ControlId,
    pub compute_checksum: ControlId,
    pub deparser: ControlId,
    /// `standard_metadata_t` by field name; [`ir::VarHome::Global`] variables.
    pub standard: StandardMetadata,
}

/// The variables behind `standard_metadata_t`; `None` where the program's v1model.p4 lacks the field.
#[derive(Debug, Clone, Copy, Default)]
pub struct StandardMetadata {
    pub ingress_port: Option<VarId>,
    pub egress_spec: Option<VarId>,
    pub egress_port: Option<VarId>,
    pub instance_type: Option<VarId>,
    pub packet_length: Option<VarId>,
    pub enq_timestamp: Option<VarId>,
    pub enq_qdepth: Option<VarId>,
    pub deq_timedelta: Option<VarId>,
    pub deq_qdepth: Option<VarId>,
    pub ingress_global_timestamp: Option<VarId>,
    pub egress_global_timestamp: Option<VarId>,
    pub mcast_grp: Option<VarId>,
    pub egress_rid: Option<VarId>,
    pub checksum_error: Option<VarId>,
    pub parser_error: Option<VarId>,
    pub priority: Option<VarId>,
}

impl V1Model {
    /// Of a program's package; `None` if it is another architecture's.
    pub fn of(package: &Package) -> Option<V1Model> {
        if package.architecture != NAME {
            return None;
        }
        let standard = |name: &str| package.field(&format!("{STANDARD}.{name}"));
        Some(V1Model {
            parser: package.parser(PARSER)?,
            verify_checksum: package.control(VERIFY)?,
            ingress: package.control(INGRESS)?,
            egress: package.control(EGRESS)?,
            compute_checksum: package.control(COMPUTE)?,
            deparser: package.control(DEPARSER)?,
            standard: StandardMetadata {
                ingress_port: standard("ingress_port"),
                egress_spec: standard("egress_spec"),
                egress_port: standard("egress_port"),
                instance_type: standard("instance_type"),
                packet_length: standard("packet_length"),
                enq_timestamp: standard("enq_timestamp"),
                enq_qdepth: standard("enq_qdepth"),
                deq_timedelta: standard("deq_timedelta"),
                deq_qdepth: standard("deq_qdepth"),
                ingress_global_timestamp: standard("ingress_global_timestamp"),
                egress_global_timestamp: standard("egress_global_timestamp"),
                mcast_grp: standard("mcast_grp"),
                egress_rid: standard("egress_rid"),
                checksum_error: standard("checksum_error"),
                parser_error: standard("parser_error"),
                priority: standard("priority"),
            },
        })
    }
}

const PARSER: &str = "parser";
const VERIFY: &str = "checksum verification";
const INGRESS: &str = "ingress";
const EGRESS: &str = "egress";
const COMPUTE: &str = "checksum computation";
const DEPARSER: &str = "deparser";

const STANDARD: &str = "standard_metadata";

const HEADERS: Param = Param::Shared(0);
const META: Param = Param::Shared(1);
const STANDARD_METADATA: Param = Param::Shared(2);

const ROLES: &[Role] = &[
    Role { name: PARSER, params: &[Param::Packet, HEADERS, META, STANDARD_METADATA] },
    Role { name: VERIFY, params: &[HEADERS, META] },
    Role { name: INGRESS, params: &[HEADERS, META, STANDARD_METADATA] },
    Role { name: EGRESS, params: &[HEADERS, META, STANDARD_METADATA] },
    Role { name: COMPUTE, params: &[HEADERS, META] },
    Role { name: DEPARSER, params: &[Param::Packet, HEADERS] },
];

/// All named as the ingress control, the third role, names them.
const SHARED: &[Shared] = &[
    Shared { name: "headers", named_by: 2, intrinsic: false },
    Shared { name: "metadata", named_by: 2, intrinsic: false },
    Shared { name: STANDARD, named_by: 2, intrinsic: true },
];

/// What the compiler asks of v1model.
pub(super) struct Lowering;

impl Architecture for Lowering {
    fn name(&self) -> &'static str {
        NAME
    }

    fn declarations(&self) -> (&'static str, &'static str) {
        ("v1model.p4", include_str!("v1model.p4"))
    }

    fn package(&self) -> &'static str {
        "V1Switch"
    }

    fn roles(&self) -> &'static [Role] {
        ROLES
    }

    fn shared(&self) -> &'static [Shared] {
        SHARED
    }

    fn match_kinds(&self) -> &'static [(&'static str, KeyUse)] {
        &[
            ("exact", KeyUse::Match(MatchKind::Exact)),
            ("lpm", KeyUse::Match(MatchKind::Lpm)),
            ("ternary", KeyUse::Match(MatchKind::Ternary)),
            ("range", KeyUse::Match(MatchKind::Range)),
            ("optional", KeyUse::Match(MatchKind::Optional)),
            ("selector", KeyUse::Selector),
        ]
    }

    fn function(&self, l: &mut Lowerer<'_>, name: &str, call: &Call) -> Lowered<Option<Value>> {
        l.v1_function(name, call)
    }

    fn object(
        &self,
        l: &mut Lowerer<'_>,
        name: &str,
        made: (&Construct, &Type),
        info: ir::Info,
    ) -> Lowered<Option<Object>> {
        l.v1_object(name, made, info)
    }

    fn method(
        &self,
        l: &mut Lowerer<'_>,
        object: InstanceId,
        name: &str,
        call: &Call,
    ) -> Lowered<Option<Value>> {
        l.v1_method(object, name, call)
    }

    fn shift_bits(&self) -> Option<u32> {
        Some(8)
    }

    fn property(
        &self,
        l: &mut Lowerer<'_>,
        property: &TableProperty,
        table: &mut ir::Table,
    ) -> Lowered<bool> {
        l.v1_property(property, table)
    }

    fn table(&self, l: &mut Lowerer<'_>, _declared: &TableDef, table: &mut ir::Table) -> Lowered<()> {
        l.v1_table(table);
        Ok(())
    }
}
