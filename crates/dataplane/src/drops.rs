//! Reasons for which packets are dropped.

/// Why a packet did not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// `egress_spec` was 511 after ingress.
    Ingress,
    /// `egress_spec` was 511 after egress.
    Egress,
    /// More work than [`crate::cost::WORK_BUDGET`].
    WorkBudget,
    Assertion,
    Assumption,
    /// Resubmitted or recirculated too often.
    Recirculation,
    /// A multicast group without members, or one that does not exist.
    EmptyGroup,
    /// Turned into too many packets.
    Copies,
    /// Of one architecture alone, by its name.
    #[serde(untagged)]
    Own(&'static str),
}

impl DropReason {
    pub fn name(self) -> &'static str {
        match self {
            DropReason::Ingress => "dropped in ingress",
            DropReason::Egress => "dropped in egress",
            DropReason::WorkBudget => "work budget",
            DropReason::Assertion => "assertion",
            DropReason::Assumption => "assumption",
            DropReason::Recirculation => "recirculation limit",
            DropReason::EmptyGroup => "empty multicast group",
            DropReason::Copies => "copy limit",
            DropReason::Own(name) => name,
        }
    }
}
