//! One run in a few numbers: each metric, whose CPU time it was, and how full disks got.
//!
//! Counted are rows whose whole interval lies in the phase [`crate::config::MEASURED`]; in a
//! run without marks, all of them. A mark between two rows costs the one row around it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::MEASURED;
use crate::series::Mark;
use crate::sketch::Sketch;
use crate::source::cpu::Work;
use crate::source::filesystem::Fill;

/// What [`crate::Sampler::stop`] answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Rows that were counted.
    pub rows: u64,
    /// Their time.
    pub seconds: f64,
    /// By name; metrics that were never known are left out.
    pub metrics: BTreeMap<String, Metric>,
    /// Where the CPU time of the same rows went.
    pub cpu: CpuSeconds,
    /// The directories of the configuration, in its order.
    pub file_systems: Vec<FileSystem>,
    /// The phases of the run.
    pub marks: Vec<Mark>,
    /// What sampling cost.
    pub cost: Cost,
    /// What could not be done, in whole sentences.
    pub warnings: Vec<String>,
}

/// One metric in the rows that were counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Rows in which it was known.
    pub rows: u64,
    /// Weighted by the time of each row.
    pub mean: f64,
    /// Exceeded by one row in twenty; within 1 %.
    pub p95: f64,
    /// The greatest value of a row.
    pub max: f64,
}

/// CPU time of the host by whom it served.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuSeconds {
    /// By name of the group.
    pub groups: BTreeMap<String, f64>,
    /// The sampler's own threads; taken off the group that our process is in.
    pub sampler_s: f64,
    /// Everybody else: `busy_s` less groups and sampler. The kernel's own work that it books
    /// on no process is in here, too.
    pub others_s: f64,
    /// All cores, without idle and waiting.
    pub busy_s: f64,
    /// The part of `busy_s` that the kernel booked as interrupts and softirqs.
    pub interrupts_s: f64,
    /// What the hypervisor gave to other guests while we wanted it.
    pub steal_s: f64,
    /// Rows in which the kernel's counters went backwards: nothing of them is in the sums.
    pub unknown_rows: u64,
}

/// A directory's file system before and after the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileSystem {
    /// As the configuration names it.
    pub directory: PathBuf,
    /// At the start; `None` when it was not there.
    pub before: Option<Fill>,
    /// At the end.
    pub after: Option<Fill>,
}

impl FileSystem {
    /// The share in use before and after, as `fill_data_mysql_before_percent`; what is not known is
    /// left out.
    pub fn levels(&self) -> impl Iterator<Item = (String, f64)> {
        let plain = |c: char| match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => c,
            _ => '_',
        };
        let directory = self.directory.to_string_lossy();
        let name: String = directory.chars().map(plain).collect();
        let moments = [("before", self.before), ("after", self.after)];
        moments.into_iter().filter_map(move |(when, fill)| {
            let name = name.trim_matches('_');
            Some((format!("fill_{name}_{when}_percent"), fill?.used_percent))
        })
    }
}

/// What sampling cost over the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU seconds of our threads.
    pub cpu_s: f64,
    /// Seconds from the start to the end.
    pub wall_s: f64,
    /// Bytes of the series file.
    pub file_bytes: u64,
}

/// What one row brings besides its cells.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) work: Option<Work>,
    /// CPU seconds of the groups; `None` when they were not looked at.
    pub(crate) groups: Option<Vec<f64>>,
    pub(crate) sampler_s: f64,
    /// The group that our process is in.
    pub(crate) our_group: Option<usize>,
}

#[derive(Debug, Clone, Default)]
struct Column {
    rows: u64,
    weight_s: f64,
    weighted: f64,
    max: Option<f64>,
    sketch: Sketch,
}

/// Adds rows up as they come; memory does not grow with their number.
#[derive(Debug)]
pub(crate) struct Builder {
    group_names: Vec<String>,
    rows: u64,
    seconds: f64,
    columns: Vec<Column>,
    groups: Vec<f64>,
    cpu: CpuSeconds,
    marks: Vec<Mark>,
}

