//! The record of a run (`result.json`), or of one load host's part of a run (`worker-N.json`).
//!
//! The field `run` has the format of a run in an experiment's `result.json`; the other fields are
//! specific to TPC-C. Histograms are in HdrHistogram's V2 encoding, in base64.

use std::collections::BTreeMap;
use std::time::Duration;

use saiga_experiment::result::Run;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::clocks::WorkerClock;
use super::partial::Partial;
use super::validity::{self, Check};
use super::{detail, deviations};
use crate::driver::clock::seconds;
use crate::driver::{DeliveryMode, Length, Measurement, Pace, RampUp, RunEnd, Setup};
use crate::latency::steady::{Steady, mser5};
use crate::latency::{Gap, InputCounts, Phase, Series, Track, TrackName};
use crate::server_clock::Offset;
use crate::spec::deck::Kind;

/// The `format_version` of records. Records with other versions cannot be read.
pub const FORMAT_VERSION: u32 = 1;

/// The results of a run, or of one load host's part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub format_version: u32,
    /// The kind of experiment, always `tpcc`.
    pub experiment: String,
    /// The missing workers of a merged record; `None` if no worker is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    /// The run in the format of an experiment's result.
    pub run: Run,
    pub conditions: Conditions,
    /// Offset of the server's clock from the clock of this host, measured before the start. `None`
    /// in a merged record, and for SQLite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Offset>,
    /// The clocks of the workers; only in a merged record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<WorkerClock>,
    /// The reason for the end: `done`, `interrupted`, `gave up` or `hopeless`.
    pub end: String,
    /// The measured interval, in microseconds since the start.
    pub interval_us: (u64, u64),
    /// End of the last transaction, in microseconds since the start.
    pub last_us: u64,
    /// Counts and latencies by phase and type of transaction.
    pub tracks: Tracks,
    /// Counts of input properties in the measured phase.
    pub tally: InputCounts,
    /// The time series; `None` in `result.json`, because `series.csv` contains the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    pub gaps: Vec<Gap>,
    pub lost_connections: u64,
    /// Distinct error messages with their counts.
    pub errors: Vec<(String, u64)>,
    /// Number of transactions of an open loop that never began, although their intended starts were
    /// before the end of the interval.
    pub backlog: u64,
    /// Deliveries that were queued but not performed.
    pub undelivered: u64,
    /// Transactions without an answer at the end of the drain.
    pub unanswered: u64,
    /// Whether the throughput was steady in the measured interval.
    pub steady: Steadiness,
    /// Whether the throughput had settled at the end of the ramp-up. `None` for a ramp-up of fixed
    /// length, or if the measured interval never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_up_settled: Option<bool>,
    /// CPU seconds of the load driver over the whole run.
    pub client_cpu_s: f64,
    /// The requested checks of the tables (§3.3.2), before and after the run.
    #[serde(default)]
    pub consistency: Vec<Consistency>,
    /// Checks of inputs, mix and response times: §5.5.1.5, §5.2.3, §5.2.5.3.
    pub validity: Vec<Check>,
    /// Deviations from the specification.
    pub deviations: Vec<String>,
}

/// A consistency check of the tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Consistency {
    /// `before` or `after`: whether the check was made before or after the run.
    pub when: String,
    /// Number of rules that were checked.
    pub checked: usize,
    /// The sample, such as `10 of 4050 warehouses`; absent if all warehouses were checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// The violated rules, each with an example.
    pub broken: Vec<String>,
    /// The reason why a requested check was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_checked: Option<String>,
    /// Duration of the check.
    pub seconds: f64,
}

/// The conditions of a run. The records of one run differ only in their share and in local times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// The props file with masked passwords.
    pub props: Vec<(String, String)>,
    /// The server's name and version, as the server reports them.
    pub server: String,
    /// The isolation level, as the server reports it.
    pub isolation: String,
    /// The folder of SQL scripts (`db=`); by default the name of the database system.
    #[serde(default)]
    pub db: String,
    /// Number of warehouses that the run uses.
    pub warehouses: u32,
    /// Number of warehouses in the database.
    #[serde(default)]
    pub loaded_warehouses: u32,
    /// Number of terminals of all load hosts.
    pub terminals: u32,
    /// Number of this worker, and number of workers.
    pub share: (u32, u32),
    /// Seed of all inputs.
    pub seed: u64,
    /// Start of the run, in seconds since 1970.
    pub started_unix_s: u64,
    /// Start of the run in local time, as in `Session Start`.
    pub session_start: String,
    /// End of the last transaction in local time.
    pub session_end: String,
    pub pace: String,
    /// Transactions per minute of all terminals, in a limited closed loop or an open loop.
    pub per_min: Option<f64>,
    /// Factors by which keying and think times are multiplied; zero if the run has no such times.
    pub keying_thinking: (f64, f64),
    /// Distribution of the intended starts of an open loop: `poisson` or `fixed`.
    #[serde(default)]
    pub arrivals: Option<String>,
    /// Number of delivery workers of this host; in a merged record, of all hosts. 0 if terminals
    /// perform their deliveries.
    pub delivery_workers: u32,
    #[serde(default)]
    pub max_retries: u16,
    /// Time limit for transactions in progress and queued deliveries at the end of the run.
    #[serde(default)]
    pub drain: String,
    /// Longest time without service before the run is given up.
    #[serde(default)]
    pub give_up: String,
    /// The requested ramp-up: seconds, or `auto`.
    pub ramp_up: String,
    /// The requested length: seconds, or transactions per terminal.
    pub length: String,
    /// Shares of the transaction types in the mix, in per cent.
    pub mix: [f64; 5],
    /// Number of cards in a deck.
    pub deck: u32,
    /// Whether each terminal keeps its home warehouse.
    pub fixed_warehouse: bool,
    /// C-Run for C_LAST, C_ID and OL_I_ID.
    pub nurand: (u32, u32, u32),
}

