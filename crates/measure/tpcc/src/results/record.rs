//! The record of one run, or of one host's part of it: `result.json`, or `worker-i.json`.
//!
//! `run` is the record of a run as `result.json` of an experiment has it; the rest is what only TPC-C
//! has. Histograms are HdrHistogram's V2 format in base64.

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
use crate::driver::{Delivery, End, Length, Measured, Pace, RampUp, Setup};
use crate::latency::steady::{Steady, mser5};
use crate::latency::{Gap, Phase, Series, Tally, Track, TrackName};
use crate::server_clock::Offset;
use crate::spec::deck::Kind;

/// The only `format_version` that is written and read.
pub const FORMAT_VERSION: u32 = 1;

/// One run, or one host's part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Always [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Always `tpcc`.
    pub experiment: String,
    /// Of a sum that lacks workers: which ones, and what it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    /// As in the result of an experiment.
    pub run: Run,
    /// Under what it was measured.
    pub conditions: Conditions,
    /// How far the server's clock was from this host's before the start; none of a sum, and none
    /// without a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Offset>,
    /// Of a sum: the same of each worker that is in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<WorkerClock>,
    /// `done`, `interrupted`, `gave up` or `hopeless`.
    pub end: String,
    /// The measured interval in microseconds since the start.
    pub interval_us: (u64, u64),
    /// End of the last transaction.
    pub last_us: u64,
    /// By phase and type of transaction.
    pub tracks: Tracks,
    /// The inputs of the measured phase.
    pub tally: Tally,
    /// Second by second; in `result.json` it is left out, for `series.csv` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// Times without service.
    pub gaps: Vec<Gap>,
    /// Connections that were lost.
    pub lost_connections: u64,
    /// Different errors, each with its count.
    pub errors: Vec<(String, u64)>,
    /// Intended starts of an open loop that never came to be.
    pub backlog: u64,
    /// Deliveries that were queued and not carried out.
    pub undelivered: u64,
    /// Transactions without an answer when the run was given up.
    pub unanswered: u64,
    /// When the throughput had settled.
    pub steady: Steadiness,
    /// Whether it had when a ramp-up until then (`auto`) was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_up_settled: Option<bool>,
    /// CPU seconds of the clients over the whole run.
    pub client_cpu_s: f64,
    /// Whether the tables were consistent (§3.3.2), before and after the run, if it was looked at.
    #[serde(default)]
    pub consistency: Vec<Consistency>,
    /// §5.5.1.5, §5.2.3, §5.2.5.3 and their like.
    pub validity: Vec<Check>,
    /// Where the run is not as the specification wants it.
    pub deviations: Vec<String>,
}

/// One look at whether the tables are consistent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Consistency {
    /// `before` or `after` the run.
    pub when: String,
    /// Rules that were checked.
    pub checked: usize,
    /// Of which warehouses, where not of all: `10 of 4050 warehouses`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// Those that are broken, with an example.
    pub broken: Vec<String>,
    /// Why nobody could look, although it was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_checked: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

impl Consistency {
    /// A look that was wanted and is missing.
    #[must_use]
    pub fn missing(when: &str, why: String) -> Self {
        Self {
            when: when.to_owned(),
            checked: 0,
            sample: None,
            broken: Vec::new(),
            not_checked: Some(why),
            seconds: 0.0,
        }
    }

    /// Why the run does not count: the tables are broken, or could not be checked. `None` when they
    /// are consistent.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let when = &self.when;
        match (&self.not_checked, self.broken.as_slice()) {
            (Some(why), _) => Some(format!("the tables were not checked {when} the run: {why}")),
            (None, []) => None,
            (None, broken) => Some(format!(
                "the tables are not consistent {when} the run: {}",
                broken.join("; ")
            )),
        }
    }

    /// Whether the tables were seen to be consistent.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.broken.is_empty() && self.not_checked.is_none()
    }
}

/// Under what a run was measured. Parts of one run have all but the share in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// The props file, password masked.
    pub props: Vec<(String, String)>,
    /// As the server calls itself.
    pub server: String,
    /// The isolation level, as the server calls it.
    pub isolation: String,
    /// The folder of statements, as `db=` says; by default the system's name.
    #[serde(default)]
    pub db: String,
    /// Warehouses that are used.
    pub warehouses: u32,
    /// Warehouses that are loaded.
    #[serde(default)]
    pub loaded_warehouses: u32,
    /// Terminals over all hosts.
    pub terminals: u32,
    /// This host's part of them: which, of how many.
    pub share: (u32, u32),
    /// From which all inputs follow.
    pub seed: u64,
    /// When it started, in seconds since 1970.
    pub started_unix_s: u64,
    /// The same on the clock on the wall, as in `Session Start`.
    pub session_start: String,
    /// When the last transaction ended.
    pub session_end: String,
    /// `eager`, `limited`, `human` or `open`.
    pub pace: String,
    /// Transactions per minute of a limit or of an open loop.
    pub per_min: Option<f64>,
    /// Factors of keying and think times; zero without them.
    pub keying_thinking: (f64, f64),
    /// `poisson` or `fixed`, of an open loop.
    #[serde(default)]
    pub arrivals: Option<String>,
    /// Connections that carry out queued deliveries, of all hosts; 0 where terminals do it themselves.
    pub delivery_workers: u32,
    /// Attempts at a transaction after the first one.
    #[serde(default)]
    pub max_retries: u16,
    /// How long transactions may take that are under way, or queued, at the end.
    #[serde(default)]
    pub drain: String,
    /// How long the server may be gone before the run ends.
    #[serde(default)]
    pub give_up: String,
    /// Ramp-up as asked for: seconds, or `auto`.
    pub ramp_up: String,
    /// Length as asked for: seconds, or transactions for each terminal.
    pub length: String,
    /// Cards of a deck by type, in per cent of all.
    pub mix: [f64; 5],
    /// Cards of a deck.
    pub deck: u32,
    /// Terminals stay at their warehouses.
    pub fixed_warehouse: bool,
    /// C-Run of C_LAST, C_ID, OL_I_ID.
    pub nurand: (u32, u32, u32),
}

