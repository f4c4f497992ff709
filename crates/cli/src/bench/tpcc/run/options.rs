//! The options of a run, and the setup that follows from them and from a props file.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use clap::{Parser as _, ValueEnum};
use fastrand::Rng;
use saiga_tpcc::check::Scope;
use saiga_tpcc::driver::assignment::seed_of;
use saiga_tpcc::driver::{Arrivals, DeliveryMode, Length, Pace, RampUp, Setup, Share};
use saiga_tpcc::props::{self, Props};
use saiga_tpcc::spec::nurand::Constants;

use crate::length::{duration, length};

/// Default number of sessions for queued deliveries, as in BenchmarkSQL 6.
const DELIVERY_WORKERS: u32 = 12;
const MAX_RETRIES: u16 = 10;
const DRAIN: Duration = Duration::from_secs(30);
const GIVE_UP: Duration = Duration::from_secs(60);

/// Options in addition to the props file.
#[derive(Debug, Clone, Default, clap::Args)]
pub(in crate::bench::tpcc) struct Options {
    /// Measure for this time, such as 90s or 2h (default: runMins)
    #[arg(long = "for", value_name = "TIME", value_parser = length)]
    pub(super) length: Option<Duration>,
    /// Run for this time before measuring; auto: until the throughput is steady
    #[arg(long, value_name = "TIME|auto", value_parser = ramp_up)]
    pub(super) ramp_up: Option<RampUpOption>,
    /// Use the keying and think times of TPC-C 5.2.5
    #[arg(long)]
    pub(super) think: bool,
    /// Multiply the keying times by N
    #[arg(long, value_name = "N", value_parser = factor)]
    pub(super) keying_multiplier: Option<f64>,
    /// Multiply the think times by N
    #[arg(long, value_name = "N", value_parser = factor)]
    pub(super) thinking_multiplier: Option<f64>,
    /// Open loop: start this many transactions by a schedule, such as 60000/min; latencies count
    /// from the scheduled start
    #[arg(long, value_name = "N/min", value_parser = rate, conflicts_with_all = ["think", "keying_multiplier", "thinking_multiplier"])]
    pub(super) rate: Option<f64>,
    /// Distribution of the starts of an open loop
    #[arg(long, value_enum, requires = "rate")]
    pub(super) arrivals: Option<ArrivalsName>,
    /// Execution of deliveries: by the terminal, as in BenchmarkSQL 5, or from a queue (TPC-C
    /// 2.7.2) [default: inline]
    #[arg(long, value_enum)]
    pub(super) delivery: Option<DeliveryName>,
    /// Number of connections for queued deliveries [default: 12, at most the number of terminals]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) delivery_workers: Option<u32>,
    /// Seed of all inputs: the same seed gives the same inputs (default: random)
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Maximum number of repetitions of a transaction after a deadlock or another conflict
    /// [default: 10]
    #[arg(long, value_name = "N")]
    pub(super) max_retries: Option<u16>,
    /// At the end, wait at most this long for unfinished and queued transactions [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) drain: Option<Duration>,
    /// Stop if the server is gone or answers no request for this time [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) give_up: Option<Duration>,
    /// Run one part of the terminals, such as 2/3; writes worker-2.json to --out, for `merge`
    #[arg(long, value_name = "I/N", value_parser = share, requires = "out", requires = "seed", requires = "start_at")]
    pub(super) worker: Option<Share>,
    /// Start at this time: RFC 3339 in UTC, or @ and seconds since 1970
    #[arg(long, value_name = "WHEN", value_parser = instant)]
    pub(super) start_at: Option<SystemTime>,
    /// New directory for the results, with the page report.html; with several databases, the names
    /// end in their numbers (default: resultDirectory)
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Also write data/result.csv, with a row for each transaction
    #[arg(long)]
    pub(super) result_csv: bool,
    /// Checks of the tables before and after the run [default: all]
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "no_check")]
    pub(super) check: Option<CheckName>,
    /// Same as --check none
    #[arg(long)]
    pub(super) no_check: bool,
    /// Show a progress line on a terminal instead of the dashboard
    #[arg(long)]
    pub(super) no_dashboard: bool,
    /// Keep the figures of the last second in FILE, for the dashboard of another process
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) load_file: Option<PathBuf>,
    /// PID of the server, if the calling process knows it
    #[arg(long, value_name = "PID", hide = true)]
    pub(super) server_pid: Vec<u32>,
    /// A disk or network interface to sample, in addition to those of the props file
    #[arg(long, value_name = "NAME", hide = true)]
    pub(super) device: Vec<String>,
    /// Print the record as JSON, one line for each database
    #[arg(long)]
    pub(super) json: bool,
}

/// Options that are read from a props file.
#[derive(Debug, clap::Parser)]
#[command(disable_help_flag = true)]
struct FileOptions {
    #[command(flatten)]
    options: Options,
}