/// Whether the throughput was steady in the measured interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steadiness {
    /// Steady from this second of the interval on (MSER-5).
    From(u64),
    /// Not settled in the first half of the interval.
    NotSettled,
    /// The interval is shorter than a minute.
    TooShort,
}

/// Counts and latencies by phase and type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tracks(pub [[Track; 6]; 3]);

impl Tracks {
    #[must_use]
    pub fn of(&self, phase: Phase, name: TrackName) -> &Track {
        &self.0[phase.index()][name.index()]
    }

    /// Number of completed transactions of a type, deferred deliveries included.
    #[must_use]
    pub fn done(&self, phase: Phase, kind: Kind) -> u64 {
        let deferred = match kind {
            Kind::Delivery => self.of(phase, TrackName::Deferred).done(),
            Kind::NewOrder | Kind::Payment | Kind::OrderStatus | Kind::StockLevel => 0,
        };
        self.of(phase, TrackName::Of(kind)).done() + deferred
    }

    /// Number of completed transactions of a phase.
    #[must_use]
    pub fn total(&self, phase: Phase) -> u64 {
        Kind::ALL
            .into_iter()
            .map(|kind| self.done(phase, kind))
            .sum()
    }

    /// Number of transactions of a type that terminals completed or queued. The shares of the mix
    /// are computed from these numbers.
    #[must_use]
    pub fn taken(&self, phase: Phase, kind: Kind) -> u64 {
        let track = self.of(phase, TrackName::Of(kind));
        track.done() + track.queued
    }

    /// Share of a type in the mix, in per cent; `None` for deferred deliveries.
    #[must_use]
    pub fn share_percent(&self, phase: Phase, name: TrackName) -> Option<f64> {
        let all: u64 = Kind::ALL
            .into_iter()
            .map(|kind| self.taken(phase, kind))
            .sum();
        match name {
            TrackName::Of(kind) => Some(100.0 * self.taken(phase, kind) as f64 / all.max(1) as f64),
            TrackName::Deferred => None,
        }
    }

    /// The sum of a count over all types of a phase.
    pub fn sum(&self, phase: Phase, count: impl Fn(&Track) -> u64) -> u64 {
        self.0[phase.index()].iter().map(count).sum()
    }

    /// Adds the tracks of another load host.
    pub fn add(&mut self, other: &Self) {
        let (mine, theirs) = (self.0.iter_mut().flatten(), other.0.iter().flatten());
        mine.zip(theirs).for_each(|(mine, theirs)| mine.add(theirs));
    }
}

const PHASES: [&str; 3] = ["ramp_up", "measured", "drain"];

impl Serialize for Tracks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = |tracks: &'_ [Track; 6]| -> BTreeMap<&str, Track> {
            let names = TrackName::ALL.iter().map(|name| name.name());
            names.zip(tracks.iter().cloned()).collect()
        };
        let phases: BTreeMap<&str, _> = PHASES.into_iter().zip(self.0.iter().map(named)).collect();
        phases.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tracks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut phases = BTreeMap::<String, BTreeMap<String, Track>>::deserialize(deserializer)?;
        let mut tracks = Self::default();
        for (phase, into) in PHASES.into_iter().zip(&mut tracks.0) {
            let mut named = phases.remove(phase).unwrap_or_default();
            for (name, track) in TrackName::ALL.into_iter().zip(into) {
                let found = named.remove(name.name());
                let missing = || D::Error::custom(format!("{phase} lacks {}", name.name()));
                *track = found.ok_or_else(missing)?;
            }
        }
        Ok(tracks)
    }
}

