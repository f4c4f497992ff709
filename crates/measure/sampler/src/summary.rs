//! Summary of a run: each metric, CPU time by group, and usage of file systems.
//!
//! Covers the rows whose whole interval lies in the phase [`crate::config::MEASURED`], or all rows
//! of a run without marks. A row with a mark inside its interval is not counted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::MEASURED;
use crate::series::Mark;
use crate::sketch::Sketch;
use crate::source::cpu::Work;
use crate::source::filesystem::Usage;

/// The summary of a run, returned by [`crate::Sampler::stop`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of counted rows.
    pub rows: u64,
    /// Sum of the intervals of the counted rows.
    pub seconds: f64,
    /// Metrics by name; metrics without any known value are left out.
    pub metrics: BTreeMap<String, Metric>,
    /// CPU time in the counted rows.
    pub cpu: CpuSeconds,
    /// The directories of the configuration, in the same order.
    pub file_systems: Vec<FileSystem>,
    /// All phases of the run.
    pub marks: Vec<Mark>,
    /// Cost of sampling over the whole run.
    pub cost: Cost,
    /// Problems of the sampler, each in a sentence.
    pub warnings: Vec<String>,
}

/// One metric over the counted rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Number of rows in which the value was known.
    pub rows: u64,
    /// Mean, weighted by the interval of each row.
    pub mean: f64,
    /// 95th percentile over the rows, with a relative error of at most 1 %.
    pub p95: f64,
    pub max: f64,
}

/// CPU time of the host, by group of processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuSeconds {
    /// By name of the group.
    pub groups: BTreeMap<String, f64>,
    /// CPU time of the sampler's threads; not included in the group of this process.
    pub sampler_s: f64,
    /// `busy_s` minus groups and sampler: all other processes, and kernel work that is not
    /// accounted to any process.
    pub others_s: f64,
    /// CPU time of all cores, without idle and iowait.
    pub busy_s: f64,
    /// The part of `busy_s` in interrupts and softirqs.
    pub interrupts_s: f64,
    /// Time that the hypervisor gave to other guests although this one was ready to run.
    pub steal_s: f64,
    /// Rows in which a counter of the kernel decreased. These rows are not in the sums.
    pub unknown_rows: u64,
}

/// Usage of a directory's file system before and after the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Path as in the configuration.
    pub directory: PathBuf,
    /// `None` if the directory did not exist at the start.
    pub before: Option<Usage>,
    /// `None` if the directory did not exist at the end.
    pub after: Option<Usage>,
}

impl FileSystem {
    /// Used percentage before and after as metrics, such as `fill_data_mysql_before_percent`.
    /// Unknown values are left out.
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

/// Cost of sampling over the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the sampler's threads.
    pub cpu_s: f64,
    /// Time from start to stop.
    pub wall_s: f64,
    /// Size of the series file.
    pub file_bytes: u64,
}

/// Interval and CPU times of one row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) work: Option<Work>,
    /// CPU seconds of each group; `None` if this row has not read the processes.
    pub(crate) groups: Option<Vec<f64>>,
    pub(crate) sampler_s: f64,
    /// The group that contains this process.
    pub(crate) own_group: Option<usize>,
}

#[derive(Debug, Clone, Default)]
struct Column {
    rows: u64,
    weight_s: f64,
    weighted: f64,
    max: Option<f64>,
    sketch: Sketch,
}

/// Builds the summary row by row, in memory that does not grow with the number of rows.
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

    /// Starts a phase. The first mark discards all earlier rows, because they belong to no phase.
    pub(crate) fn mark(&mut self, mark: Mark) {
        if self.marks.is_empty() {
            *self = Self::new(std::mem::take(&mut self.group_names));
        }
        self.marks.push(mark);
    }

    /// Name of the current phase; empty before the first mark.
    pub(crate) fn phase(&self) -> &str {
        self.marks.last().map_or("", |mark| &mark.name)
    }

    /// Adds a row if its interval is measured.
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
            // Without the total of this row, its group times would reduce `others_s` of other rows.
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
        if let Some(own) = times.own_group.and_then(|group| self.groups.get_mut(group)) {
            *own -= times.sampler_s;
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
        // The clocks of processes are finer than those of cores, so the difference may be negative.
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

/// Whether the whole interval is in the measured phase.
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
    fn the_first_mark_discards_earlier_rows() {
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
    fn cpu_time_is_divided_between_groups_sampler_and_others() {
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
                    own_group: Some(1),
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
        let fill = |used_percent| Usage {
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
