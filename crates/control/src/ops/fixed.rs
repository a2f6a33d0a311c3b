//! What a switch has around its program: ports, queues, packet generators, the controller's port.

use super::family;
use crate::{Generator, PortConfig};

family! {
    /// On a switch's fixed parts.
    FixedOp in Fixed {
        /// Read a port's configuration.
        ReadPort "port_read" -> Port {
            /// The port.
            port: u32,
        }
        /// Configure a port. Packets in a queue that is removed go to the last remaining queue.
        SetPort "port_set" -> Done {
            /// The port.
            port: u32,
            /// Queues, scheduler, shaper.
            to: PortConfig,
        }
        /// Read the packets and bytes that wait in a queue, and its counts.
        ReadQueue "queue_read" -> Queue {
            /// The port.
            port: u32,
            /// The queue.
            queue: u32,
        }
        /// Start a packet generator, or change it while it runs.
        SetGenerator "generator_set" -> Done {
            /// The generator.
            generator: u32,
            /// Ingress port, packet, and period in picoseconds.
            to: Generator,
        }
        /// Stop a packet generator.
        StopGenerator "generator_stop" -> Done {
            /// The generator.
            generator: u32,
        }
        /// Read what a packet generator does.
        ReadGenerator "generator_read" -> Generator {
            /// The generator.
            generator: u32,
        }
        /// Send a packet into the switch by the controller's port.
        PacketOut "packet_out" -> Done {
            /// From the controller header on, if the program takes one off.
            packet: Vec<u8>,
        }
        /// Take the next packet for the controller.
        TakePacket "packet_take" -> Packet {
        }
        /// Read the counts of packets: received, sent, dropped, held.
        Statistics "statistics_read" -> Statistics {
        }
    }
}