impl Conditions {
    /// The conditions that the setup determines; the other fields are empty or zero.
    #[must_use]
    pub fn of(setup: &Setup) -> Self {
        let (pace, per_min, keying_thinking) = match setup.pace {
            Pace::Eager => ("eager", None, (0.0, 0.0)),
            Pace::Limited { per_min } => ("limited", Some(f64::from(per_min)), (0.0, 0.0)),
            Pace::Human { keying, thinking } => ("human", None, (keying, thinking)),
            Pace::Open { per_min, .. } => ("open", Some(per_min), (0.0, 0.0)),
        };
        let arrivals = match setup.pace {
            Pace::Open { arrivals, .. } => Some(arrivals.name().to_owned()),
            Pace::Eager | Pace::Limited { .. } | Pace::Human { .. } => None,
        };
        let nurand = setup.constants;
        let in_seconds = |time: Duration| format!("{} s", time.as_secs_f64());
        Self {
            props: Vec::new(),
            server: String::new(),
            isolation: String::new(),
            db: String::new(),
            warehouses: setup.warehouses,
            loaded_warehouses: setup.warehouses,
            terminals: setup.terminals,
            share: (setup.share.index, setup.share.of),
            seed: setup.seed,
            started_unix_s: 0,
            session_start: String::new(),
            session_end: String::new(),
            pace: pace.to_owned(),
            per_min,
            keying_thinking,
            arrivals,
            delivery_workers: match setup.delivery {
                DeliveryMode::Inline => 0,
                DeliveryMode::Queued { workers } => workers,
            },
            max_retries: setup.max_retries,
            drain: in_seconds(setup.drain),
            give_up: in_seconds(setup.give_up),
            ramp_up: match setup.ramp_up {
                RampUp::Lasting(time) => in_seconds(time),
                RampUp::UntilSteady { .. } => "auto".to_owned(),
            },
            length: match setup.length {
                Length::Lasting(time) => in_seconds(time),
                Length::PerTerminal(count) => format!("{count} transactions per terminal"),
            },
            mix: Kind::ALL.map(|kind| setup.mix.share(kind)),
            deck: setup.mix.cards_in_deck(),
            fixed_warehouse: setup.fixed_warehouse,
            nurand: (nurand.last_name, nurand.customer, nurand.item),
        }
    }

    /// Whether keying and think times are at least those of the specification.
    #[must_use]
    pub fn is_human(&self) -> bool {
        self.pace == "human" && self.keying_thinking.0 >= 1.0 && self.keying_thinking.1 >= 1.0
    }

    /// The name of the main figure. Without the specified think times it is not tpmC (§5.2.5.4).
    #[must_use]
    pub fn tpmc_name(&self) -> &'static str {
        match self.pace.as_str() {
            _ if self.is_human() => "tpmC",
            "human" => "tpmC (shortened think time)",
            _ => "tpmC (no think time)",
        }
    }

    fn tpmc_metric(&self) -> &'static str {
        match self.pace.as_str() {
            _ if self.is_human() => "tpmc",
            "human" => "tpmc_shortened_think_time",
            _ => "tpmc_no_think_time",
        }
    }
}

impl Record {
    /// Makes the record of a measurement. `started` is a UTC time in RFC 3339 format.
    #[must_use]
    pub fn new(conditions: Conditions, measured: Measurement, started: String) -> Self {
        let Measurement {
            end,
            interval_us,
            last_us,
            tracks,
            input_counts,
            series,
            gaps,
            lost,
            errors,
            backlog,
            undelivered,
            unanswered,
            settled,
            cpu_s,
        } = measured;
        let Conditions {
            warehouses,
            terminals,
            ..
        } = conditions;
        let mut record = Self {
            format_version: FORMAT_VERSION,
            experiment: "tpcc".to_owned(),
            partial: None,
            run: Run {
                cell: format!("tpcc-w{warehouses}-t{terminals}"),
                arm: "run".to_owned(),
                pair: 0,
                position: 0,
                started,
                seconds: 0.0,
                metrics: BTreeMap::new(),
                foreign_cpu_s: cpu_s.1.unwrap_or(0.0),
                rejected: None,
                detail: None,
            },
            conditions,
            clock: None,
            clocks: Vec::new(),
            end: match end {
                RunEnd::Completed => "done",
                RunEnd::Interrupted => "interrupted",
                RunEnd::GaveUp => "gave up",
                RunEnd::NothingSucceeded => "hopeless",
            }
            .to_owned(),
            interval_us,
            last_us,
            tracks: Tracks(tracks),
            tally: input_counts,
            series: Some(series),
            gaps,
            lost_connections: lost,
            errors,
            backlog,
            undelivered,
            unanswered,
            steady: Steadiness::TooShort,
            ramp_up_settled: settled,
            client_cpu_s: cpu_s.0,
            consistency: Vec::new(),
            validity: Vec::new(),
            deviations: Vec::new(),
        };
        record.conclude();
        record
    }

