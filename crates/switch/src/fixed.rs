//! What is asked of a switch: of its program, and of the fixed parts around it.

use std::sync::Arc;

use control::{Answer, Error, FixedOp, FixedParts, Op, Result, StateOp, Target};
use p4lang::ir::Program;
use units::Time;

use crate::switch::Switch;

impl Target for Switch {
    fn program(&self) -> &Arc<Program> {
        Switch::program(self)
    }

    fn act(&mut self, now: Time, op: &Op) -> Result<Answer> {
        match op {
            Op::Fixed(op) => self.act_fixed(now, op),
            // Those of the queues as well.
            Op::State(StateOp::Drops {}) => Ok(Answer::Drops(self.statistics().dropped)),
            op => self.pipeline().act(now, op),
        }
    }

    fn act_all(&mut self, now: Time, ops: &[Op]) -> std::result::Result<Vec<Answer>, (usize, Error)> {
        self.pipeline().act_all(now, ops)
    }
}

impl FixedParts for Switch {
    fn act_fixed(&mut self, now: Time, op: &FixedOp) -> Result<Answer> {
        match op {
            FixedOp::ReadPort { port } => self.port_config(*port).map(Answer::Port),
            FixedOp::SetPort { port, to } => self.configure_port(*port, to).map(|()| Answer::Done),
            FixedOp::ReadQueue { port, queue } => self.queue_state(now, *port, *queue).map(Answer::Queue),
            FixedOp::SetGenerator { generator, to } => {
                self.set_generator(now, *generator, Some(to.clone())).map(|()| Answer::Done)
            }
            FixedOp::StopGenerator { generator } => {
                self.set_generator(now, *generator, None).map(|()| Answer::Done)
            }
            FixedOp::ReadGenerator { generator } => {
                Ok(Answer::Generator(self.generator(*generator).cloned()))
            }
            FixedOp::PacketOut { packet } => self.packet_out(now, packet).map(|()| Answer::Done),
            FixedOp::TakePacket {} => Ok(Answer::Packet(self.take_packet_in())),
            FixedOp::Statistics {} => Ok(Answer::Statistics(self.statistics())),
        }
    }
}
