//! `saiga snapshot take|restore|verify|show`: saves data directories and restores them.
//!
//! The crate `saiga-snapshot` does the work; this module has the options, messages and progress.

mod progress;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use saiga_process::interrupt::Interrupt;
use saiga_snapshot::{Check, LinkedFiles, Options, Reflink, Snapshot, Unseen};
use serde_json::{Value, json};

use crate::exit;
use crate::print::{print_json, print_text};
use progress::Progress;
use saiga_document::number;
use saiga_document::table::Table;

/// Options of `saiga snapshot`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Saves the data directories of a stopped server
    Take(Take),
    /// Restores the data directories of a stopped server
    Restore(Restore),
    /// Checks a snapshot for damage
    Verify(Verify),
    /// Shows the contents of a snapshot, and whether its directories are ready for a server
    Show(Show),
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The server must be stopped. Links to directories and files outside are an error \
that names them. An interrupted take leaves no snapshot.\nExit status: 2 when no snapshot was \
taken."
)]
struct Take {
    /// The data directory, and every other directory that belongs to it (tablespaces, logs)
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,
    /// Write the snapshot to this directory, which must not exist
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Leave out linked files outside the directories; safe only for files that a run does not
    /// change, such as certificates
    #[arg(long)]
    leave_linked_files: bool,
    #[command(flatten)]
    copying: CopyOptions,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Writes the files that differ and removes those that are not in the snapshot, only in \
its directories. An interrupted restore marks its directories, and saiga refuses to use them until \
the same restore has completed.\nExit status: 2 when the directories were not restored.")]
struct Restore {
    /// The directory of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    snapshot: PathBuf,
    /// How file contents are checked, before and after
    #[arg(long, value_enum, default_value = "auto")]
    check: CheckName,
    /// Drop the page cache of this machine afterwards, so that the server reads from the disk
    /// (root)
    #[arg(long)]
    drop_caches: bool,
    #[command(flatten)]
    copying: CopyOptions,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 1 when something is damaged or differs.")]
struct Verify {
    /// The directory of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    snapshot: PathBuf,
    /// Compare sizes and times only
    #[arg(long)]
    quick: bool,
    /// Also compare the directories with the snapshot
    #[arg(long)]
    parts: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 1 when a restore of its directories is incomplete.")]
struct Show {
    /// The directory of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    snapshot: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options that take and restore share.
#[derive(Debug, clap::Args)]
struct CopyOptions {
    /// Copy files even if they could share extents with the snapshot
    #[arg(long)]
    no_reflink: bool,
    /// Assume that no server uses the directories; needed if this user cannot see all processes
    #[arg(long)]
    assume_stopped: bool,
    /// Number of threads that copy and hash [default: one for each CPU, at most 8]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CheckName {
    /// Quick where extents are shared, otherwise full
    Auto,
    /// Compare sizes and times
    Quick,
    /// Compare fingerprints of all bytes
    Full,
}

impl CopyOptions {
    fn options(&self, check: Check) -> Options {
        Options {
            check,
            reflink: if self.no_reflink {
                Reflink::Never
            } else {
                Reflink::Auto
            },
            unseen: if self.assume_stopped {
                Unseen::Accept
            } else {
                Unseen::Refuse
            },
            threads: self.threads,
            ..Options::default()
        }
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Take(args) => take(&args),
        Verb::Restore(args) => restore(&args),
        Verb::Verify(args) => verify(&args),
        Verb::Show(args) => show(&args),
    }
}

fn take(args: &Take) -> anyhow::Result<ExitCode> {
    let Take {
        parts,
        to,
        leave_linked_files,
        copying,
    } = args;
    let options = Options {
        linked_files: if *leave_linked_files {
            LinkedFiles::Leave
        } else {
            LinkedFiles::Refuse
        },
        ..copying.options(Check::Auto)
    };
    let snapshot = watched(|report| saiga_snapshot::take(parts, to, &options, report))??;
    for note in snapshot.notes() {
        exit::say(&format!("note: {note}"));
    }
    if copying.json {
        print_json(&as_json(&snapshot))?;
        return Ok(ExitCode::SUCCESS);
    }
    print_text(&format!(
        "{}: {} in {} files, fingerprint {}\n",
        snapshot.dir().display(),
        number::bytes(total(&snapshot).1),
        total(&snapshot).0,
        snapshot.fingerprint()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn restore(args: &Restore) -> anyhow::Result<ExitCode> {
    let snapshot = Snapshot::open(&args.snapshot)?;
    let options = args.copying.options(match args.check {
        CheckName::Auto => Check::Auto,
        CheckName::Quick => Check::Quick,
        CheckName::Full => Check::Full,
    });
    let restored = watched(|report| saiga_snapshot::restore(&snapshot, &options, report))??;
    if args.drop_caches {
        saiga_snapshot::drop_caches()
            .context("the directories are restored, but the page cache was not dropped")?;
    }
    if args.copying.json {
        print_json(&json!({
            "snapshot": snapshot.dir().display().to_string(),
            "fingerprint": snapshot.fingerprint(),
            "bytes": restored.bytes,
            "written_bytes": restored.written_bytes,
            "shared_bytes": restored.shared_bytes,
            "removed": restored.removed,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    print_text(&format!(
        "restored {}: {} written, {} shared with the snapshot, {} unchanged, {} names removed; \
         fingerprint {}\n",
        parts(&snapshot).join(" "),
        number::bytes(restored.written_bytes),
        number::bytes(restored.shared_bytes),
        number::bytes(restored.bytes - restored.written_bytes - restored.shared_bytes),
        restored.removed,
        snapshot.fingerprint()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn verify(args: &Verify) -> anyhow::Result<ExitCode> {
    let snapshot = Snapshot::open(&args.snapshot)?;
    let options = Options {
        check: if args.quick {
            Check::Quick
        } else {
            Check::Full
        },
        ..Options::default()
    };
    let damages = watched(|report| saiga_snapshot::verify(&snapshot, &options, report))??;
    let differences = if args.parts {
        watched(|report| saiga_snapshot::compare_parts(&snapshot, &options, report))??
    } else {
        Vec::new()
    };
    let is_well = damages.is_empty() && differences.is_empty();
    if args.json {
        let damages = damages.iter().map(|damage| json!(damage.to_string()));
        let differences = differences
            .iter()
            .map(|difference| json!(difference.to_string()));
        print_json(&json!({
            "snapshot": snapshot.dir().display().to_string(),
            "fingerprint": snapshot.fingerprint(),
            "damages": damages.collect::<Vec<_>>(),
            "differences": differences.collect::<Vec<_>>(),
        }))?;
    } else {
        let damages = damages.iter().map(|damage| format!("damaged: {damage}\n"));
        let differences = differences.iter().map(|it| format!("differs: {it}\n"));
        print_text(&damages.chain(differences).collect::<String>())?;
    }
    if !is_well {
        return Ok(ExitCode::from(exit::NO));
    }
    if !args.json {
        print_text(&format!("{} is undamaged\n", snapshot.dir().display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(args: &Show) -> anyhow::Result<ExitCode> {
    let snapshot = Snapshot::open(&args.snapshot)?;
    if args.json {
        print_json(&as_json(&snapshot))?;
    } else {
        print_text(&as_text(&snapshot))?;
    }
    match saiga_snapshot::check_ready(&snapshot.parts()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(not_ready) => {
            exit::say(&not_ready.to_string());
            Ok(ExitCode::from(exit::NO))
        }
    }
}

/// Runs `work` with a progress bar; the first SIGINT or SIGTERM stops it cleanly.
fn watched<T>(work: impl FnOnce(saiga_snapshot::Report<'_>) -> T) -> anyhow::Result<T> {
    static INTERRUPT: std::sync::OnceLock<Interrupt> = std::sync::OnceLock::new();
    if INTERRUPT.get().is_none() {
        let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
        let _ = INTERRUPT.set(interrupt);
    }
    let progress = Progress::new();
    let done = work(&|news| {
        progress.show(news);
        if INTERRUPT.get().is_some_and(Interrupt::raised) {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    });
    progress.finish();
    Ok(done)
}

fn parts(snapshot: &Snapshot) -> Vec<String> {
    let parts = snapshot.parts().into_iter();
    parts.map(|part| part.display().to_string()).collect()
}

fn total(snapshot: &Snapshot) -> (u64, u64) {
    let sizes = snapshot.sizes().into_iter();
    sizes.fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1))
}

fn as_text(snapshot: &Snapshot) -> String {
    let mut table = Table::new(["directory", "files", "bytes"]);
    for (part, (files, bytes)) in parts(snapshot).into_iter().zip(snapshot.sizes()) {
        table.row([part, files.to_string(), number::bytes(bytes)]);
    }
    let notes = snapshot
        .notes()
        .iter()
        .map(|note| format!("note: {note}\n"));
    format!(
        "taken {}\nfingerprint {}\n{table}{}",
        snapshot.taken(),
        snapshot.fingerprint(),
        notes.collect::<String>()
    )
}

fn as_json(snapshot: &Snapshot) -> Value {
    let rows = parts(snapshot).into_iter().zip(snapshot.sizes());
    let rows =
        rows.map(|(path, (files, bytes))| json!({"path": path, "files": files, "bytes": bytes}));
    json!({
        "snapshot": snapshot.dir().display().to_string(),
        "taken": snapshot.taken(),
        "fingerprint": snapshot.fingerprint(),
        "parts": rows.collect::<Vec<_>>(),
        "notes": snapshot.notes(),
    })
}
