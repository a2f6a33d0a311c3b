//! Prints what compiling a program takes of each limit: `cargo run -p p4lang --example measure -- PROGRAM.p4`.

use p4lang::{Limits, Options, compile_file};

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let compiled = compile_file(path.as_ref(), &Options::default())?;
    let limits = Limits::default().all();
    for d in compiled.diagnostics.iter().take(3) {
        println!("{:?} {}: {}", d.severity, d.code, d.message.chars().take(200).collect::<String>());
    }
    for (name, used) in compiled.used {
        let limit = limits.iter().find(|(known, _)| *known == name).map_or(0, |(_, limit)| *limit);
        println!("{name}: {used} of {limit}");
    }
    if let Some(program) = &compiled.program {
        println!("frame: {} bytes", p4lang::sizes::frame(program));
    }
    Ok(())
}
