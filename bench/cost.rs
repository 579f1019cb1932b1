//! What watching costs: time until attached, memory, and nanoseconds per system call.
//!
//! `cargo bench --bench cost [-- OPTIONS]`, as root. Each system call is timed under nothing, under empty programs on the
//! hooks of this kernel's plan (the floor), under the product, and under the product asked which files, in turns within one run: quote the ratios
//! of one run, since machines drift. In a guest that counts instructions (`bench/guests.sh`), `--guest` shows
//! instructions instead of nanoseconds.

mod arms;
mod clock;
mod commands;
mod loops;
mod report;
mod start;
mod stats;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use anyhow::Result;
use cachetop::plan::Wants;
use cachetop::session::Options;
use clap::Parser;

/// What watching the page cache costs.
#[derive(Debug, Parser)]
struct Args {
    /// Directory on the file system to read from; not a tmpfs.
    #[arg(long, default_value = env!("CARGO_TARGET_TMPDIR"))]
    dir: PathBuf,
    /// The command whose start and memory are measured.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_cachestat"))]
    cachestat: PathBuf,
    /// Rounds; each measures everything under nothing, floor and product. [default: 30; with --guest: 1]
    #[arg(long)]
    rounds: Option<usize>,
    /// Starts to measure. [default: 10; with --guest: 1]
    #[arg(long)]
    starts: Option<usize>,
    /// This is a guest under QEMU's `-icount`: show instructions.
    #[arg(long)]
    guest: bool,
    /// Measure the plan for kernels where no function can be attached.
    #[arg(long)]
    without_functions: bool,
    /// Ask for the latency of reads, too.
    #[arg(long)]
    latency: bool,
    /// Only the calls whose title contains this.
    #[arg(long, value_name = "SUBSTR", default_value = "")]
    only: String,
    /// bcc's cachestat (of libbpf-tools), to be measured as well.
    #[arg(long, value_name = "PROGRAM")]
    bcc: Option<PathBuf>,
    /// Write all figures to a file, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    env_logger::init();
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    // Our own calls are what is measured.
    let wants = Wants { latency: args.latency, ..Wants::default() };
    let options = Options {
        include_self: true,
        without_functions: args.without_functions,
        wants,
        ..Options::default()
    };
    let few = |n| if args.guest { 1 } else { n };
    let clock = if args.guest { clock::Clock::Guest } else { clock::Clock::Native };
    let instruction = args.guest.then(clock::ns_per_instruction).transpose()?;
    let start = start::measure(&args.cachestat, args.starts.unwrap_or(few(10)).max(1))?;
    let rounds = args.rounds.unwrap_or(few(30)).max(1);
    let costs = arms::measure(&options, &args.dir, clock, rounds, &args.only, args.bcc.as_deref())?;
    print!("{}", report::text(&start, &costs, instruction));
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report::json(&start, &costs, instruction))?;
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
