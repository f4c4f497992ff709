//! `saiga streams simulate`: write amplification of synthetic writes, or of a trace under rules.
//!
//! The simulator is the crate `saiga-ftl`; this module has the options and the output.

mod format;
mod json;
pub(super) mod outcome;
mod synthetic;
mod trace;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{ArgGroup, ValueEnum};
use saiga_ftl::replay::Options;
use saiga_ftl::steady::{self, Length};
use saiga_ftl::{Counting, GcFrontier, Isolation, Policy, Quota};
use saiga_whatif::By;
use serde_json::Value;

use saiga_process::available_memory;

use super::device_options::{DeviceOptions, TRACE, TraceOptions};

/// Options that exclude the options of a trace. (clap waives `requires` for an option whose group
/// has another member, so the options of a trace would be ignored silently.)
const SYNTHETIC: [&str; 3] = ["uniform", "hot_cold", "sequential"];

/// Options of `saiga streams simulate`.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("workload").required(true),
    after_help = "Models pages, reclaim units and garbage collection, but not time, wear or caches \
(docs/ftl.md). The same options give the same figures.\n\
SET is none, astream (its documentation's rules for MySQL), mysql, mariadb, postgres, opengauss, \
redis, rocksdb, suggested (found from the trace), or a file: rules of the labeller, a plain \
assignment, or astream's grammar (a file with the name of a set is ./mysql). Default of --rules: \
the set of the database, if file names in the trace identify it, and suggested.\n\
Exit status: 2 when there is nothing to simulate."
)]
pub(crate) struct Args {
    /// Random writes with the same probability for every page
    #[arg(long, group = "workload", conflicts_with_all = TRACE)]
    uniform: bool,
    /// Random writes: the share F of the writes goes to the share R of the pages, such as 0.1/0.9
    #[arg(long, group = "workload", conflicts_with_all = TRACE, value_name = "R/F", value_parser = hot_cold)]
    hot_cold: Option<HotCold>,
    /// Writes from the first page to the last, repeatedly
    #[arg(long, group = "workload", conflicts_with_all = TRACE)]
    sequential: bool,
    /// The writes of a recorded trace, repeated
    #[arg(long, group = "workload", value_name = "FILE")]
    trace: Option<PathBuf>,
    /// With --trace: compare these rule sets with a single stream
    #[arg(long, value_name = "SET", num_args = 1.., conflicts_with_all = SYNTHETIC)]
    rules: Vec<String>,
    /// With --trace: how streams are told apart; several values become columns of the table
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["stream", "hint"])]
    #[arg(conflicts_with_all = SYNTHETIC)]
    by: Vec<ByName>,
    /// With --trace: also replay the trace without the writes of these files, on the same device:
    /// the stream of a rule, such as doublewrite, or a glob
    #[arg(long, value_name = "KIND", num_args = 1.., conflicts_with_all = SYNTHETIC)]
    without: Vec<String>,
    /// With --trace: write a page with plots to this file
    #[arg(long, value_name = "FILE", conflicts_with_all = SYNTHETIC)]
    report: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Logical pages of the device
    #[arg(long, value_name = "N", default_value_t = 1 << 20, conflicts_with = "trace")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pages: u32,
    /// Number of streams: hot and cold data with 2, otherwise equal parts of the pages
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "trace")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    streams: u8,
    /// Whether streams stay apart when garbage collection moves their pages
    #[arg(
        long,
        value_enum,
        default_value = "initially",
        conflicts_with = "trace"
    )]
    isolation: IsolationName,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    replay: TraceOptions,
}

/// The device and the length of the simulation.
#[derive(Debug, clap::Args)]
struct DeviceArgs {
    #[command(flatten)]
    common: DeviceOptions,
    /// Share of the logical pages that hold data (at any time, with --trace); with --trace several
    /// values, such as 0.7,0.9 [default: 1, with --trace 0.9]
    #[arg(long, value_name = "SHARE", value_delimiter = ',')]
    utilisation: Vec<f64>,
    /// Pages of a reclaim unit; with --trace several values, such as 128,1024 [default: 256, with
    /// --trace the size that gives 2048 units]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    ru_pages: Vec<u32>,
    /// How the spare space is shared by streams; the stream that exceeds its share most is
    /// collected
    #[arg(long, value_enum, default_value = "none")]
    quota: QuotaName,
    /// Whether moved pages get open units of their own or share those of host writes
    #[arg(long, value_enum, default_value = "own")]
    gc: GcName,
    /// Whether open and reserved units are counted in --op [default: closed, with --trace whole]
    #[arg(long, value_enum)]
    count: Option<CountName>,
    /// Host writes before the measurement, in multiples of the device size
    #[arg(long, value_name = "N", default_value_t = steady::WARM_UP)]
    #[arg(value_parser = clap::value_parser!(u32).range(i64::from(steady::WARM_UP)..=1000))]
    warm_up: u32,
    /// Host writes that are measured, in multiples of the device size
    #[arg(long, value_name = "N", default_value_t = steady::MEASURED)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    measure: u32,
}

