//! `saiga topology [collect]`: the machine, and where a process runs on it.
//!
//! The crate `saiga-topology` reads, draws, records and measures; this module has the files and
//! the output.

mod collect;

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use saiga_document::html;
use saiga_process::root::Root;
use saiga_topology::draw::draw;
use saiga_topology::latency::{self, Latency};
use saiga_topology::machine::Machine;
use saiga_topology::page::page;
use saiga_topology::process::Process;
use saiga_topology::read::read;
use saiga_topology::unpack::Sysroot;
use serde::Serialize;

use crate::{exit, outfile};

/// Columns of the text where stdout is not a terminal, and at least on a terminal.
const COLUMNS: usize = 80;

/// Options of `saiga topology`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
CPUs are listed as for taskset: 0-3,8, or 1-37:4 for every fourth CPU from 1 to 37.\n\
Exit status: 2 when the machine or the process cannot be read.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Show where the threads, the memory and the code of this process are
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Measure the latency of memory from each node to each node; takes about a second for each
    /// pair and up to a quarter of the free memory
    #[arg(long)]
    latency: bool,
    /// Read this directory, or this archive of `saiga topology collect`, instead of this machine
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "latency"])]
    sysroot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a page with a picture of the nodes to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Records this machine in an archive for `--sysroot`, without what identifies it
    Collect(collect::Args),
}

/// The JSON output.
#[derive(Serialize)]
struct Output<'a> {
    machine: &'a Machine,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<&'a Process>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<&'a Latency>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(Verb::Collect(args)) = &args.verb {
        return collect::run(args);
    }
    if let Some(out) = &args.out {
        outfile::check(out)?;
    }
    // Dropped at the end, and with it the unpacked archive.
    let other = args.sysroot.as_deref().map(Sysroot::open).transpose()?;
    let host = Root::host();
    let root = other.as_ref().map_or(&host, Sysroot::root);
    let machine = read(root)?;
    let process = args.pid.map(|pid| Process::read(root, pid)).transpose()?;
    let latency = args.latency.then(|| {
        latency::measure(&machine, latency::Options::default(), exit::say)
            .context("latency was not measured")
    });
    let latency = latency.transpose()?;
    let (process, latency) = (process.as_ref(), latency.as_ref());
    let text = if args.json {
        let output = Output {
            machine: &machine,
            process,
            latency,
        };
        serde_json::to_string_pretty(&output)? + "\n"
    } else {
        draw(&machine, process, latency, columns())
    };
    std::io::stdout().write_all(text.as_bytes())?;
    if let Some(out) = &args.out {
        let origin = format!("Written by `saiga topology`, {}.", env!("SAIGA_VERSION"));
        let page = page(&machine, process, latency, &origin);
        outfile::write(out, &html::render_without_script(&page))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn columns() -> usize {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return COLUMNS;
    }
    let size = rustix::termios::tcgetwinsize(&stdout);
    size.map_or(COLUMNS, |size| usize::from(size.ws_col).max(COLUMNS))
}
