//! `saiga waf probe` and `saiga waf record`: the counters of a drive, and a copy of its log pages.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use saiga_document::number;
use saiga_waf::identity::{Identity, identify};
use saiga_waf::recorded::{self, Privacy};
use saiga_waf::source::{Counters, Source, Unusable, preferred, probe};
use saiga_waf::{Wear, open, report, wear};

use crate::exit;

/// Options of `saiga waf probe`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 1 when no source of counters is usable.")]
pub(super) struct Args {
    /// A drive: /dev/nvme0, a namespace (/dev/nvme0n1), or a directory written by `saiga waf
    /// record`
    #[arg(value_name = "DEVICE", value_parser = super::drive_path)]
    drive: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `saiga waf record`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Only reads the drive. The directory can be given in place of a device: saiga waf \
probe DIR.\nExit status: 2 when the drive cannot be identified."
)]
pub(super) struct Record {
    /// A drive: /dev/nvme0, or a namespace (/dev/nvme0n1)
    #[arg(value_name = "DEVICE", value_parser = super::drive_path)]
    drive: PathBuf,
    /// Write the pages to this directory, which must not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Overwrite serial number, unique names and vendor areas in the copy, to send it to others
    #[arg(long)]
    hide_serial: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let path = &args.drive;
    let mut drive = open(path)?;
    let identity = identify(drive.as_mut()).with_context(|| path.display().to_string())?;
    let sources = probe(drive.as_mut(), &identity);
    let text = if args.json {
        report::probed(&identity, &sources)? + "\n"
    } else {
        as_text(&identity, &sources) + &life(&wear::read(drive.as_mut(), &identity))
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let is_usable = sources.iter().any(|(_, read)| read.is_ok());
    Ok(ExitCode::from(if is_usable { 0 } else { exit::NO }))
}

fn as_text(identity: &Identity, sources: &[(Source, Result<Counters, Unusable>)]) -> String {
    let groups: Vec<String> = identity.group.all().iter().map(u16::to_string).collect();
    let or_none = |text: String| {
        if text.is_empty() {
            "none".to_owned()
        } else {
            text
        }
    };
    let yes = |is_so| if is_so { "yes" } else { "no" };
    let mut text = format!(
        "{} {}, firmware {}, vendor {:04x}h\nendurance group: {}; data placement (FDP): {}; \
         streams: {}\n",
        identity.model,
        identity.serial,
        identity.firmware,
        identity.vendor,
        or_none(groups.join(", ")),
        yes(identity.fdp),
        or_none(
            identity
                .streams
                .map_or_else(String::new, |streams| streams.to_string())
        ),
    );
    let used = preferred(sources);
    for (source, read) in sources {
        let line = match read {
            Ok(counters) => {
                let use_of_it = if used == Some(*source) {
                    "used"
                } else {
                    "usable"
                };
                format!(
                    "{use_of_it}: host {}, flash {} so far; counts by {} and {}",
                    number::bytes(counters.host),
                    number::bytes(counters.media),
                    number::round_bytes(source.steps().host),
                    number::round_bytes(source.steps().media),
                )
            }
            Err(why) => format!("unusable: {why}"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{source:9}  {line}");
    }
    text
}

fn life(read: &Result<Wear, Unusable>) -> String {
    match read {
        Ok(wear) => format!(
            "life: {} % used, {} % of the spare blocks left (the drive warns below {} %)\n",
            wear.used_percent, wear.spare_percent, wear.threshold_percent
        ),
        Err(why) => format!("life: unknown: {why}\n"),
    }
}

pub(super) fn record(args: &Record) -> anyhow::Result<ExitCode> {
    let mut drive = open(&args.drive)?;
    let privacy = if args.hide_serial {
        Privacy::Hidden
    } else {
        Privacy::Named
    };
    let recording = recorded::record(drive.as_mut(), &args.folder, privacy)?;
    let mut text = String::new();
    for (page, outcome) in recording {
        let _ = match outcome {
            Ok(length) => writeln!(text, "{}: {length} bytes", page.file_name()),
            Err(why) => writeln!(text, "{}: none, {why}", page.file_name()),
        };
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
