//! The progress of a run on stderr: a dashboard or one changing line on a terminal, otherwise a
//! line every ten seconds.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use saiga_sampler::dashboard::{Campaign, LoadNow};
use saiga_tpcc::driver::Progress;
use saiga_tpcc::latency::statistics::Totals;

use crate::exit;
use crate::host::Host;
use crate::load_file::{Row, Second, Writer};
use crate::panel::Panel;

/// Time between two lines if stderr is not a terminal, in seconds.
const LINE_PAUSE_S: u64 = 10;
/// A time without a transaction is shown if it is at least this long.
const PAUSE: Duration = Duration::from_secs(3);

/// Marks of the rows about the host, one for each phase of the run.
const RAMP_UP: &str = "warm-up";
const MEASURED: &str = "measured";

/// The state of each database.
type Latest = Vec<DatabaseState>;

#[derive(Debug, Clone)]
enum DatabaseState {
    None,
    Running(Progress),
    /// The last progress of a database whose run is over; its errors still count.
    Over(Option<Progress>),
}

/// The line or panel that all databases of an experiment share.
pub(super) struct ProgressDisplay {
    bar: ProgressBar,
    /// Used in place of the bar.
    panel: Option<Panel>,
    load_file: Option<Writer>,
    host: Arc<Host>,
    names: Vec<String>,
    is_measured: AtomicBool,
    latest: Mutex<Latest>,
}

impl ProgressDisplay {
    /// Opens a panel if `with_panel` is set and there is a terminal. Also writes the figures to
    /// `load_file`, which the calling process reads.
    pub(super) fn new(
        names: Vec<String>,
        host: &Arc<Host>,
        with_panel: bool,
        load_file: Option<&Path>,
    ) -> Self {
        host.mark(RAMP_UP);
        let panel = with_panel.then(|| Panel::open(host)).flatten();
        let target = match panel {
            Some(_) => ProgressDrawTarget::hidden(),
            None => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        // The template is a constant; on an error the default style is used.
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            panel,
            host: Arc::clone(host),
            load_file: load_file.map(Writer::new),
            is_measured: AtomicBool::new(false),
            latest: Mutex::new(vec![DatabaseState::None; names.len()]),
            names,
        }
    }

    /// Stores the progress of one database. Updates the display if this is the first database that
    /// still runs.
    pub(super) fn update(&self, index: usize, now: &Progress) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest[index] = DatabaseState::Running(now.clone());
        let leads = latest
            .iter()
            .position(|state| !matches!(state, DatabaseState::Over(_)));
        if leads != Some(index) {
            return;
        }
        if !now.ramping && !self.is_measured.swap(true, Ordering::Relaxed) {
            self.host.mark(MEASURED);
        }
        let known: Vec<&Progress> = latest.iter().filter_map(DatabaseState::running).collect();
        let totals = latest.iter().filter_map(DatabaseState::totals);
        let counts = Counts::of(totals);
        let load = load(&known, counts);
        if let (Some(file), Some(load)) = (&self.load_file, &load) {
            let host = self.host.of_run();
            file.write(&Second {
                load: load.clone(),
                host: host.as_deref().map(Row::of),
            });
        }
        if let Some(panel) = &self.panel {
            let campaign = campaign(&known, &self.names, counts);
            panel.update(|dashboard| {
                if let Some(campaign) = campaign {
                    dashboard.on_campaign(campaign);
                }
                if let Some(load) = load {
                    dashboard.on_load(load);
                }
            });
            return;
        }
        let text = line(&known, counts);
        self.bar.set_message(text.clone());
        self.bar.tick();
        if self.bar.is_hidden() && now.elapsed.as_secs().is_multiple_of(LINE_PAUSE_S) {
            exit::say(&text);
        }
    }

    /// Marks a database as finished.
    pub(super) fn over(&self, index: usize) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let last = latest[index].running().cloned();
        latest[index] = DatabaseState::Over(last);
    }

    pub(super) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl DatabaseState {
    fn running(&self) -> Option<&Progress> {
        match self {
            Self::Running(now) => Some(now),
            Self::None | Self::Over(_) => None,
        }
    }

    fn totals(&self) -> Option<&Totals> {
        match self {
            Self::Running(progress) | Self::Over(Some(progress)) => Some(&progress.totals),
            Self::None | Self::Over(None) => None,
        }
    }
}

