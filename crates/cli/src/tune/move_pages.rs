//! `saiga tune move-pages`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use saiga_document::number;
use saiga_document::table::Table;
use saiga_process::interrupt::Interrupt;
use saiga_tune::move_pages::{FileMove, MoveRequest, What, move_pages};

use crate::exit;
use crate::print::{print_json, print_text};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The program keeps running, and every process keeps its mappings. Only pages that are in memory \
move; nothing is read from the disk. Needs CAP_SYS_NICE (root). Ctrl-C ends the move between two \
batches; what has moved stays.\n\
Exit status: 1 when pages are left on other nodes.")]
pub(super) struct Args {
    /// The process whose files are moved
    #[arg(long, value_name = "PID")]
    pid: u32,
    /// The node to which the pages move
    #[arg(long = "to-node", value_name = "N")]
    node: u32,
    /// text: the executable; libs: also its shared libraries; all: every file that it maps
    #[arg(long, value_enum, default_value = "libs")]
    what: WhatName,
    /// Move at most so many MiB in a second
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhatName {
    Text,
    Libs,
    All,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let request = MoveRequest {
        pid: args.pid,
        node: args.node,
        what: match args.what {
            WhatName::Text => What::Text,
            WhatName::Libs => What::Libraries,
            WhatName::All => What::All,
        },
        bytes_per_second: args.rate.map(|mib| mib.saturating_mul(1 << 20)),
    };
    let stop = || interrupt.count().is_ok_and(|count| count > 0);
    let report = move_pages(&request, &stop, &mut |_| {})?;
    if args.json {
        print_json(&report)?;
    } else {
        print_text(&table(&report.files, report.page_bytes).to_string())?;
        for file in &report.files {
            for line in left(file) {
                exit::say(&line);
            }
        }
    }
    if report.is_interrupted {
        exit::say("interrupted; what has moved stays");
    }
    Ok(if report.is_complete(args.node) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}

fn table(files: &[FileMove], page_bytes: u64) -> Table<4> {
    let mut table = Table::new(["file", "in memory", "nodes before", "after"]);
    for file in files {
        let pages: u64 = file.before.values().sum();
        table.row([
            file.path.display().to_string(),
            number::bytes(pages * page_bytes),
            shares(&file.before),
            shares(&file.after),
        ]);
    }
    table
}

/// The pages by node: `3: 100 %`, or `0: 40 %, 3: 60 %`.
fn shares(nodes: &BTreeMap<u32, u64>) -> String {
    let all: u64 = nodes.values().sum();
    let share = |(node, pages): (&u32, &u64)| {
        format!("{node}: {:.0} %", *pages as f64 / all.max(1) as f64 * 100.0)
    };
    let shares: Vec<String> = nodes.iter().map(share).collect();
    shares.join(", ")
}

/// What did not move, and why.
fn left(file: &FileMove) -> Vec<String> {
    let path = file.path.display();
    let not_moved = file.not_moved.iter();
    let mut lines: Vec<String> = not_moved
        .map(|(why, pages)| format!("{path}: {pages} pages did not move: {why}"))
        .collect();
    lines.extend(file.error.iter().map(|error| format!("{path}: {error}")));
    lines
}
