//! `saiga streams record`: what a database writes, block by block, while a program runs or another one does.

mod progress;
mod summary;
mod target;
mod volume;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use saiga_blocktrace::Via;
use saiga_experiment::interrupt::Interrupt;
use saiga_record::{Options, Recorder};

use crate::exit;
use progress::Progress;
use target::{End, Target};
use volume::Ground;

/// Between two looks for news.
const PAUSE: Duration = Duration::from_millis(50);

/// Options of `saiga streams record`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "saiga streams record --out FILE [OPTIONS] DIR... -- CMD [ARGS]...\n       \
                      saiga streams record --out FILE [OPTIONS] [DIR]... --pid PID [--for TIME]\n       \
                      saiga streams record --out FILE [OPTIONS] DIR... --for TIME",
    after_help = "Needs root. What is recorded is what reaches the block layer: every write and discard on the file systems of the \
directories, each with the file that it belongs to, in the format of docs/ftl.md. Ctrl-C and SIGTERM end the recording and \
keep the trace.\nExit status: 1 when CMD failed or events were lost; the trace is kept, and what happened is said."
)]
pub(super) struct Args {
    /// Data directories; what links in them lead to is recorded, too
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// The trace to write; must not exist
    #[arg(long, value_name = "FILE", required = true)]
    out: PathBuf,
    /// Records while this program runs
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pid", "time"])]
    command: Vec<String>,
    /// Records until this process ends; without DIR, its working directory
    #[arg(long, value_name = "PID", conflicts_with = "loop_size")]
    pid: Option<u32>,
    /// Records for so long
    #[arg(long = "for", id = "time", value_name = "TIME", value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Records on a file system of this size that is made for it in a file, mounted at DIR, and removed in the end
    #[arg(long = "loop", id = "loop_size", value_name = "SIZE", value_parser = volume::size)]
    loop_size: Option<u64>,
    /// With --loop: which file system
    #[arg(long, value_enum, default_value = "xfs", requires = "loop_size")]
    fs: volume::Kind,
    /// With --loop: where the file lies
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/tmp",
        requires = "loop_size"
    )]
    image_dir: PathBuf,
    /// With --loop: runs this before the recording, in DIR, to load the data
    #[arg(long, value_name = "SHELL", requires = "loop_size")]
    prepare: Option<String>,
    /// With --loop: runs this after the recording, in DIR
    #[arg(long, value_name = "SHELL", requires = "loop_size")]
    after: Option<String>,
    /// Take events by this way only
    #[arg(long, value_enum)]
    via: Option<ViaName>,
    /// Room in the kernel for events that wait: a power of two
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = volume::size)]
    buffer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ViaName {
    /// A program in the kernel
    Bpf,
    /// Lines of text, where BPF is refused
    Tracefs,
}

/// Records until the end.
pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let target = Target::of(&args.command, args.pid, args.time)?;
    let dirs = target.directories(&args.dirs)?;
    let buffer_bytes = u32::try_from(args.buffer)
        .ok()
        .filter(|bytes| bytes.is_power_of_two() && *bytes >= 4096);
    let options = Options {
        dirs,
        out: std::path::absolute(&args.out)?,
        buffer_bytes: buffer_bytes.context("--buffer: use a power of two from 4KiB to 2GiB")?,
        via: args.via.map(|via| match via {
            ViaName::Bpf => Via::Bpf,
            ViaName::Tracefs => Via::Tracefs,
        }),
    };
    let interrupt = Interrupt::on_signals_for_good().context("cannot watch for Ctrl-C")?;
    let ground = match args.loop_size {
        None => None,
        Some(bytes) => Some(Ground::make(&args, bytes, &options, &interrupt)?),
    };
    // Dropped before the ground, which it stands on, whatever happens.
    let mut is_well = record(&options, &target, &interrupt)?;
    if let Some(ground) = ground {
        is_well &= ground.leave(args.after.as_deref(), &interrupt)?;
    }
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}

/// The recording itself; whether all went well.
fn record(options: &Options, target: &Target, interrupt: &Interrupt) -> anyhow::Result<bool> {
    let mut recorder = Recorder::begin(options)?;
    for ground in recorder.grounds() {
        exit::say(&format!(
            "recording writes to {} ({})",
            ground.name, ground.kind
        ));
    }
    if let Some(why) = recorder.why_not_bpf() {
        exit::say(&format!(
            "warning: by tracefs, to the microsecond; BPF cannot be used: {why}"
        ));
    }
    let mut progress = Progress::new();
    let mut running = target.start()?;
    let end = loop {
        recorder.step()?;
        for remark in recorder.remarks() {
            progress.say(&format!("warning: {remark}"));
        }
        progress.show(&mut recorder)?;
        if let Some(end) = running.wait(PAUSE, interrupt)? {
            break end;
        }
    };
    drop(progress);
    running.end()?;
    let directories = recorder.directories();
    let (tally, remarks) = recorder.finish()?;
    for remark in remarks {
        exit::say(&format!("warning: {remark}"));
    }
    super::tell(&summary::text(&options.out, &directories, &tally))?;
    for warning in summary::warnings(&tally) {
        exit::say(&warning);
    }
    let is_complete = tally.lost == 0;
    Ok(match end {
        End::Wanted => is_complete,
        End::Failed(how) => {
            exit::say(&format!(
                "{how}; the trace is kept, and may not be what was wanted"
            ));
            false
        }
    })
}
