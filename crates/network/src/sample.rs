//! Samples of flows and queues, each recorder on its period.

use crate::event::Event;
use crate::network::Network;
use crate::port::{Port, PortId};
use crate::record::Recorder;

impl Network {
    pub(crate) fn on_sample(&mut self, index: u32) {
        let mut recorder = std::mem::take(&mut self.recorders[index as usize]);
        self.sample_into(&mut recorder);
        self.schedule_common(self.now + recorder.period, Event::Sample(index));
        self.recorders[index as usize] = recorder;
    }

    fn sample_into(&mut self, recorder: &mut Recorder) {
        if let Some(samples) = &mut recorder.flows {
            for plan in 0..self.plans.len() as u32 {
                let Some(sender) = self.open(self.sender(plan)) else { continue };
                let flow = sender.flow();
                samples.time.push(self.now);
                samples.flow.push(self.plans[plan as usize].number);
                samples.bytes_received.push(self.tcp_outcome(plan).bytes_received);
                samples.cwnd.push(flow.cwnd);
                samples.ssthresh.push(flow.ssthresh);
                samples.in_flight.push(flow.in_flight());
                samples.srtt.push(flow.srtt.as_ps());
                samples.rto.push(sender.rto().as_ps());
                samples.pacing_rate.push(flow.pacing_rate.as_bps());
                samples.retransmits.push(sender.statistics().retransmits);
                samples.timeouts.push(sender.statistics().timeouts);
                samples.delivered_ce.push(flow.delivered_ce);
            }
        }
        let samples = &mut recorder.queues;
        for port in &recorder.ports {
            let queues: Vec<_> = (0..).map_while(|queue| self.queue_state(PortId(*port), queue)).collect();
            let now = self.now;
            let p = &mut self.at_port_mut(PortId(*port)).ports[*port as usize];
            let mut row = |p: &Port, queue: usize, (packets, bytes): (u64, u64), delay: u64, dropped: u64| {
                samples.time.push(now);
                samples.port.push(*port);
                samples.queue.push(queue as u32);
                samples.packets.push(packets);
                samples.bytes.push(bytes);
                samples.delay.push(delay);
                samples.sent_bytes.push(p.sent_bytes());
                samples.dropped.push(dropped);
                samples.marked.push(p.statistics.marked);
                // What is still to be sent has been counted already.
                samples.busy.push((p.statistics.busy_ps as u64).saturating_sub(p.backlog(now)));
                let stalled = p.managed.as_ref().map_or(0, |managed| managed.stalled(now, p.free_at()));
                samples.stalled.push(if p.of_switch == u32::MAX { stalled } else { u64::MAX });
            };
            if queues.is_empty() {
                let (depth, delay) = (p.depth(now), p.delay(now));
                row(p, 0, depth, delay, p.statistics.dropped);
            }
            for (number, queue) in queues.iter().enumerate() {
                let depth = (queue.waiting_packets, queue.waiting_bytes);
                row(p, number, depth, queue.head_wait.as_ps(), queue.dropped);
            }
        }
    }
}
