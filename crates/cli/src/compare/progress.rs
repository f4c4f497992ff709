//! Progress on stderr: a bar on a terminal, a line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use saiga_experiment::engine::Event;
use saiga_experiment::plan::{Plan, RunSize};

use crate::exit;

/// What starting and stopping servers adds to a run.
const RUN_OVERHEAD: Duration = Duration::from_millis(60);
/// Runs with many clients last longer; on average by this factor.
const USUAL_FACTOR: f64 = 1.15;
/// What starting a server and warming up adds to a run that is cut by the clock.
const WARM_UP: Duration = Duration::from_millis(1100);
/// Between two lines where there is no terminal.
const LINE_PAUSE: Duration = Duration::from_secs(10);
/// Rejections that are shown one by one; the result holds all.
const MAX_SHOWN: u32 = 20;

/// Shows how far an experiment is and how long it will take.
pub(crate) struct Progress {
    bar: ProgressBar,
    terminal: bool,
    /// When the first visit was over, which also makes data, and how many runs it had.
    paced: Option<(Instant, usize)>,
    last_line: Instant,
    planned_run: Option<Duration>,
    runs: usize,
    done: usize,
    shown: u32,
}

impl Progress {
    /// For a plan that begins now; prints its seed and size.
    pub(crate) fn new<L>(plan: &Plan<L>) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        // The template is a constant; a bar with the default style serves as well.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        let planned_run = match plan.size {
            RunSize::Lasting(length) => Some(length.mul_f64(USUAL_FACTOR) + RUN_OVERHEAD),
            RunSize::Timed(length) => Some(length + WARM_UP),
            RunSize::Operations(_) => None,
        };
        exit::say(&format!(
            "seed {}, {} cells, {} pairs",
            plan.seed,
            plan.cells.len(),
            plan.pairs
        ));
        Self {
            terminal: !bar.is_hidden(),
            bar,
            paced: None,
            last_line: Instant::now(),
            planned_run,
            runs: 0,
            done: 0,
            shown: 0,
        }
    }

    /// Takes one event.
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
                calibrating,
                ..
            } => {
                let what = if *calibrating { " (calibrating)" } else { "" };
                self.bar
                    .set_message(format!("{}; {cell} {arm}{what}", self.left()));
            }
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
                    "not repeated again"
                };
                let reason = run.rejected.as_deref().unwrap_or_default();
                self.notice(&format!(
                    "rejected {} {}, {next}: {reason}",
                    run.cell, run.arm
                ));
            }
            Event::GivenUp { cell, arm, reason } => {
                self.notice(&format!("gave up {arm} in {cell}: {reason}"));
            }
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn notice(&mut self, text: &str) {
        self.shown += 1;
        match self.shown {
            ..MAX_SHOWN => self.bar.suspend(|| exit::say(text)),
            MAX_SHOWN => self
                .bar
                .suspend(|| exit::say("more rejections follow; result.json has all")),
            _ => {}
        }
    }

    fn line(&mut self) {
        self.last_line = Instant::now();
        if !self.terminal {
            exit::say(&format!(
                "{} of {} runs, {}",
                self.done,
                self.runs,
                self.left()
            ));
        }
    }

    /// How long a run takes; unknown as long as all that is over is the first visit.
    fn pace(&self) -> Option<Duration> {
        let (since, first) = self.paced?;
        let done = u32::try_from(self.done - first).ok()?;
        (done > 0).then(|| since.elapsed() / done)
    }

    /// From the pace so far, or from the plan before there is one.
    fn left(&self) -> String {
        let left = u32::try_from(self.runs - self.done).unwrap_or(u32::MAX);
        let each = self.pace().or(self.planned_run);
        each.map_or("time left unknown".to_owned(), |each| {
            let seconds = (each * left).as_secs();
            format!("{} min {:02} s left", seconds / 60, seconds % 60)
        })
    }
}