/// Whether the measured interval was steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steadiness {
    /// From so many seconds after its beginning on (MSER-5).
    From(u64),
    /// It had not settled in its first half.
    NotSettled,
    /// It is too short to tell.
    TooShort,
}

/// Tracks by phase and type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tracks(pub [[Track; 6]; 3]);

impl Tracks {
    /// One of them.
    #[must_use]
    pub fn of(&self, phase: Phase, name: TrackName) -> &Track {
        &self.0[phase.index()][name.index()]
    }

    /// What is done of a type, deferred deliveries included.
    #[must_use]
    pub fn done(&self, phase: Phase, kind: Kind) -> u64 {
        let deferred = match kind {
            Kind::Delivery => self.of(phase, TrackName::Deferred).done(),
            Kind::NewOrder | Kind::Payment | Kind::OrderStatus | Kind::StockLevel => 0,
        };
        self.of(phase, TrackName::Of(kind)).done() + deferred
    }

    /// All of a phase.
    #[must_use]
    pub fn total(&self, phase: Phase) -> u64 {
        Kind::ALL
            .into_iter()
            .map(|kind| self.done(phase, kind))
            .sum()
    }

    /// What terminals have had done or queued of a type: its part of the mix.
    #[must_use]
    pub fn taken(&self, phase: Phase, kind: Kind) -> u64 {
        let track = self.of(phase, TrackName::Of(kind));
        track.done() + track.queued
    }

    /// A type's part of the mix in per cent; none of what comes out of the queue.
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

    /// A count over all types of a phase.
    pub fn sum(&self, phase: Phase, count: impl Fn(&Track) -> u64) -> u64 {
        self.0[phase.index()].iter().map(count).sum()
    }

    /// Adds those of another host.
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
    /// What a setup says about itself; the rest is left empty.
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
                Delivery::Inline => 0,
                Delivery::Queued { workers } => workers,
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

    /// Keying and think times as the specification has them, or longer.
    #[must_use]
    pub fn is_human(&self) -> bool {
        self.pace == "human" && self.keying_thinking.0 >= 1.0 && self.keying_thinking.1 >= 1.0
    }

    /// What the main figure is called (§5.2.5.4: without think times it is not tpmC).
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
    /// Of what was measured under these conditions; `started` is RFC 3339 in UTC.
    #[must_use]
    pub fn new(conditions: Conditions, measured: Measured, started: String) -> Self {
        let Measured {
            end,
            interval_us,
            last_us,
            tracks,
            tally,
            series,
            gaps,
            lost,
            troubles,
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
                End::Done => "done",
                End::Interrupted => "interrupted",
                End::GaveUp => "gave up",
                End::Hopeless => "hopeless",
            }
            .to_owned(),
            interval_us,
            last_us,
            tracks: Tracks(tracks),
            tally,
            series: Some(series),
            gaps,
            lost_connections: lost,
            errors: troubles,
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

    /// Works out what follows from the counts: metrics, steadiness, validity.
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

    /// Why the run does not count.
    fn reason_to_reject(&self) -> Option<String> {
        if let Some(partial) = &self.partial {
            return Some(format!("partial: {}", partial.words()));
        }
        if !self.is_served() {
            return Some("no transaction of the measured interval was done".to_owned());
        }
        self.consistency.iter().find_map(Consistency::fault)
    }

    /// What the main figure is called.
    #[must_use]
    pub fn tpmc_name(&self) -> String {
        let name = self.conditions.tpmc_name();
        match self.partial {
            Some(_) => format!("{name}, partial"),
            None => name.to_owned(),
        }
    }

    /// New-Orders per minute that are committed, or rolled back as demanded, wholly inside the
    /// interval (§5.4.2).
    #[must_use]
    pub fn tpmc(&self) -> f64 {
        self.per_minute(self.tracks.done(Phase::Measured, Kind::NewOrder))
    }

    /// All transactions likewise.
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
        // A reader of metrics must not take the figure of a part for that of the run.
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

    /// Whether everything that was checked is as it must be.
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

    /// False when terminals sent what they could and nothing of the measured interval was done.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let failures = Phase::ALL
            .map(|phase| self.failures(phase))
            .iter()
            .sum::<u64>();
        let went_wrong = self.unanswered + self.lost_connections + failures;
        went_wrong == 0 || self.tracks.total(Phase::Measured) > 0
    }

    /// Transactions of a phase that failed or were lost.
    #[must_use]
    pub fn failures(&self, phase: Phase) -> u64 {
        self.tracks.sum(phase, |track| track.failed + track.unknown)
    }
}
