//! Progress on stderr: a dashboard or a bar on a terminal, otherwise a line every ten seconds.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use saiga_experiment::analysis::{Width, percent};
use saiga_experiment::engine::Event;
use saiga_experiment::plan::{Plan, RunSize};
use saiga_experiment::result::Run;
use saiga_sampler::dashboard::Campaign;

use crate::exit;
use crate::panel::Panel;

/// Time to start and stop servers for a run.
const RUN_OVERHEAD: Duration = Duration::from_millis(60);
/// Mean factor by which runs last longer than planned, because runs with many clients do.
const USUAL_FACTOR: f64 = 1.15;
/// Time to start a server and warm up for a run of fixed length.
const WARM_UP: Duration = Duration::from_millis(1100);
/// Time between two lines if stderr is not a terminal.
const LINE_PAUSE: Duration = Duration::from_secs(10);
/// Number of notices that are printed; the result has all rejections.
const MAX_SHOWN: u32 = 20;

/// Prints the progress of an experiment and the remaining time.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Used in place of the bar.
    panel: Option<Panel>,
    terminal: bool,
    now: PanelState,
    /// The end of the first visit, and the number of its runs. They do not count for the pace,
    /// because the first visit may also create data.
    paced: Option<(Instant, usize)>,
    last_line: Instant,
    planned_run: Option<Duration>,
    runs: usize,
    done: usize,
    shown: u32,
    sequential: bool,
    /// Width of the least precise interval, and number of the cells that are not precise enough.
    open: Option<String>,
}

/// Content of the panel: the current run and the previous runs of the cell.
#[derive(Debug, Default)]
struct PanelState {
    cell: String,
    run: Vec<String>,
    /// The last run of each arm in this cell.
    last: Vec<(String, Vec<String>)>,
}

impl Progress {
    /// Prints the seed and size of the plan. A `sequential` plan may end before its last pair.
    pub(crate) fn new<L>(plan: &Plan<L>, sequential: bool, panel: Option<Panel>) -> Self {
        let target = match panel {
            Some(_) => ProgressDrawTarget::hidden(),
            None => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        // The template is a constant; on an error the default style is used.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        let planned_run = match plan.size {
            RunSize::Lasting(length) => Some(length.mul_f64(USUAL_FACTOR) + RUN_OVERHEAD),
            RunSize::Timed(length) => Some(length + WARM_UP),
            RunSize::Operations(_) => None,
        };
        let progress = Self {
            terminal: panel.is_some() || !bar.is_hidden(),
            bar,
            panel,
            now: PanelState::default(),
            paced: None,
            last_line: Instant::now(),
            planned_run,
            runs: 0,
            done: 0,
            shown: 0,
            sequential,
            open: None,
        };
        progress.say(&format!(
            "seed {}, {} cells, {}{} pairs",
            plan.seed,
            plan.cells.len(),
            if sequential { "at most " } else { "" },
            plan.pairs
        ));
        progress
    }

    pub(crate) fn on(&mut self, event: &Event<'_>) {
        match event {
            Event::Planned { runs } => {
                self.runs = *runs;
                self.bar
                    .set_length(u64::try_from(*runs).unwrap_or(u64::MAX));
                self.line();
            }
            Event::Running {
                cell,
                arm,
                pair,
                calibrating,
            } => {
                let what = if *calibrating { " (calibrating)" } else { "" };
                self.bar
                    .set_message(format!("{}; {cell} {arm}{what}", self.left()));
                self.now.begin(cell, arm, *pair, *calibrating);
            }
            Event::Ran { run } => self.now.end(run),
            Event::Visited { runs_done } => {
                let first = self.paced.is_none() && *runs_done > 0;
                if first {
                    self.paced = Some((Instant::now(), *runs_done));
                }
                self.done = *runs_done;
                self.bar
                    .set_position(u64::try_from(self.done).unwrap_or(u64::MAX));
                if first || self.last_line.elapsed() >= LINE_PAUSE {
                    self.line();
                }
            }
            Event::Rejected { run, repeated } => {
                let next = if *repeated {
                    "to be repeated"
                } else {
                    "not repeated"
                };
                let reason = run.rejected.as_deref().unwrap_or_default();
                self.notice(&format!(
                    "rejected {} {}, {next}: {reason}",
                    run.cell, run.arm
                ));
            }
            Event::GivenUp { cell, arm, reason } => {
                self.notice(&format!("gave up on {arm} in {cell}: {reason}"));
            }
        }
        self.show();
    }

    /// Takes the cells that are not precise enough after a round; later lines mention them.
    pub(crate) fn on_check(&mut self, open: &[Width]) {
        let unknown = open.iter().any(|width| width.half_width.is_none());
        let widest = open.iter().filter_map(|width| width.half_width);
        let widest = widest.max_by(f64::total_cmp).filter(|_| !unknown);
        self.open = widest.map(|half| {
            let cells = if open.len() == 1 { "cell" } else { "cells" };
            format!("\u{b1}{} % in {} {cells}", percent(half), open.len())
        });
    }