impl Builder {
    pub(crate) fn new(group_names: Vec<String>) -> Self {
        Self {
            groups: vec![0.0; group_names.len()],
            group_names,
            rows: 0,
            seconds: 0.0,
            columns: Vec::new(),
            cpu: CpuSeconds::default(),
            marks: Vec::new(),
        }
    }

    /// The first mark makes what came before it not measured.
    pub(crate) fn mark(&mut self, mark: Mark) {
        if self.marks.is_empty() {
            *self = Self::new(std::mem::take(&mut self.group_names));
        }
        self.marks.push(mark);
    }

    /// The name of the phase that is in force.
    pub(crate) fn phase(&self) -> &str {
        self.marks.last().map_or("", |mark| &mark.name)
    }

    /// Adds a row that has an interval, if it counts.
    pub(crate) fn row(&mut self, cells: &[Option<f64>], times: &Times) {
        if !is_measured(&self.marks, times.from_s, times.to_s) {
            return;
        }
        let seconds = times.to_s - times.from_s;
        self.rows += 1;
        self.seconds += seconds;
        self.columns.resize_with(cells.len(), Column::default);
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            if let Some(value) = cell {
                column.add(*value, seconds);
            }
        }
        self.attribute(times);
    }

    fn attribute(&mut self, times: &Times) {
        let Some(work) = times.work else {
            // Parts of a sum that nobody knows would leave nothing to the others.
            self.cpu.unknown_rows += 1;
            return;
        };
        self.cpu.sampler_s += times.sampler_s;
        self.cpu.busy_s += work.busy_s;
        self.cpu.interrupts_s += work.interrupts_s;
        self.cpu.steal_s += work.steal_s;
        for (sum, used) in self.groups.iter_mut().zip(times.groups.iter().flatten()) {
            *sum += used;
        }
        if let Some(ours) = times.our_group.and_then(|group| self.groups.get_mut(group)) {
            *ours -= times.sampler_s;
        }
    }

    pub(crate) fn finish(
        self,
        names: &[String],
        file_systems: Vec<FileSystem>,
        cost: Cost,
        warnings: Vec<String>,
    ) -> Summary {
        let mut cpu = self.cpu;
        let groups = self.groups.into_iter().map(|seconds| seconds.max(0.0));
        cpu.groups = self.group_names.into_iter().zip(groups).collect();
        let known = cpu.groups.values().sum::<f64>() + cpu.sampler_s;
        // Clocks of processes are finer than those of cores: the difference may be below zero.
        cpu.others_s = (cpu.busy_s - known).max(0.0);
        let columns = names.iter().zip(&self.columns);
        let metrics = columns.filter_map(|(name, column)| Some((name.clone(), column.metric()?)));
        Summary {
            rows: self.rows,
            seconds: self.seconds,
            metrics: metrics.collect(),
            cpu,
            file_systems,
            marks: self.marks,
            cost,
            warnings,
        }
    }
}

impl Column {
    fn add(&mut self, value: f64, seconds: f64) {
        self.rows += 1;
        self.weight_s += seconds;
        self.weighted += value * seconds;
        self.max = Some(self.max.map_or(value, |max| max.max(value)));
        self.sketch.add(value);
    }

    fn metric(&self) -> Option<Metric> {
        let max = self.max?;
        Some(Metric {
            rows: self.rows,
            mean: self.weighted / self.weight_s,
            p95: self.sketch.quantile(0.95)?.min(max),
            max,
        })
    }
}

