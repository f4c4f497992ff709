//! `saiga top`: the traffic of accelerated processes, refreshed each second.
//!
//! On a terminal it redraws in place until q or Ctrl-C; elsewhere it prints one frame after the
//! other. There is no signal handler: signals are read as input, so that the terminal is always
//! restored.

mod rates;
pub(crate) mod screen;

use std::process::ExitCode;

use anyhow::Context;
use saiga_status::reader;

use crate::process::Process;
use rates::{Rates, Sample};
use saiga_document::number;
use saiga_document::table::Table;
use screen::Screen;

/// Options of `saiga top`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show this many frames and exit
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Show one frame and exit
    #[arg(long, conflicts_with = "iterations")]
    once: bool,
    /// Print each frame as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Shows frames until the end.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let most = if args.once { Some(1) } else { args.iterations };
    let mut screen = Screen::open().context("cannot read signals and keys")?;
    let mut before = sample()?;
    screen.show(most, !args.json, || {
        let now = sample()?;
        let rates = now.rates_since(&before);
        before = now;
        Ok(if args.json {
            serde_json::to_string(&rates)? + "\n"
        } else {
            frame(&rates)
        })
    })?;
    Ok(ExitCode::SUCCESS)
}

fn sample() -> anyhow::Result<Sample> {
    let pages = reader::accelerated().context("cannot list processes; is /proc mounted?")?;
    Ok(Sample::of(
        pages
            .iter()
            .filter_map(|page| Process::glance(page).ok())
            .collect(),
    ))
}

fn frame(rates: &[Rates]) -> String {
    if rates.is_empty() {
        return "no accelerated process is running\n".to_owned();
    }
    let header = [
        "pid",
        "program",
        "connections",
        "upgraded",
        "channel in/s",
        "channel out/s",
        "tcp in/s",
        "tcp out/s",
        "spins/s",
        "sleeps/s",
        "rings/s",
    ];
    let mut table = Table::new(header);
    for row in rates {
        table.row([
            row.pid.to_string(),
            row.program.clone(),
            row.connections.to_string(),
            row.upgraded.to_string(),
            number::bytes(row.channel_rx_bytes_s),
            number::bytes(row.channel_tx_bytes_s),
            number::bytes(row.tcp_rx_bytes_s),
            number::bytes(row.tcp_tx_bytes_s),
            row.spins_s.to_string(),
            row.sleeps_s.to_string(),
            row.rings_s.to_string(),
        ]);
    }
    table.to_string()
}