    pub(crate) fn say(&self, text: &str) {
        match &self.panel {
            Some(panel) => panel.say(text),
            None => self.bar.suspend(|| exit::say(text)),
        }
    }

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        let Some(panel) = &self.panel else {
            return;
        };
        let campaign = Campaign {
            done: self.done,
            planned: self.runs,
            whole: vec![self.counted(), self.left()],
            now: self.now.run.clone(),
            last: self
                .now
                .last
                .iter()
                .map(|(_, parts)| parts.clone())
                .collect(),
        };
        panel.update(|dashboard| dashboard.on_campaign(campaign));
    }

    fn counted(&self) -> String {
        let at_most = if self.sequential { "at most " } else { "" };
        format!("{} of {at_most}{} runs", self.done, self.runs)
    }

    /// Prints a rejection or an arm that was given up, up to a maximum number.
    fn notice(&mut self, text: &str) {
        self.shown += 1;
        match self.shown {
            ..=MAX_SHOWN => self.say(text),
            n if n == MAX_SHOWN + 1 => self.say("result.json has the further rejections"),
            _ => {}
        }
    }

    /// Prints a line if stderr is not a terminal.
    fn line(&mut self) {
        self.last_line = Instant::now();
        if !self.terminal {
            exit::say(&format!("{}, {}", self.counted(), self.left()));
        }
    }

    /// Mean time of a run; `None` until the second visit has ended.
    fn pace(&self) -> Option<Duration> {
        let (since, first) = self.paced?;
        let done = u32::try_from(self.done - first).ok()?;
        (done > 0).then(|| since.elapsed() / done)
    }

    /// The remaining time, from the observed pace or from the plan.
    fn left(&self) -> String {
        let left = u32::try_from(self.runs - self.done).unwrap_or(u32::MAX);
        let each = self.pace().or(self.planned_run);
        let left = each.map_or("time left unknown".to_owned(), |each| {
            let seconds = (each * left).as_secs();
            format!("{} min {:02} s left", seconds / 60, seconds % 60)
        });
        match &self.open {
            Some(open) => format!("{left}, {open}"),
            None => left,
        }
    }
}

impl PanelState {
    fn begin(&mut self, cell: &str, arm: &str, pair: u32, calibrating: bool) {
        if self.cell != cell {
            cell.clone_into(&mut self.cell);
            self.last.clear();
        }
        let pair = format!("pair {}", pair + 1);
        self.run = vec![cell.to_owned(), arm.to_owned(), pair];
        if calibrating {
            self.run.push("calibrating".to_owned());
        }
    }

    fn end(&mut self, run: &Run) {
        self.last.retain(|(arm, _)| *arm != run.arm);
        self.last.push((run.arm.clone(), figures(run)));
        // Sorted by arm, so that each arm keeps its line.
        self.last.sort();
    }
}

/// The most important figures of a run.
fn figures(run: &Run) -> Vec<String> {
    const SHOWN: [(&str, &str, f64); 5] = [
        ("tpmc_no_think_time", "New-Orders/min", 1.0),
        ("throughput_ops_s", "ops/s", 1.0),
        ("latency_p50_us", "ms p50", 1e-3),
        ("latency_p99_us", "ms p99", 1e-3),
        ("server_cpu_us_per_op", "µs server CPU per op", 1.0),
    ];
    let mut parts = vec![format!("last of {}:", run.arm)];
    let known = SHOWN.iter().filter_map(|(name, unit, factor)| {
        let value = run.metrics.get(*name)? * factor;
        let decimals = if value >= 100.0 { 0 } else { 2 };
        Some(format!("{value:.decimals$} {unit}"))
    });
    parts.extend(known);
    parts.extend(run.rejected.as_ref().map(|_| "rejected".to_owned()));
    parts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn run(cell: &str, arm: &str, throughput: f64) -> Run {
        Run {
            cell: cell.to_owned(),
            arm: arm.to_owned(),
            pair: 0,
            position: 0,
            started: String::new(),
            seconds: 1.0,
            metrics: BTreeMap::from([
                ("throughput_ops_s".to_owned(), throughput),
                ("latency_p50_us".to_owned(), 250.0),
                ("hit_share".to_owned(), 1.0),
            ]),
            foreign_cpu_s: 0.0,
            rejected: None,
            detail: None,
        }
    }

    #[test]
    fn the_last_run_of_each_arm_is_shown_until_the_next_cell() {
        let mut now = PanelState::default();
        now.begin("set-c1", "saiga", 2, true);
        assert_eq!(now.run, ["set-c1", "saiga", "pair 3", "calibrating"]);
        now.end(&run("set-c1", "saiga", 20_000.0));
        now.end(&run("set-c1", "kernel", 9000.0));
        now.end(&Run {
            rejected: Some("others".to_owned()),
            ..run("set-c1", "saiga", 21_000.0)
        });
        let lines: Vec<String> = now.last.iter().map(|(_, line)| line.join(" ")).collect();
        assert_eq!(
            lines,
            [
                "last of kernel: 9000 ops/s 0.25 ms p50",
                "last of saiga: 21000 ops/s 0.25 ms p50 rejected",
            ]
        );
        now.begin("set-c1", "kernel", 3, false);
        assert_eq!(now.last.len(), 2);
        now.begin("get-c1", "kernel", 0, false);
        assert_eq!(now.last.len(), 0);
    }
}
