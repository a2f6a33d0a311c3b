//! The congestion control of a connection. The most common ones lie in the connection itself: of thousands of connections each is in no
//! cache when its ACK comes, and memory of the control's own would have to be waited for once more.

use std::ops::{Deref, DerefMut};

use super::{Ack, CongestionControl, Cubic, EcnUse, Flow, Reno};

/// A congestion control of any kind.
#[derive(Debug)]
pub enum Control {
    Reno(Reno),
    Cubic(Cubic),
    Other(Box<dyn CongestionControl>),
}

/// Calls a function of the control that there is: of those that lie in the connection without a look at a table of functions.
macro_rules! call {
    ($control:expr, $name:ident($($argument:expr),*)) => {
        match $control {
            Control::Reno(reno) => reno.$name($($argument),*),
            Control::Cubic(cubic) => cubic.$name($($argument),*),
            Control::Other(control) => control.$name($($argument),*),
        }
    };
}

/// What is called for each ACK or each segment, as in [`CongestionControl`].
impl Control {
    pub(super) fn other(control: impl CongestionControl + 'static) -> Control {
        Control::Other(Box::new(control))
    }

    #[inline]
    pub fn in_ack_event(&mut self, flow: &mut Flow, ack: &Ack) {
        call!(self, in_ack_event(flow, ack));
    }

    #[inline]
    pub fn pkts_acked(&mut self, flow: &mut Flow, ack: &Ack) {
        call!(self, pkts_acked(flow, ack));
    }

    #[inline]
    pub fn cong_avoid(&mut self, flow: &mut Flow, ack: &Ack) {
        call!(self, cong_avoid(flow, ack));
    }

    #[inline]
    pub fn takes_over(&self) -> bool {
        call!(self, takes_over())
    }

    #[inline]
    pub fn ecn(&self) -> EcnUse {
        call!(self, ecn())
    }

    #[inline]
    pub fn burst(&self, flow: &Flow) -> Option<u32> {
        call!(self, burst(flow))
    }

    #[inline]
    pub fn min_tso_segs(&self, flow: &Flow) -> u32 {
        call!(self, min_tso_segs(flow))
    }
}

impl Deref for Control {
    type Target = dyn CongestionControl;

    fn deref(&self) -> &Self::Target {
        match self {
            Control::Reno(reno) => reno,
            Control::Cubic(cubic) => cubic,
            Control::Other(control) => &**control,
        }
    }
}

impl DerefMut for Control {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Control::Reno(reno) => reno,
            Control::Cubic(cubic) => cubic,
            Control::Other(control) => &mut **control,
        }
    }
}
