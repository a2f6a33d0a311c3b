//! Any bytes as a frame: what can be read is written in one form, which is read as the same.

#[path = "../../crates/wire/tests/layers/mod.rs"]
mod layers;

use layers::Layers;

pub fn frames(bytes: &[u8]) {
    let wire = bytes.len() as u32 + 100;
    let _ = wire::frame::parse(bytes, wire);
    let _ = wire::frame::options(bytes, wire);
    wire::offload::complete_partial(&mut bytes.to_vec());
    if let Ok(read) = Layers::parse(bytes)
        && read.fits()
    {
        assert_eq!(Layers::parse(&read.emit()), Ok(read));
    }
}