/// The hot shares of the pages and of the writes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct HotCold {
    pages: f64,
    writes: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IsolationName {
    /// Until their pages are moved
    Initially,
    /// Always
    Persistently,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GcName {
    /// Units of their own
    Own,
    /// The units of host writes
    Shared,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum QuotaName {
    /// No shares
    None,
    /// Equal shares
    Even,
    /// In proportion to the pages of each stream
    Data,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CountName {
    /// No: they are additional space, as in theory
    Closed,
    /// Yes, as on a drive
    Whole,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ByName {
    /// By the stream of the matching rule, or by its hint if it has none: FDP namespaces
    Stream,
    /// By hint only, as `saiga streams run` sets it
    Hint,
    /// By the classes of F2FS: short, extreme, and everything else
    F2fs,
}

impl Args {
    /// The values of --by without duplicates.
    fn by(&self) -> Vec<By> {
        let mut all = Vec::new();
        for by in self.by.iter().map(|name| name.by()) {
            if !all.contains(&by) {
                all.push(by);
            }
        }
        all
    }
}

impl ByName {
    fn by(self) -> By {
        match self {
            Self::Stream => By::Stream,
            Self::Hint => By::Hint,
            Self::F2fs => By::F2fs,
        }
    }
}

impl DeviceArgs {
    fn one_policy(&self) -> anyhow::Result<Policy> {
        one("--policy", &self.common.policy)?.context("--policy is missing")
    }

    fn one_op(&self) -> anyhow::Result<f64> {
        one("--op", &self.common.op)?.context("--op is missing")
    }

    fn one_unit_size(&self) -> anyhow::Result<Option<u32>> {
        one("--ru-pages", &self.ru_pages)
    }

    fn one_utilisation(&self) -> anyhow::Result<Option<f64>> {
        one("--utilisation", &self.utilisation)
    }

    /// The device of a trace, without the values that may be given several times.
    fn options(&self, handles: usize) -> Options {
        Options {
            counting: self.counting(Counting::WholeDevice),
            quota: self.quota(),
            gc: self.gc(),
            handles,
            length: self.length(),
            seed: self.common.seed,
            memory_bytes: available_memory::available_bytes(),
            ..Options::default()
        }
    }

    fn length(&self) -> Length {
        Length {
            warm_up: self.warm_up,
            measured: self.measure,
        }
    }

    fn gc(&self) -> GcFrontier {
        match self.gc {
            GcName::Own => GcFrontier::Own,
            GcName::Shared => GcFrontier::WithHost,
        }
    }

    fn quota(&self) -> Quota {
        match self.quota {
            QuotaName::None => Quota::None,
            QuotaName::Even => Quota::Even,
            QuotaName::Data => Quota::Data,
        }
    }

    fn counting(&self, default: Counting) -> Counting {
        match self.count {
            None => default,
            Some(CountName::Closed) => Counting::ClosedUnits,
            Some(CountName::Whole) => Counting::WholeDevice,
        }
    }
}

impl IsolationName {
    fn isolation(self) -> Isolation {
        match self {
            Self::Initially => Isolation::Initially,
            Self::Persistently => Isolation::Persistently,
        }
    }
}

/// The single value of an option that takes several values only with --trace.
fn one<T: Copy>(name: &str, values: &[T]) -> anyhow::Result<Option<T>> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(*value)),
        _ => anyhow::bail!("{name} takes several values only with --trace; give one"),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (text, json) = match &args.trace {
        Some(path) => trace::simulate(path, args)?,
        None => synthetic::simulate(args)?,
    };
    print(args, &text, &json)?;
    Ok(ExitCode::SUCCESS)
}

fn print(args: &Args, text: &str, json: &Value) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(json)?)?;
    } else {
        stdout.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn hot_cold(text: &str) -> Result<HotCold, String> {
    let share = |text: &str| {
        text.parse()
            .ok()
            .filter(|share| *share > 0.0 && *share < 1.0)
    };
    let shares = text
        .split_once('/')
        .and_then(|(pages, writes)| Some((share(pages)?, share(writes)?)));
    let (pages, writes) = shares.ok_or("give two shares between 0 and 1, such as 0.1/0.9")?;
    Ok(HotCold { pages, writes })
}
