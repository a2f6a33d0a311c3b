//! The congestion control of a connection. The most common ones lie in the connection itself: of thousands of connections each is in no
//! cache when its ACK comes, and memory of the control's own would have to be waited for once more.

use std::ops::{Deref, DerefMut};

use super::{CongestionControl, Cubic, Reno};

/// A congestion control of any kind.
#[derive(Debug)]
pub enum Control {
    Reno(Reno),
    Cubic(Cubic),
    Other(Box<dyn CongestionControl>),
}

impl Control {
    pub(super) fn other(control: impl CongestionControl + 'static) -> Control {
        Control::Other(Box::new(control))
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
