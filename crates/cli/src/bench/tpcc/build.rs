//! `saiga bench tpcc build`: creates the tables and loads the rows, one database after the other.
//!
//! Progress goes to stderr, the result to stdout.

use std::io::Write;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::ValueEnum;
use saiga_process::interrupt::Interrupt;
use saiga_tpcc::build::csv::Files;
use saiga_tpcc::build::{Build, BuildOutcome, BuildPart, BuildRequest, owner};
use saiga_tpcc::population::Population;
use saiga_tpcc::props::Csv;
use saiga_tpcc::target::Target;

use super::progress::Progress;
use super::target::{OwnSql, Targets};
use saiga_document::number::{counted, time};

/// Options of `saiga bench tpcc build`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    own_sql: OwnSql,
    /// Seed of all rows: the same seed gives the same rows (default: random)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Do one part of a build that several hosts share
    #[arg(long, value_enum, value_name = "PART")]
    only: Option<PartName>,
    /// Continue an interrupted build; no other process may be loading
    #[arg(long)]
    resume: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartName {
    /// Create the tables: on one host, first
    Tables,
    /// Load the rows: on any number of hosts, which divide the warehouses among them
    Load,
    /// Create indexes, keys and statistics: on one host, after all rows are loaded
    Finish,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let targets = args.targets.all()?;
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    for target in &targets {
        let built = build(target, args, &interrupt);
        let said = built.with_context(|| target.name())?;
        writeln!(std::io::stdout(), "{}: {said}", target.name())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds one database and returns a sentence about the result.
pub(super) fn build(target: &Target, args: &Args, interrupt: &Interrupt) -> anyhow::Result<String> {
    let part = args.part();
    match &target.props.csv {
        Some(csv) if matches!(part, BuildPart::Whole | BuildPart::Load) => {
            write_files(target, csv, args, interrupt)
        }
        Some(_) | None => build_database(target, args, interrupt),
    }
}

fn build_database(target: &Target, args: &Args, interrupt: &Interrupt) -> anyhow::Result<String> {
    let props = &target.props;
    if matches!(args.part(), BuildPart::Load | BuildPart::Finish) {
        target.must_exist()?;
    }
    let own_sql = args.own_sql.of(props)?;
    let (now, fresh_seed) = (now(), args.fresh_seed());
    let progress = Progress::new();
    let before = std::time::Instant::now();
    let build = Build {
        open: &|| target.open(),
        db: &props.db,
        own_sql: own_sql.as_deref(),
        request: BuildRequest {
            part: args.part(),
            warehouses: props.warehouses,
            range: props.load_range,
            seed: args.seed,
            resume: args.resume,
            by_files: props.csv.is_some(),
        },
        workers: props.load_workers,
        fresh_seed,
        now,
        owner: &owner::current(),
        stop: &|| interrupt.raised(),
        on_event: &|event| progress.on(event),
    };
    if !target.exists() {
        build.check_from_nothing()?;
    }
    let done = build.run();
    progress.finish();
    Ok(match done? {
        BuildOutcome::Complete(loaded) => {
            let warehouses = counted(loaded.warehouses, "warehouse");
            let seed = loaded
                .origin
                .map_or(String::new(), |origin| format!(", seed {}", origin.seed));
            format!("complete, {warehouses}{seed}; {}", time(before.elapsed()))
        }
        BuildOutcome::Tables(_) if props.csv.is_some() => {
            "the tables are created; next: load the files, then build --only finish".to_owned()
        }
        BuildOutcome::Tables(_) => {
            "the tables are created; next, on each host: build --only load".to_owned()
        }
        BuildOutcome::Rows(rows) if rows.is_whole() => {
            format!("{rows}; next, on one host: build --only finish")
        }
        BuildOutcome::Rows(rows) => format!("{rows}"),
    })
}

/// Writes the rows to CSV files instead of a database.
fn write_files(
    target: &Target,
    csv: &Csv,
    args: &Args,
    interrupt: &Interrupt,
) -> anyhow::Result<String> {
    let props = &target.props;
    let (first, last) = props.load_range.unwrap_or((1, props.warehouses));
    if (first, last) != (1, props.warehouses) && args.seed.is_none() {
        bail!(
            "warehouses {first} to {last} of {} are a part (loadidbegin, loadidend): each part \
             would use another random seed, and the parts would not match; give the same --seed \
             for all parts",
            props.warehouses
        );
    }
    let progress = Progress::new();
    let files = Files {
        csv,
        population: Population::new(args.fresh_seed(), props.warehouses, now()),
        range: (first, last),
        workers: props.load_workers,
        stop: &|| interrupt.raised(),
        on_event: &|event| progress.on(event),
    };
    let written = files.write();
    progress.finish();
    let names: Vec<String> = written?
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Ok(format!(
        "wrote {}; next: build --only tables, load the files, build --only finish",
        names.join(", ")
    ))
}

impl Args {
    /// Options of a build that creates everything that does not exist yet.
    pub(super) fn to_completion() -> Self {
        Self {
            resume: true,
            ..Self::default()
        }
    }

    fn part(&self) -> BuildPart {
        match self.only {
            None => BuildPart::Whole,
            Some(PartName::Tables) => BuildPart::Tables,
            Some(PartName::Load) => BuildPart::Load,
            Some(PartName::Finish) => BuildPart::Finish,
        }
    }

    fn fresh_seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| fastrand::u32(1..).into())
    }
}

/// The current time in seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}
