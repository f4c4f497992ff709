//! `saiga gateway capture`: the frames of a running gateway, in a file of pcapng.
//!
//! This process creates the file and gives it to the gateway, which writes it, with what its stack
//! did as the comment of each received frame. When this process ends, however it ends, the capture
//! ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use anyhow::{Context as _, bail};
use saiga_document::number;
use saiga_gateway::control::{Answer, Captured, Client, End, Question};
use saiga_netdev::capture::create;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::target::Target;
use crate::exit;
use crate::print::print_text;

/// Options of `saiga gateway capture`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Captures until Ctrl-C, until the file has the size of `capture.file_size` in the \
settings, or until the gateway ends. The file has mode 0600. FILTER is an \
expression of pcap-filter(7), such as tcp port 6379 and host 10.0.0.7.\nExit status: 2 when no \
gateway answers, or the file cannot be written."
)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// The new file, in a directory that not all users may write to
    #[arg(short = 'w', long, value_name = "FILE")]
    write: PathBuf,
    /// Which frames to capture; all if there is no filter
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = args.target.socket()?;
    let shown = args.write.display().to_string();
    // Before the capture: a signal must end it in order.
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    let question = Question::Capture {
        filter: args.filter.join(" "),
    };
    let mut client = Client::ask(&socket, &question)?;
    expect(&mut client, &Answer::File)?;
    begin(&mut client, &args.write)?;
    let ender = client.ender().context("cannot wait for signals")?;
    exit::say(&format!("capturing to {shown} until Ctrl-C"));
    thread::spawn(move || {
        let mut signals = signals.forever();
        if signals.next().is_some() {
            ender.end();
        }
        // The gateway may not answer.
        if signals.next().is_some() {
            std::process::exit(130);
        }
    });
    let last = client.answer();
    let last = last.with_context(|| format!("{shown} has what was captured until now"))?;
    let Answer::Captured(captured) = last else {
        bail!("the gateway has given another answer");
    };
    print_text(&described(&shown, &captured)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Creates the file and begins the capture. If that fails, there is no file.
fn begin(client: &mut Client, path: &Path) -> anyhow::Result<()> {
    let file = create(path)?;
    let begun = client.give(&file).map_err(anyhow::Error::from);
    let begun = begun.and_then(|()| expect(client, &Answer::Capturing));
    if begun.is_err() {
        // The first error counts.
        let _removed = fs::remove_file(path);
    }
    begun
}

/// The next answer must be this one.
fn expect(client: &mut Client, expected: &Answer) -> anyhow::Result<()> {
    if client.answer()? != *expected {
        bail!("the gateway has given another answer");
    }
    Ok(())
}

/// What was captured.
///
/// # Errors
/// If the file could not be written.
fn described(file: &str, captured: &Captured) -> anyhow::Result<String> {
    let Captured { frames, bytes, end } = captured;
    let frames = number::counted(*frames, "frame");
    let what = format!("{file}: {frames}, {}", number::bytes(*bytes));
    let why = match end {
        End::Client => "",
        End::FileSize => "; the file has reached `capture.file_size`",
        End::Gateway => "; the gateway has ended",
        End::Failed(reason) => bail!("{what}; the file cannot be written: {reason}"),
    };
    Ok(format!("{what}{why}\n"))
}