/// Errors and retries of all databases, those that are finished included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    errors: u64,
    retries: u64,
}

impl Counts {
    fn of<'a>(all: impl Iterator<Item = &'a Totals>) -> Self {
        let none = Self {
            errors: 0,
            retries: 0,
        };
        all.fold(none, |sum, totals| Self {
            errors: sum.errors + totals.failed + totals.unknown,
            retries: sum.retries + totals.retries,
        })
    }
}

/// Formats the sums over the running databases, and the largest of their quantiles.
fn line(all: &[&Progress], counts: Counts) -> String {
    let Some(first) = all.first() else {
        return String::new();
    };
    let orders: f64 = all.iter().map(|now| now.new_orders_per_min).sum();
    let quantile = |at: usize| {
        all.iter()
            .filter_map(|now| Some(now.new_order_us?[at]))
            .max()
    };
    let ms =
        |us: Option<u64>| us.map_or_else(|| "–".to_owned(), |us| format!("{:.1}", us as f64 / 1e3));
    let phase = if first.ramping { " (ramp-up)" } else { "" };
    let left = first
        .left
        .map_or_else(String::new, |left| format!(", {} left", clock(left)));
    let mut text = format!(
        "{}{phase}{left}: {orders:.0} New-Orders/min, p50 {} p95 {} p99 {} ms, {} errors, {} \
         retries",
        clock(first.elapsed),
        ms(quantile(0)),
        ms(quantile(1)),
        ms(quantile(2)),
        counts.errors,
        counts.retries,
    );
    for trouble in troubles(all) {
        text += &format!(", {trouble}");
    }
    text
}

/// Describes late requests, queued deliveries, lost connections and a pause, if there are any.
fn troubles(all: &[&Progress]) -> Vec<String> {
    let sum = |of: fn(&Progress) -> u64| all.iter().map(|now| of(now)).sum::<u64>();
    let counts = [
        (sum(|now| now.backlog), "late"),
        (sum(|now| now.queued), "deliveries queued"),
        (
            sum(|now| u64::from(now.connections.1.saturating_sub(now.connections.0))),
            "connections lost",
        ),
    ];
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts = some.map(|(count, what)| format!("{count} {what}"));
    counts.chain(pause(all)).collect()
}

/// Describes the longest current time without a transaction, if it is at least [`PAUSE`].
fn pause(all: &[&Progress]) -> Option<String> {
    let (unserved, most) = all.iter().filter_map(|now| now.unserved).max()?;
    (unserved >= PAUSE).then(|| {
        let seconds = |time: Duration| time.as_secs();
        let (since, most) = (seconds(unserved), seconds(most));
        format!("no transaction for {since} s, stopping after {most} s")
    })
}

/// The progress for the panel. Its times are those of the first running database.
fn campaign(all: &[&Progress], names: &[String], counts: Counts) -> Option<Campaign> {
    let first = all.first()?;
    let seconds = |time: Duration| usize::try_from(time.as_secs()).unwrap_or(usize::MAX);
    let left = first.left.map(|left| format!("{} left", clock(left)));
    let whole = [Some(clock(first.elapsed)), left];
    let mut now = vec![format!("{} retries", counts.retries)];
    now.extend(troubles(all));
    Some(Campaign {
        done: seconds(first.elapsed),
        planned: first
            .left
            .map_or(0, |left| seconds(first.elapsed.saturating_add(left))),
        whole: whole.into_iter().flatten().collect(),
        now: names.to_vec(),
        last: vec![now],
    })
}

