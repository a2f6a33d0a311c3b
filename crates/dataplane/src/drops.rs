//! Reasons for which packets are dropped, and how many were.

use std::collections::BTreeMap;

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

/// Those that all architectures know, each at its [`place`].
const COMMON: [DropReason; 8] = [
    DropReason::Ingress,
    DropReason::Egress,
    DropReason::WorkBudget,
    DropReason::Assertion,
    DropReason::Assumption,
    DropReason::Recirculation,
    DropReason::EmptyGroup,
    DropReason::Copies,
];

/// Where a common reason is counted, or the name of another.
#[inline(always)]
fn place(reason: DropReason) -> Result<usize, &'static str> {
    Ok(match reason {
        DropReason::Ingress => 0,
        DropReason::Egress => 1,
        DropReason::WorkBudget => 2,
        DropReason::Assertion => 3,
        DropReason::Assumption => 4,
        DropReason::Recirculation => 5,
        DropReason::EmptyGroup => 6,
        DropReason::Copies => 7,
        DropReason::Own(name) => return Err(name),
    })
}

/// Packets dropped, by reason. Of a monitor's packets each is dropped: to find the reason in a map would take a tenth of its time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Drops {
    common: [u64; COMMON.len()],
    own: BTreeMap<&'static str, u64>,
}

impl Drops {
    #[inline(always)]
    pub fn count(&mut self, reason: DropReason) {
        match place(reason) {
            Ok(at) => self.common[at] += 1,
            Err(name) => *self.own.entry(name).or_default() += 1,
        }
    }

    /// Those that have come up.
    pub fn all(&self) -> BTreeMap<DropReason, u64> {
        let common = COMMON.into_iter().zip(self.common).filter(|(_, count)| *count > 0);
        common.chain(self.own.iter().map(|(name, count)| (DropReason::Own(name), *count))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_by_itself() {
        let mut drops = Drops::default();
        assert!(drops.all().is_empty());
        let own = ["one", "other"].map(DropReason::Own);
        for (count, reason) in (1..).zip(COMMON.into_iter().chain(own)) {
            (0..count).for_each(|_| drops.count(reason));
        }
        let counted: Vec<_> = drops.all().into_iter().collect();
        let expected: Vec<_> = COMMON.into_iter().chain(own).zip(1..).collect();
        assert_eq!(counted, expected);
        assert!(COMMON.iter().enumerate().all(|(at, reason)| place(*reason) == Ok(at)));
    }
}