/// The phase before the measured interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RampUpOption {
    Lasting(Duration),
    Auto,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ArrivalsName {
    /// Random, as from many independent users
    Poisson,
    /// At equal intervals
    Fixed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DeliveryName {
    /// By the terminal, which waits
    Inline,
    /// By separate connections
    Queue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckName {
    /// All rules of `check`: reads all tables completely
    All,
    /// The twelve conditions of 3.3.2: all tables except ITEM and STOCK
    Conditions,
    /// Conditions 1 to 7 and 12 of ten warehouses, by key
    Sample,
    /// No checks
    None,
}

impl Options {
    /// Options of the run when all steps are run together.
    pub(in crate::bench::tpcc) fn of_whole_job(length: Duration) -> Self {
        Self {
            length: Some(length),
            delivery: Some(DeliveryName::Queue),
            no_check: true,
            ..Self::default()
        }
    }

    /// These options, with those of the props file as defaults.
    pub(super) fn with_defaults_of(&self, props: &Props) -> anyhow::Result<Self> {
        let given = std::iter::once("run").chain(props.options.iter().map(String::as_str));
        match FileOptions::try_parse_from(given) {
            Ok(FileOptions { options }) => Ok(self.clone().over(options)),
            Err(error) => {
                let said = error.render().to_string();
                let first = said.lines().next().unwrap_or_default();
                let first = first.strip_prefix("error: ").unwrap_or(first);
                bail!("{}: {first}", props.path.display())
            }
        }
    }

    fn over(self, file: Self) -> Self {
        // Think times and a rate exclude each other: one on the command line replaces the other in
        // the file.
        let has_pauses =
            self.think || self.keying_multiplier.is_some() || self.thinking_multiplier.is_some();
        let (has_rate, file_rate) = (self.rate.is_some(), file.rate.filter(|_| !has_pauses));
        let pause = |own: Option<f64>, file: Option<f64>| own.or(file.filter(|_| !has_rate));
        Self {
            length: self.length.or(file.length),
            ramp_up: self.ramp_up.or(file.ramp_up),
            think: self.think || (file.think && !has_rate),
            keying_multiplier: pause(self.keying_multiplier, file.keying_multiplier),
            thinking_multiplier: pause(self.thinking_multiplier, file.thinking_multiplier),
            rate: self.rate.or(file_rate),
            arrivals: self.arrivals.or(file.arrivals),
            delivery: self.delivery.or(file.delivery),
            delivery_workers: self.delivery_workers.or(file.delivery_workers),
            seed: self.seed.or(file.seed),
            max_retries: self.max_retries.or(file.max_retries),
            drain: self.drain.or(file.drain),
            give_up: self.give_up.or(file.give_up),
            worker: self.worker.or(file.worker),
            start_at: self.start_at.or(file.start_at),
            out: self.out.or(file.out),
            result_csv: self.result_csv || file.result_csv,
            no_check: self.no_check || (file.no_check && self.check.is_none()),
            check: self.check.or(file.check),
            json: self.json || file.json,
            no_dashboard: self.no_dashboard || file.no_dashboard,
            load_file: self.load_file.or(file.load_file),
            server_pid: [self.server_pid, file.server_pid].concat(),
            device: [self.device, file.device].concat(),
        }
    }

    /// The checks of the tables, if any. A part of a run (--worker) checks nothing.
    pub(super) fn checks(&self) -> Option<Scope> {
        if self.no_check || self.worker.is_some() {
            return None;
        }
        match self.check {
            None | Some(CheckName::All) => Some(Scope::All),
            Some(CheckName::Conditions) => Some(Scope::Conditions),
            Some(CheckName::Sample) => Some(Scope::Sample),
            Some(CheckName::None) => None,
        }
    }

    /// Checks combinations of options for this number of props files.
    pub(super) fn check(&self, targets: usize) -> anyhow::Result<()> {
        if self.delivery_workers.is_some() && self.delivery != Some(DeliveryName::Queue) {
            bail!("--delivery-workers needs --delivery queue");
        }
        if targets > 1 && self.worker.is_some() {
            bail!("--worker needs exactly one props file");
        }
        if self.worker.is_some() && self.ramp_up == Some(RampUpOption::Auto) {
            bail!("--ramp-up auto would end at a different time on each host; give a time");
        }
        if self.worker.is_some() && self.result_csv {
            bail!("--result-csv cannot be combined with --worker");
        }
        Ok(())
    }

    /// Result directory of one of several databases.
    pub(super) fn out_of(&self, index: usize, targets: usize) -> Option<PathBuf> {
        let out = self.out.as_ref()?;
        Some(match targets {
            1 => out.clone(),
            _ => out.join((index + 1).to_string()),
        })
    }

    /// The setup for a database that was loaded with these constants.
    pub(super) fn setup(&self, props: &Props, load: Constants) -> anyhow::Result<Setup> {
        let Some(run) = &props.run else {
            bail!("set terminals, and runMins or runTxnsPerTerminal");
        };
        let length = match (self.length, run.length) {
            (Some(length), _) => Length::Lasting(length),
            (None, props::Length::Minutes(minutes)) => {
                Length::Lasting(Duration::from_secs(60 * u64::from(minutes)))
            }
            (None, props::Length::PerTerminal(count)) => Length::PerTerminal(count),
        };
        let seed = self.seed.unwrap_or_else(|| u64::from(fastrand::u32(1..)));
        Ok(Setup {
            warehouses: props.warehouses,
            terminals: run.terminals,
            share: self.worker.unwrap_or(Share::WHOLE),
            length,
            ramp_up: self.ramp_up(length)?,
            pace: self.pace(run)?,
            mix: run.mix,
            fixed_warehouse: run.fixed_warehouse,
            delivery: self.delivery(run.terminals),
            constants: load.of_run(&mut Rng::with_seed(seed_of(seed, u64::MAX - 1))),
            seed,
            max_retries: self.max_retries.unwrap_or(MAX_RETRIES),
            drain: self.drain.unwrap_or(DRAIN),
            give_up: self.give_up.unwrap_or(GIVE_UP),
        })
    }

    /// Without an option, the whole run is measured, as in BenchmarkSQL.
    fn ramp_up(&self, length: Length) -> anyhow::Result<RampUp> {
        match (self.ramp_up, length) {
            (None, _) => Ok(RampUp::Lasting(Duration::ZERO)),
            (Some(RampUpOption::Lasting(time)), _) => Ok(RampUp::Lasting(time)),
            (Some(RampUpOption::Auto), Length::Lasting(length)) => Ok(RampUp::UntilSteady {
                at_most: length.max(Duration::from_secs(300)),
            }),
            (Some(RampUpOption::Auto), Length::PerTerminal(_)) => {
                bail!("--ramp-up auto needs runMins; it cannot be combined with runTxnsPerTerminal")
            }
        }
    }

    fn pace(&self, run: &props::Run) -> anyhow::Result<Pace> {
        let human =
            self.think || self.keying_multiplier.is_some() || self.thinking_multiplier.is_some();
        let usual = if self.think { 1.0 } else { 0.0 };
        match (self.rate, run.limit_per_min) {
            (Some(per_min), _) => Ok(Pace::Open {
                per_min,
                arrivals: match self.arrivals {
                    Some(ArrivalsName::Fixed) => Arrivals::Fixed,
                    Some(ArrivalsName::Poisson) | None => Arrivals::Poisson,
                },
            }),
            _ if human => Ok(Pace::Human {
                keying: self.keying_multiplier.unwrap_or(usual),
                thinking: self.thinking_multiplier.unwrap_or(usual),
            }),
            (None, Some(per_min)) => Ok(Pace::Limited { per_min }),
            (None, None) => Ok(Pace::Eager),
        }
    }

    fn delivery(&self, terminals: u32) -> DeliveryMode {
        match self.delivery {
            // As many round trips as a terminal of BenchmarkSQL 5, so that figures are comparable.
            None | Some(DeliveryName::Inline) => DeliveryMode::Inline,
            Some(DeliveryName::Queue) => DeliveryMode::Queued {
                workers: self
                    .delivery_workers
                    .unwrap_or(DELIVERY_WORKERS.min(terminals)),
            },
        }
    }
}

fn ramp_up(text: &str) -> Result<RampUpOption, String> {
    match text {
        "auto" => Ok(RampUpOption::Auto),
        _ => duration(text).map(RampUpOption::Lasting),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number: &f64| (0.0..=1000.0).contains(number));
    number.ok_or_else(|| "give a number from 0 to 1000".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/min").unwrap_or(text).parse().ok();
    let number = number.filter(|number: &f64| (1e-3..=1e9).contains(number));
    number.ok_or_else(|| "give transactions per minute, such as 60000/min".to_owned())
}

fn share(text: &str) -> Result<Share, String> {
    let parts = text
        .split_once('/')
        .and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    match parts {
        Some((index, of)) if (1..=of).contains(&index) && of <= Share::MAX => {
            Ok(Share { index, of })
        }
        _ => Err("give the number of the part and the number of parts, such as 2/3".to_owned()),
    }
}

fn instant(text: &str) -> Result<SystemTime, String> {
    if let Some(seconds) = text.strip_prefix('@') {
        let seconds = seconds
            .parse()
            .ok()
            .filter(|seconds: &u64| *seconds < 1 << 40);
        return seconds
            .map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
            .ok_or_else(|| "give @ and whole seconds since 1970".to_owned());
    }
    humantime::parse_rfc3339_weak(text)
        .map_err(|_| "give a time in UTC, such as 2026-11-21T14:00:00Z, or @1795269600".to_owned())
}

/// Fails if the props file and the tables differ in their number of warehouses.
pub(super) fn check_loaded(asked: u32, loaded: u32) -> anyhow::Result<()> {
    if asked > loaded {
        bail!(
            "warehouses={asked}, but {loaded} are loaded; correct the props file, or destroy and \
             build again"
        );
    }
    Ok(())
}
