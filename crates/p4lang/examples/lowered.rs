//! Prints a program in its lowered form: `cargo run -p p4lang --example lowered -- PROGRAM.p4`.

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let compiled = p4lang::compile_file(path.as_ref(), &p4lang::Options::default())?;
    for d in &compiled.diagnostics {
        let (line, column) = compiled.sources.line_column(d.span);
        println!(
            "{}:{line}:{column}: {:?}: {}",
            compiled.sources.file(d.span.file).name,
            d.severity,
            d.message
        );
    }
    if let Some(program) = compiled.program {
        print!("{program}");
    }
    Ok(())
}
