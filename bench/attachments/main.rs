//! What each way of attaching a program to a read path costs, and what it loses.
//!
//! `cargo bench --bench attachments [-- OPTIONS]`, as root; `bench/attachments.sh` runs it on the kernels of
//! `tests/vm`, where costs are counted in instructions. The results are in `docs/attachments.md`.

#[path = "../clock.rs"]
mod clock;
mod loads;
mod measure;
mod names;
mod programs;
mod report;
mod steps;
mod ways;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use anyhow::Result;
use clap::Parser;

/// What ways of attaching cost and lose.
#[derive(Debug, Parser)]
struct Args {
    /// Directory on the file system to read from; not a tmpfs.
    #[arg(long, default_value = env!("CARGO_TARGET_TMPDIR"))]
    dir: PathBuf,
    /// Measure only what the ways and the steps of a program cost.
    #[arg(long, conflicts_with = "only_losses")]
    only_costs: bool,
    /// Measure only what the ways lose.
    #[arg(long)]
    only_losses: bool,
    /// Measure only ways whose title contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// This is a guest under QEMU's `-icount`: show instructions.
    #[arg(long)]
    guest: bool,
    /// Write all figures to a file, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("attachments: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    // What libbpf says of refusals comes back as errors, too.
    libbpf_rs::set_print(None);
    let results = measure::measure(args)?;
    print!("{}", report::text(&results));
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&results)?;
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
