//! What Python describes: links and flows, with all that is left open already filled in.

use network::{Aqm, GilbertElliott, Link, QueueLimit};
use pyo3::prelude::*;
use transport::tcp::{Config, EcnMode};
use units::{Bytes, Rate, Time};

use crate::errors::refused;

/// One direction of a link, as `tidegate.network.Link` resolves it.
#[derive(FromPyObject)]
pub struct LinkSpec {
    pub rate: u64,
    pub delay: u64,
    pub packets: Option<u64>,
    pub bytes: Option<u64>,
    pub mark_above: Option<u64>,
    pub aqm: Option<String>,
    pub aqm_salt: u64,
    pub framing: u32,
    pub loss: f64,
    pub burst_loss: Option<(f64, f64, f64, f64)>,
    pub jitter: u64,
    pub reorder: f64,
    pub reorder_by: u64,
    pub duplicate: f64,
    pub mtu: u32,
    pub most: Option<u64>,
}

impl LinkSpec {
    pub fn link(&self) -> PyResult<Link> {
        let aqm = |name: &String| {
            let known = Aqm::NAMES.join(", ");
            Aqm::by_name(name)
                .ok_or_else(|| refused(format!("there is no queue management `{name}`; known: {known}")))
        };
        Ok(Link {
            aqm: self.aqm.as_ref().map(aqm).transpose()?,
            limit: QueueLimit { packets: self.packets, bytes: self.bytes.map(Bytes::new) },
            aqm_salt: self.aqm_salt,
            mark_above: self.mark_above,
            framing: self.framing,
            loss: self.loss,
            burst_loss: self.burst_loss.map(|(to_bad, to_good, loss_good, loss_bad)| GilbertElliott {
                to_bad,
                to_good,
                loss_good,
                loss_bad,
            }),
            jitter: Time::from_ps(self.jitter),
            reorder: self.reorder,
            reorder_by: Time::from_ps(self.reorder_by),
            duplicate: self.duplicate,
            mtu: self.mtu,
            most: self.most.map(Bytes::new),
            ..Link::new(Rate::from_bps(self.rate), Time::from_ps(self.delay))
        })
    }
}

/// A TCP flow, as `tidegate.network` resolves it.
#[derive(FromPyObject)]
pub struct TcpSpec {
    pub source: u32,
    pub target: u32,
    pub start: u64,
    pub stop: Option<u64>,
    pub ends: Option<String>,
    pub size: Option<u64>,
    pub congestion_control: String,
    pub control_options: Vec<(String, String)>,
    pub mss: u32,
    pub ecn: String,
    pub initial_cwnd: u32,
    pub rto_min: u64,
    pub delayed_ack: u64,
    pub quick_ack: bool,
    pub segmentation_offload: Option<u64>,
    pub limit_output: Option<u64>,
    pub ticks_per_second: Option<u32>,
    pub receive_buffer_max: u64,
    pub sack: bool,
    pub timestamps: bool,
    pub pacing: bool,
    pub extra_delay: u64,
}

/// A page, as `tidegate.network` resolves it.
#[derive(FromPyObject)]
pub struct PageSpec {
    pub connection: TcpSpec,
    pub request: u64,
    pub response: u64,
    pub objects: u32,
    pub think: u64,
    pub persistent: bool,
}

impl TcpSpec {
    pub fn config(&self) -> PyResult<Config> {
        let ecn = match self.ecn.as_str() {
            "off" => EcnMode::Off,
            "passive" => EcnMode::Passive,
            "on" => EcnMode::On,
            "accurate" => EcnMode::Accurate,
            other => {
                return Err(refused(format!(
                    "there is no ECN mode `{other}`; known: off, passive, on, accurate"
                )));
            }
        };
        let defaults = Config::default();
        Ok(Config {
            mss: self.mss,
            ecn,
            initial_cwnd: self.initial_cwnd,
            rto_min: Time::from_ps(self.rto_min),
            delayed_ack_min: Time::from_ps(self.delayed_ack),
            always_quick: self.quick_ack,
            segmentation_offload: self.segmentation_offload.map(Bytes::new),
            limit_output: self.limit_output.map(Bytes::new),
            ticks_per_second: self.ticks_per_second.unwrap_or(defaults.ticks_per_second),
            receive_buffer_max: Bytes::new(self.receive_buffer_max),
            sack: self.sack,
            timestamps: self.timestamps,
            pacing: self.pacing,
            ..defaults
        })
    }
}

/// A UDP flow, as `tidegate.network` resolves it.
#[derive(FromPyObject)]
pub struct UdpSpec {
    pub source: u32,
    pub target: u32,
    pub start: u64,
    pub stop: Option<u64>,
    pub rate: u64,
    pub payload: u32,
    pub pattern: String,
    pub on: u64,
    pub off: u64,
    pub ecn: u8,
}
