//! What a control plane does to a pipeline: the effects of [`control::Op`], with everything checked before anything changes.
//! What the program alone decides (names, kinds, widths) is checked by [`control::check`]; what depends on the state, here.
//!
//! A smaller priority number wins.
//!
//! | file | what it does |
//! |---|---|
//! | `table.rs` | operations on tables |
//! | `entry.rs` | what a table's entry has beside its action: counter, meter, timeout |
//! | `profile.rs` | members and groups of action profiles |
//! | `array.rs` | registers, counters, meters |
//! | `value_set.rs` | parser value sets |
//! | `undo.rs` | batches that are done whole or not at all |
//! | `copies.rs` | multicast groups and mirror sessions |

mod array;
mod copies;
mod entry;
mod profile;
mod table;
mod undo;
mod value_set;

use std::sync::Arc;

use control::{Answer, Digest, Error, Kind, MOST_AT_A_TIME, Op, Result, StateOp};
use p4lang::ir::Program;
use units::Time;

use crate::hash::Crc;
use crate::pipeline::Pipeline;

pub(crate) fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::invalid(why))
}

pub(crate) fn refuse_as<T>(kind: Kind, why: impl Into<String>) -> Result<T> {
    Err(Error::new(kind, why))
}

/// Of what has parts, as many as are asked for: as packets may wait for, but one at least. `None`: all.
fn some_of<T>(
    found: impl Iterator<Item = T>,
    count: Option<u32>,
    parts: impl Fn(&T) -> usize,
) -> impl Iterator<Item = T> {
    let (mut left, mut sum) = (count, 0);
    found.take_while(move |one| {
        let Some(left) = &mut left else { return true };
        let first = sum == 0;
        sum += parts(one).max(1);
        *left > 0 && (first || sum <= MOST_AT_A_TIME) && {
            *left -= 1;
            true
        }
    })
}

impl control::Target for Pipeline {
    fn program(&self) -> &Arc<Program> {
        Pipeline::program(self)
    }

    fn act(&mut self, now: Time, op: &Op) -> Result<Answer> {
        match op {
            Op::Table(op) => self.act_on_table(now, op),
            Op::Profile(op) => self.act_on_profile(op),
            Op::Array(op) => self.act_on_array(now, op),
            Op::ValueSet(op) => self.act_on_value_set(op),
            Op::Copies(op) => self.act_on_copies(op),
            Op::State(op) => Ok(self.act_on_state(now, op)),
            Op::Fixed(op) => Err(op.no_fixed_parts()),
        }
    }

    fn act_all(&mut self, now: Time, ops: &[Op]) -> std::result::Result<Vec<Answer>, (usize, Error)> {
        self.act_on_all(now, ops)
    }
}

/// Fields of digests that are taken at a time, about a millisecond of work; the rest is taken the next time.
const DIGEST_FIELDS: usize = 4096;

impl Pipeline {
    fn act_on_state(&mut self, now: Time, op: &StateOp) -> Answer {
        match op {
            StateOp::TakeDigests {} => {
                let mut fields = 0;
                let count = self.state.digests.iter().take_while(|message| {
                    fields += message.fields.len() + 1;
                    fields <= DIGEST_FIELDS
                });
                let count = count.count().max(1).min(self.state.digests.len());
                let messages: Vec<_> = self.state.digests.drain(..count).collect();
                let digest = |message: crate::state::DigestMessage| {
                    let declared = &self.program()[message.digest];
                    let names = declared.fields.iter().map(|(name, _)| name.clone());
                    let values = message.fields.iter().map(control::Value::from);
                    Digest { name: declared.info.name.clone(), fields: names.zip(values).collect() }
                };
                Answer::Digests(messages.into_iter().map(digest).collect())
            }
            StateOp::DigestsLost {} => Answer::Count(self.state.digests_lost),
            StateOp::Drops {} => {
                Answer::Drops(self.drops().iter().map(|(reason, count)| (reason.name(), *count)).collect())
            }
            StateOp::SetCrc { to } => {
                let hashes = &mut self.state.hashes;
                let custom = if to.width == 16 { &mut hashes.crc16_custom } else { &mut hashes.crc32_custom };
                *custom = Crc::new(*to);
                Answer::Done
            }
            StateOp::Reset {} => {
                let program = self.program().clone();
                self.state.reset(&program);
                self.state.begin(now.as_ps());
                self.replication.clear();
                Answer::Done
            }
        }
    }
}
