//! Opening a port of a kind.

use crate::bpf::Attach;
use crate::interface::{Failure, Interface, fail};
use crate::packet::PacketPort;
use crate::port::{Counts, Kind, Port};
use crate::profile::Settings;
use crate::shared::{PortStatus, Wiring};
use crate::tap::TapPort;
use crate::threaded::Threaded;
use crate::xdp::XdpPort;

/// A port that is open.
pub struct Opened {
    pub port: Box<dyn Port>,
    pub status: PortStatus,
    /// Where it has one.
    pub threaded: Option<Threaded>,
}

/// To be called in the interface's namespace.
pub fn open(wiring: &Wiring, settings: Settings) -> Result<Opened, Failure> {
    let merge = settings.merge;
    let (name, netns) = (&wiring.interface, wiring.netns.as_deref());
    let present = || {
        let interface = Interface::open(name, netns)?;
        if !interface.is_up() {
            return fail(format!("interface {name} is down; `ip link set {name} up` changes that"));
        }
        Ok(interface)
    };
    let mut notice = None;
    let (port, kind): (Box<dyn Port>, Kind) = match wiring.kind {
        Kind::Tap => (Box::new(TapPort::open(name, netns)?), Kind::Tap),
        Kind::Packet => (Box::new(PacketPort::open(present()?, merge)?), Kind::Packet),
        Kind::Xdp | Kind::XdpGeneric => {
            let how = if wiring.kind == Kind::Xdp { Attach::Native } else { Attach::Generic };
            (Box::new(XdpPort::open(present()?, how, merge).map_err(|(why, _)| why)?), wiring.kind)
        }
        Kind::Auto => match XdpPort::open(present()?, Attach::Native, merge) {
            Ok(port) => (Box::new(port), Kind::Xdp),
            Err((why, interface)) => {
                notice = Some(format!("{why}; AF_PACKET is used"));
                (Box::new(PacketPort::open(interface, merge)?), Kind::Packet)
            }
        },
    };
    let mut threaded = None;
    if settings.has_napi_threads() && matches!(kind, Kind::Xdp | Kind::XdpGeneric) {
        match Threaded::begin(name, netns) {
            Ok(begun) => threaded = Some(begun),
            Err(why) => notice = Some(why.to_string()),
        }
    }
    let mtu = port.interface().mtu();
    let status =
        PortStatus { interface: name.clone(), kind, mtu, up: true, notice, counts: Counts::default() };
    Ok(Opened { port, status, threaded })
}
