//! `saiga waf report`: the samples as text, JSON, CSV, Prometheus metrics or HTML.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::bail;
use saiga_document::{html, text};
use saiga_waf::series::{Series, series};
use saiga_waf::store::Store;
use saiga_waf::{Sample, moment, report};

use crate::outfile;

/// Options of `saiga waf report`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "TIME is 2026-11-22T07:00:00Z, 2026-11-22 07:00:00 (both in UTC), or an age: 12h, \
7days.\nExit status: 2 when there is no sample to report."
)]
pub(super) struct Args {
    /// Read samples from this file [default: /var/lib/saiga/waf.db for root, else
    /// ~/.local/state/saiga/waf.db]
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Only drives with this path, serial number or model
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Only samples from this time on
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,
    /// Only samples up to this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,
    /// List at most this many intervals of each drive, the newest ones
    #[arg(long, value_name = "N", default_value_t = 24)]
    rows: usize,
    #[command(flatten)]
    format: Format,
    /// Write a page with a plot to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write lines like those in calculate_wa.sh's result_WA.txt to this file: flash MiB, host MiB,
    /// factor
    #[arg(long, value_name = "FILE")]
    compat: Option<PathBuf>,
}

/// Output formats other than text.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct Format {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the intervals as CSV
    #[arg(long)]
    csv: bool,
    /// Print the newest state as Prometheus metrics, for the textfile collector of the node
    /// exporter
    #[arg(long)]
    prometheus: bool,
}

/// Parses an instant or an age into milliseconds since 1970.
fn time(text: &str) -> Result<i64, String> {
    let time = humantime::parse_rfc3339_weak(text).ok().or_else(|| {
        let ago = humantime::parse_duration(text).ok()?;
        SystemTime::now().checked_sub(ago)
    });
    time.map(moment::unix_ms)
        .ok_or_else(|| "give a time such as 2026-11-22T07:00:00Z, or an age such as 12h".to_owned())
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let file = super::sample_file(args.file.as_ref())?;
    let samples = Store::read(&file)?.all()?;
    let all = series(&chosen(args, &file, samples)?);
    let files = [
        (
            &args.html,
            args.html
                .as_ref()
                .map(|_| html::render(&report::document(&all, args.rows))),
        ),
        (
            &args.compat,
            args.compat.as_ref().map(|_| report::compat(&all)),
        ),
    ];
    let mut is_written = false;
    for (path, content) in files {
        if let (Some(path), Some(content)) = (path, content) {
            outfile::write(path, &content)?;
            is_written = true;
        }
    }
    let Format {
        json,
        csv,
        prometheus,
    } = args.format;
    let printed = match (json, csv, prometheus) {
        (true, _, _) => report::json(&all)? + "\n",
        (_, true, _) => report::csv(&all)?,
        (_, _, true) => report::prometheus(&all),
        _ if is_written => String::new(),
        _ => as_text(&all, args.rows),
    };
    std::io::stdout().write_all(printed.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The samples that the options select; at least one.
fn chosen(args: &Args, file: &Path, samples: Vec<Sample>) -> anyhow::Result<Vec<Sample>> {
    if samples.is_empty() {
        bail!("{} has no samples yet", file.display());
    }
    let mut known: Vec<String> = samples
        .iter()
        .map(|sample| sample.drive.to_string())
        .collect();
    known.sort_unstable();
    known.dedup();
    let mut samples = samples;
    if let Some(name) = &args.device {
        let path = super::drive_path(name)?.display().to_string();
        samples.retain(|sample| {
            let Sample {
                drive, path: own, ..
            } = sample;
            [own, &drive.serial, &drive.model].contains(&name) || *own == path
        });
    }
    if samples.is_empty() {
        let name = args.device.as_deref().unwrap_or_default();
        bail!(
            "{} has no samples of {name}; it has samples of {}",
            file.display(),
            known.join(", ")
        );
    }
    let (first, last) = (
        args.since.unwrap_or(i64::MIN),
        args.until.unwrap_or(i64::MAX),
    );
    samples.retain(|sample| (first..=last).contains(&sample.taken.unix_ms));
    if samples.is_empty() {
        bail!(
            "{} has no samples between --since and --until",
            file.display()
        );
    }
    Ok(samples)
}

fn as_text(all: &[Series], rows: usize) -> String {
    let document = report::document(all, rows);
    text::render(&document, text::Style::plain())
}