/// Whether no other phase than the measured one touches the interval.
fn is_measured(marks: &[Mark], from_s: f64, to_s: f64) -> bool {
    if marks.is_empty() {
        return true;
    }
    let before = marks.iter().rev().find(|mark| mark.time_s <= from_s);
    let mut within = marks
        .iter()
        .filter(|mark| mark.time_s > from_s && mark.time_s < to_s);
    before.is_some_and(|mark| mark.name == MEASURED) && within.all(|mark| mark.name == MEASURED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(time_s: f64, name: &str) -> Mark {
        Mark {
            time_s,
            name: name.into(),
        }
    }

    fn times(from_s: f64, to_s: f64) -> Times {
        Times {
            from_s,
            to_s,
            ..Times::default()
        }
    }

    fn finish(builder: Builder, names: &[&str]) -> Summary {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        builder.finish(&names, Vec::new(), Cost::default(), Vec::new())
    }

    #[test]
    fn only_whole_rows_of_the_measured_phase_count() {
        let marks = [
            mark(1.0, "warm-up"),
            mark(2.5, "measured"),
            mark(5.0, "gap"),
            mark(6.0, "measured"),
            mark(8.0, "end"),
        ];
        for (from_s, measured) in [
            (0.0, false),
            (1.0, false),
            (2.0, false),
            (3.0, true),
            (4.0, true),
            (5.0, false),
            (6.0, true),
            (7.0, true),
            (8.0, false),
        ] {
            let found = is_measured(&marks, from_s, from_s + 1.0);
            assert_eq!(found, measured, "{from_s}");
        }
        assert!(is_measured(&[], 0.0, 1.0));
    }

    #[test]
    fn a_metric_is_weighted_by_time_and_keeps_its_peak() {
        let mut builder = Builder::new(Vec::new());
        for (from_s, to_s, value) in [
            (0.0, 1.0, Some(10.0)),
            (1.0, 4.0, Some(20.0)),
            (4.0, 5.0, None),
        ] {
            builder.row(&[value, None], &times(from_s, to_s));
        }
        let summary = finish(builder, &["a_s", "never_s"]);
        assert_eq!((summary.rows, summary.seconds), (3, 5.0));
        let metric = summary.metrics["a_s"];
        assert_eq!((metric.rows, metric.mean, metric.max), (2, 17.5, 20.0));
        assert!((metric.p95 - 20.0).abs() < 0.2);
        assert_eq!(summary.metrics.len(), 1);
    }

    #[test]
    fn the_first_mark_forgets_what_was_before() {
        let mut builder = Builder::new(vec!["server".into()]);
        builder.row(&[Some(1e6)], &times(0.0, 1.0));
        assert_eq!(builder.phase(), "");
        builder.mark(mark(1.0, "measured"));
        assert_eq!(builder.phase(), "measured");
        builder.row(&[Some(5.0), Some(1.0)], &times(1.0, 2.0));
        let summary = finish(builder, &["a_s", "late_s"]);
        assert_eq!((summary.rows, summary.metrics["a_s"].max), (1, 5.0));
        assert_eq!(summary.metrics["late_s"].rows, 1);
        assert_eq!(summary.marks, [mark(1.0, "measured")]);
    }

    #[test]
    fn cpu_time_is_somebodys() {
        let mut builder = Builder::new(vec!["server".into(), "client".into()]);
        let work = |busy_s| {
            Some(Work {
                busy_s,
                interrupts_s: 0.125,
                steal_s: 0.25,
            })
        };
        for (work, groups) in [
            (work(1.5), Some(vec![0.75, 0.5])),
            (work(0.5), None),
            (None, Some(vec![0.0, 0.25])),
        ] {
            builder.row(
                &[],
                &Times {
                    work,
                    groups,
                    sampler_s: 0.0625,
                    our_group: Some(1),
                    ..times(0.0, 1.0)
                },
            );
        }
        let cpu = finish(builder, &[]).cpu;
        assert_eq!(cpu.groups["server"], 0.75);
        assert_eq!(cpu.groups["client"], 0.375);
        assert_eq!((cpu.sampler_s, cpu.busy_s), (0.125, 2.0));
        assert_eq!(
            (cpu.others_s, cpu.interrupts_s, cpu.steal_s),
            (0.75, 0.25, 0.5)
        );
        assert_eq!(cpu.unknown_rows, 1);
    }
    #[test]
    fn levels_are_metrics_with_the_directory_in_their_name() {
        let fill = |used_percent| Fill {
            total_kb: 1000,
            used_kb: 0,
            available_kb: 0,
            used_percent,
        };
        let mut file_system = FileSystem {
            directory: "/data/MySQL-1".into(),
            before: Some(fill(41.5)),
            after: Some(fill(42.0)),
        };
        let levels: Vec<_> = file_system.levels().collect();
        let name = |when: &str| format!("fill_data_mysql_1_{when}_percent");
        assert_eq!(levels, [(name("before"), 41.5), (name("after"), 42.0)]);
        file_system.before = None;
        assert_eq!(file_system.levels().count(), 1);
    }
}
