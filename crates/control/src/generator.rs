//! The packet generator: packets on a period, as hardware makes them.

use units::Time;

use crate::{Error, Result};

/// Packets of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator {
    /// Ingress port that the packets seem to come from.
    pub port: u32,
    /// From the Ethernet header on.
    pub template: Vec<u8>,
    /// Time from packet to packet.
    pub period: Time,
}

impl Generator {
    /// # Errors
    /// A period of zero, an empty template.
    pub fn check(&self, id: u32) -> Result<()> {
        let what = format!("generator {id}");
        if self.period.is_zero() {
            let error = Error::invalid(format!("{what} has a period of 0")).cure("give it one above 0");
            return Err(error.of(what).field("period"));
        }
        if self.template.is_empty() {
            let error = Error::invalid(format!("{what} has an empty packet")).cure("give it some bytes");
            return Err(error.of(what).field("template"));
        }
        Ok(())
    }
}
