//! `saiga snapshot take|restore|verify|show`: data directories put away and brought back.
//!
//! What is done and what is refused is the library's affair; here are its words and its progress.

mod progress;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use saiga_experiment::interrupt::Interrupt;
use saiga_snapshot::{Check, LinkedFiles, Options, Reflink, Snapshot, Unseen};
use serde_json::{Value, json};

use crate::exit;
use crate::table::Table;
use progress::Progress;
use saiga_document::number;

/// Options of `saiga snapshot`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Puts the directories of a stopped server away
    Take(Take),
    /// Makes the directories of a stopped server what they were
    Restore(Restore),
    /// Reads a snapshot back
    Verify(Verify),
    /// Shows what a snapshot holds, and whether its directories are ready for a server
    Show(Show),
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The server must be stopped; links to directories and files outside are an error that names them. An \
interrupted take leaves no snapshot.\nExit status: 2 when there is no snapshot."
)]
struct Take {
    /// The data directory, and every directory elsewhere that belongs to it (tablespaces, logs)
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,
    /// Put the snapshot into this directory, which does not exist yet
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Leave out files elsewhere to which links lead: certificates, and nothing that a run changes
    #[arg(long)]
    leave_linked_files: bool,
    #[command(flatten)]
    way: Way,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writes what differs and removes what is not in the snapshot, in its directories only. A restore \
that is interrupted marks them: nothing else is done with them until the same restore has been run again.\nExit \
status: 2 when they were not restored."
)]
struct Restore {
    /// The directory of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    snapshot: PathBuf,
    /// How bytes are checked, before and after
    #[arg(long, value_enum, default_value = "auto")]
    check: CheckName,
    /// Then drop the page cache of this machine, so that the server reads from the disk (root)
    #[arg(long)]
    drop_caches: bool,
    #[command(flatten)]
    way: Way,
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
    /// Compare its directories, too, with what they should be
    #[arg(long)]
    parts: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 1 when a restore of its directories is unfinished.")]
struct Show {
    /// The directory of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    snapshot: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What take and restore have in common.
#[derive(Debug, clap::Args)]
struct Way {
    /// Copy files also where they could share their extents with the snapshot
    #[arg(long)]
    no_reflink: bool,
    /// I know that no server uses the directories; needed where this user may not see it
    #[arg(long)]
    assume_stopped: bool,
    /// Copy and hash with this many threads [default: one for each CPU, 8 at most]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CheckName {
    /// Quick where extents are shared, else full
    Auto,
    /// Sizes and times
    Quick,
    /// Fingerprints of all bytes
    Full,
}

impl Way {
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

/// Does what is asked.
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
        way,
    } = args;
    let options = Options {
        linked_files: if *leave_linked_files {
            LinkedFiles::Leave
        } else {
            LinkedFiles::Refuse
        },
        ..way.options(Check::Auto)
    };
    let snapshot = watched(|report| saiga_snapshot::take(parts, to, &options, report))??;
    for note in snapshot.notes() {
        exit::say(&format!("note: {note}"));
    }
    if way.json {
        return print(&as_json(&snapshot));
    }
    tell(&format!(
        "{}: {} in {} files, fingerprint {}\n",
        snapshot.dir().display(),
        number::bytes(total(&snapshot).1),
        total(&snapshot).0,
        snapshot.fingerprint()
    ))
}

fn restore(args: &Restore) -> anyhow::Result<ExitCode> {
    let snapshot = Snapshot::open(&args.snapshot)?;
    let options = args.way.options(match args.check {
        CheckName::Auto => Check::Auto,
        CheckName::Quick => Check::Quick,
        CheckName::Full => Check::Full,
    });
    let restored = watched(|report| saiga_snapshot::restore(&snapshot, &options, report))??;
    if args.drop_caches {
        saiga_snapshot::drop_caches()
            .context("the directories are restored, but the page cache is still there")?;
    }
    if args.way.json {
        return print(&json!({
            "snapshot": snapshot.dir().display().to_string(),
            "fingerprint": snapshot.fingerprint(),
            "bytes": restored.bytes,
            "written_bytes": restored.written_bytes,
            "shared_bytes": restored.shared_bytes,
            "removed": restored.removed,
        }));
    }
    tell(&format!(
        "restored {}: {} written, {} shared with the snapshot, {} as they were, {} names removed; fingerprint {}\n",
        parts(&snapshot).join(" "),
        number::bytes(restored.written_bytes),
        number::bytes(restored.shared_bytes),
        number::bytes(restored.bytes - restored.written_bytes - restored.shared_bytes),
        restored.removed,
        snapshot.fingerprint()
    ))
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
        print(&json!({
            "snapshot": snapshot.dir().display().to_string(),
            "fingerprint": snapshot.fingerprint(),
            "damages": damages.collect::<Vec<_>>(),
            "differences": differences.collect::<Vec<_>>(),
        }))?;
    } else {
        let damages = damages.iter().map(|damage| format!("damaged: {damage}\n"));
        let differences = differences.iter().map(|it| format!("differs: {it}\n"));
        tell(&damages.chain(differences).collect::<String>())?;
    }
    if !is_well {
        return Ok(ExitCode::from(exit::NO));
    }
    if !args.json {
        tell(&format!("{} is whole\n", snapshot.dir().display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(args: &Show) -> anyhow::Result<ExitCode> {
    let snapshot = Snapshot::open(&args.snapshot)?;
    if args.json {
        print(&as_json(&snapshot))?;
    } else {
        tell(&as_text(&snapshot))?;
    }
    match saiga_snapshot::check_ready(&snapshot.parts()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(not_ready) => {
            exit::say(&not_ready.to_string());
            Ok(ExitCode::from(exit::NO))
        }
    }
}

/// Does `work` under a progress bar; the first SIGINT or SIGTERM ends it in good order.
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

fn print(value: &Value) -> anyhow::Result<ExitCode> {
    tell(&(serde_json::to_string_pretty(value)? + "\n"))
}

fn tell(text: &str) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