    /// Computes metrics, steadiness, validity and deviations from the counts.
    pub fn conclude(&mut self) {
        let (from_us, to_us) = self.interval_us;
        self.run.seconds = seconds(to_us - from_us);
        if let Some(series) = &self.series {
            self.steady = match mser5(&series.new_orders_within(from_us, to_us)) {
                Steady::From(second) => Steadiness::From(second as u64),
                Steady::NotYet => Steadiness::NotSettled,
                Steady::TooShort => Steadiness::TooShort,
            };
        }
        self.validity = validity::checks(self);
        self.deviations = deviations::of(self);
        self.run.metrics = self.metrics();
        self.run.rejected = self.reason_to_reject();
        self.run.detail = Some(Box::new(detail::of(self)));
    }

    /// The reason why the run does not count as valid.
    fn reason_to_reject(&self) -> Option<String> {
        if let Some(partial) = &self.partial {
            return Some(format!("partial: {}", partial.describe()));
        }
        if !self.is_served() {
            return Some("no transaction of the measured interval was done".to_owned());
        }
        self.consistency.iter().find_map(Consistency::fault)
    }

    #[must_use]
    pub fn tpmc_name(&self) -> String {
        let name = self.conditions.tpmc_name();
        match self.partial {
            Some(_) => format!("{name}, partial"),
            None => name.to_owned(),
        }
    }

    /// Completed New-Orders per minute (§5.4.2): committed, or rolled back as their input demands.
    /// Only transactions that lie wholly inside the measured interval count.
    #[must_use]
    pub fn tpmc(&self) -> f64 {
        self.per_minute(self.tracks.done(Phase::Measured, Kind::NewOrder))
    }

    /// Transactions of all types per minute, counted like [`tpmc`](Self::tpmc).
    #[must_use]
    pub fn tpm_total(&self) -> f64 {
        self.per_minute(self.tracks.total(Phase::Measured))
    }

    fn per_minute(&self, count: u64) -> f64 {
        if self.run.seconds > 0.0 {
            60.0 * count as f64 / self.run.seconds
        } else {
            0.0
        }
    }

    fn metrics(&self) -> BTreeMap<String, f64> {
        let all = self.tracks.total(Phase::Measured) as f64;
        let everything: u64 = Phase::ALL
            .into_iter()
            .map(|phase| self.tracks.total(phase))
            .sum();
        // A partial sum has a metric of its own, so that no program takes it for the result of the
        // run.
        let tpmc = match self.partial {
            Some(_) => "tpmc_partial",
            None => self.conditions.tpmc_metric(),
        };
        let mut metrics = BTreeMap::from([
            (tpmc.to_owned(), self.tpmc()),
            ("tpm_total".to_owned(), self.tpm_total()),
            ("errors".to_owned(), self.failures(Phase::Measured) as f64),
            (
                "retries".to_owned(),
                self.tracks.sum(Phase::Measured, |track| track.retries) as f64,
            ),
        ]);
        if self.run.seconds > 0.0 {
            metrics.insert("throughput_ops_s".to_owned(), all / self.run.seconds);
        }
        if everything > 0 {
            let us_per_op = self.client_cpu_s * 1e6 / everything as f64;
            metrics.insert("client_cpu_us_per_op".to_owned(), us_per_op);
        }
        let orders = &self
            .tracks
            .of(Phase::Measured, TrackName::Of(Kind::NewOrder))
            .latency;
        for (name, quantile) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)] {
            if let Some(us) = orders.quantile_us(quantile) {
                metrics.insert(format!("latency_{name}_us"), us as f64);
            }
        }
        metrics
    }

    /// Whether all checks hold: no validity check failed, all requested checks of the tables were
    /// made and hold, no worker is missing, and [`is_served`](Self::is_served) is true.
    #[must_use]
    pub fn all_checks_hold(&self) -> bool {
        let valid = self
            .validity
            .iter()
            .all(|check| check.verdict != validity::Verdict::Fails);
        valid
            && self.partial.is_none()
            && self.is_served()
            && self.consistency.iter().all(Consistency::holds)
    }

    /// Whether transactions were completed in the measured interval. Also true if none was
    /// completed, but no transaction failed, lost its connection or had no answer.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let failures = Phase::ALL
            .map(|phase| self.failures(phase))
            .iter()
            .sum::<u64>();
        let went_wrong = self.unanswered + self.lost_connections + failures;
        went_wrong == 0 || self.tracks.total(Phase::Measured) > 0
    }

    /// Number of transactions of a phase that failed or have an unknown outcome.
    #[must_use]
    pub fn failures(&self, phase: Phase) -> u64 {
        self.tracks.sum(phase, |track| track.failed + track.unknown)
    }
}
