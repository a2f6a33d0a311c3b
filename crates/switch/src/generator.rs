//! The packet generator: packets on a period, as hardware makes them.

use control::Generator;
use units::Time;

/// A generator and when it is due.
#[derive(Debug)]
pub(crate) struct Running {
    pub generator: Generator,
    last: Option<Time>,
    pub due: Time,
}

impl Running {
    /// The first packet comes a period after `now`.
    pub fn new(now: Time, generator: Generator) -> Running {
        let due = now.saturating_add(generator.period);
        Running { generator, last: None, due }
    }

    /// Another template, port or period. The time that has gone by since the last packet counts for the new period.
    pub fn change(&mut self, now: Time, generator: Generator) {
        let begun = self.last.unwrap_or(self.due.saturating_sub(self.generator.period));
        self.due = begun.saturating_add(generator.period).max(now);
        self.generator = generator;
    }

    pub fn fired(&mut self) {
        self.last = Some(self.due);
        self.due = self.due.saturating_add(self.generator.period);
    }
}