/// The load for the panel: sums over the running databases, and the largest of their latencies.
fn load(all: &[&Progress], counts: Counts) -> Option<LoadNow> {
    let first = all.first()?;
    let quantile_ms = |at: usize| {
        let known = all.iter().filter_map(|now| Some(now.new_order_us?[at]));
        known.max().map(|us| us as f64 / 1e3)
    };
    Some(LoadNow {
        phase: if first.ramping { RAMP_UP } else { MEASURED }.to_owned(),
        throughput: all.iter().map(|now| now.new_orders_per_min).sum(),
        unit: "New-Orders/min".to_owned(),
        p50_ms: quantile_ms(0),
        p95_ms: quantile_ms(1),
        p99_ms: quantile_ms(2),
        errors: counts.errors,
        left: None,
    })
}

/// Formats a time: `0:07`, `12:05`, `1:02:03`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(all: &[&Progress]) -> Counts {
        Counts::of(all.iter().map(|now| &now.totals))
    }

    /// The line for databases that all run.
    fn line_of(all: &[&Progress]) -> String {
        line(all, counted(all))
    }

    #[test]
    fn the_line_shows_only_relevant_counts() {
        let totals = Totals {
            done: 9,
            failed: 1,
            retries: 4,
            unknown: 2,
        };
        let now = Progress {
            elapsed: Duration::from_secs(65),
            left: Some(Duration::from_secs(3715)),
            ramping: false,
            new_orders_per_min: 1234.5,
            new_order_us: Some([1500, 2600, 31_000]),
            totals,
            backlog: 0,
            queued: 0,
            connections: (10, 10),
            unserved: Some((Duration::from_secs(2), Duration::from_secs(60))),
        };
        assert_eq!(
            line_of(&[&now]),
            "1:05, 1:01:55 left: 1234 New-Orders/min, p50 1.5 p95 2.6 p99 31.0 ms, 3 errors, 4 \
             retries"
        );
        let worse = Progress {
            connections: (3, 10),
            backlog: 7,
            new_order_us: None,
            ramping: true,
            left: None,
            ..now.clone()
        };
        let text = line_of(&[&worse, &now]);
        assert!(
            text.starts_with("1:05 (ramp-up): 2469 New-Orders/min, p50 1.5 "),
            "{text}"
        );
        assert!(
            text.ends_with("6 errors, 8 retries, 7 late, 7 connections lost"),
            "{text}"
        );
        assert_eq!(line_of(&[]), "");
        let finished = DatabaseState::Over(Some(worse.clone()));
        let states = [finished, DatabaseState::Running(now.clone())];
        let counts = Counts::of(states.iter().filter_map(DatabaseState::totals));
        let text = line(&[&now], counts);
        assert!(text.ends_with("6 errors, 8 retries"), "{text}");
        let silent = Progress {
            unserved: Some((Duration::from_secs(12), Duration::from_secs(60))),
            ..now.clone()
        };
        let text = line_of(&[&now, &silent]);
        let told = "8 retries, no transaction for 12 s, stopping after 60 s";
        assert!(text.ends_with(told), "{text}");

        let names = ["a", "b"].map(str::to_owned);
        let both = counted(&[&now, &worse]);
        let shown = campaign(&[&now, &worse], &names, both).unwrap();
        assert_eq!((shown.done, shown.planned), (65, 3780));
        assert_eq!(shown.whole, ["1:05", "1:01:55 left"]);
        assert_eq!(shown.now, names);
        assert_eq!(shown.last, [["8 retries", "7 late", "7 connections lost"]]);
        let shown = load(&[&worse, &now], both).unwrap();
        assert_eq!((shown.phase.as_str(), shown.errors), ("warm-up", 6));
        assert_eq!((shown.p50_ms, shown.p99_ms), (Some(1.5), Some(31.0)));
        assert!(load(&[], both).is_none() && campaign(&[], &names, both).is_none());
    }
}
