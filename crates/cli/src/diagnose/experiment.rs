//! An experiment as the source of a diagnosis: the loads of one arm, the host beside them, and the
//! change that the experiment compared.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use saiga_diagnose::observation::change::{self, Binding, Change, Side};
use saiga_diagnose::observation::load::{Hop, Window};
use saiga_diagnose::observation::metrics::Metrics;
use saiga_diagnose::observation::{Gap, Observation};
use saiga_document::number::counted;
use saiga_experiment::result::detail::Series as Drawn;
use saiga_experiment::result::{Arm, Cell, Detail, ExperimentResult, Load, Run};
use saiga_sampler::series::Series;

/// Name of the file with all metrics in the folder of a run.
const METRICS: &str = "host.csv";

/// Reads `result.json`, or the one in a directory of `saiga compare --out`.
pub(crate) fn read(path: &Path) -> anyhow::Result<ExperimentResult> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    ExperimentResult::from_json(&text).with_context(|| path.display().to_string())
}

/// Adds the runs of an arm, that of the experiment's subject without `arm`. `folder` is that of
/// `result.json`.
pub(crate) fn add(
    result: &ExperimentResult,
    folder: &Path,
    arm: Option<&str>,
    observation: &mut Observation,
) -> anyhow::Result<()> {
    let arm = match arm {
        Some(name) => result.arms.iter().find(|arm| arm.name == name),
        None => result.subject(),
    };
    let Some(arm) = arm else {
        let names: Vec<&str> = result.arms.iter().map(|arm| arm.name.as_str()).collect();
        bail!("--arm: the experiment has the arms {}", names.join(", "));
    };
    let cells = steps(result, arm);
    let Some(last) = cells.last() else {
        bail!("no run of {} was accepted", arm.name);
    };
    let mut gap = |reason: String| {
        observation.gaps.push(Gap {
            source: folder.display().to_string(),
            reason,
        });
    };
    let others = result.cells.len() - cells.len();
    if others > 0 {
        gap(format!(
            "{} left out: only {} is judged, with each number of clients",
            counted(others as u64, "other load"),
            last.id
        ));
    }
    let rejected = result.runs.iter().filter(|run| run.rejected.is_some());
    let rejected = rejected.filter(|run| run.arm == arm.name).count();
    if rejected > 0 {
        gap(format!(
            "{} of {} rejected, and not used",
            counted(rejected as u64, "run"),
            arm.name
        ));
    }
    let windows = windows(result, arm, &cells);
    if !windows.is_empty() {
        observation.load.hops.push(Hop::new("client", windows));
    }
    for run in result.accepted(&arm.name, &last.id) {
        add_metrics(run, folder, observation)?;
    }
    observation.change = change(result, last);
    Ok(())
}

/// The cells of one load that differ in the number of clients alone, by ascending number: the load
/// with the most numbers, the first of several.
fn steps<'a>(result: &'a ExperimentResult, arm: &Arm) -> Vec<&'a Cell> {
    let mut groups: Vec<Vec<&Cell>> = Vec::new();
    for cell in &result.cells {
        if result.accepted(&arm.name, &cell.id).next().is_none() {
            continue;
        }
        match groups.iter_mut().find(|group| is_one_load(group[0], cell)) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    let most = groups.iter().map(Vec::len).max().unwrap_or(0);
    let mut cells = groups
        .into_iter()
        .find(|group| group.len() == most)
        .unwrap_or_default();
    let clients = |cell: &Cell| cell.clients().unwrap_or(0.0);
    cells.sort_by(|a, b| clients(a).total_cmp(&clients(b)));
    cells
}

fn is_one_load(one: &Cell, other: &Cell) -> bool {
    let rest = |cell: &Cell| {
        let mut params = cell.params.clone();
        for name in ["clients", "terminals"] {
            params.workload.remove(name);
        }
        params
    };
    rest(one) == rest(other)
}

/// A window for each point of the runs' series, or for each run without series.
fn windows(result: &ExperimentResult, arm: &Arm, cells: &[&Cell]) -> Vec<Window> {
    let runs = cells.iter().flat_map(|cell| {
        let runs = result.accepted(&arm.name, &cell.id);
        runs.filter_map(|run| Some((run, run.load(cell)?)))
    });
    let (mut all, mut begin_s) = (Vec::new(), 0.0);
    for (number, (run, load)) in (0..).zip(runs) {
        let rates = run.detail.as_deref().map(Detail::rates);
        let mut rates = rates.unwrap_or_default();
        if rates.is_empty() {
            rates.push([0.0, load.throughput_s, load.response_ms]);
        }
        all.extend(rates.iter().map(|[at_s, throughput, response_ms]| Window {
            time_s: begin_s + at_s,
            clients: load.clients,
            throughput: *throughput,
            response_ms: *response_ms,
            run: number,
        }));
        let end_s = rates.last().map_or(0.0, |[at_s, ..]| *at_s);
        begin_s += run.seconds.max(end_s) + 1.0;
    }
    all
}

/// Adds the host's metrics in the measured interval: all of them if the folder of the run is there,
/// else those that the report draws.
fn add_metrics(run: &Run, folder: &Path, observation: &mut Observation) -> anyhow::Result<()> {
    let Some(detail) = &run.detail else {
        return Ok(());
    };
    let path = detail
        .folder
        .as_ref()
        .map(|name| folder.join(name).join(METRICS));
    match path.filter(|path| path.exists()) {
        Some(path) => add_file(&Series::read(&path)?, &mut observation.metrics),
        None => add_drawn(detail, &mut observation.metrics),
    }
    Ok(())
}

/// Adds the rows that lie in the phase `measured`, or all rows if there are no phases.
fn add_file(series: &Series, metrics: &mut Metrics) {
    let is_measured = |from_s: f64, to_s: f64| {
        let phase = |time_s: f64| series.marks.iter().rfind(|mark| mark.time_s <= time_s);
        let is_inside = |time_s| phase(time_s).is_some_and(|mark| mark.name == "measured");
        series.marks.is_empty() || (is_inside(from_s) && is_inside(to_s))
    };
    for name in &series.names {
        let Some(values) = series.column(name) else {
            continue;
        };
        let mut before_s = 0.0;
        for (time_s, value) in series.times_s.iter().zip(values) {
            if let Some(value) = value.filter(|_| is_measured(before_s, *time_s)) {
                metrics.add(name, time_s - before_s, value);
            }
            before_s = *time_s;
        }
    }
}

fn add_drawn(detail: &Detail, metrics: &mut Metrics) {
    let [from_s, to_s] = detail.measured().unwrap_or([0.0, f64::INFINITY]);
    for Drawn {
        name, at_s, mean, ..
    } in &detail.series
    {
        for (at_s, mean) in at_s.iter().zip(mean) {
            if let Some(mean) = mean.filter(|_| (from_s..to_s).contains(at_s)) {
                metrics.add(name, 1.0, mean);
            }
        }
    }
}

/// The comparison of the subject with its reference in a cell.
fn change(result: &ExperimentResult, cell: &Cell) -> Option<Change> {
    let subject = result.subject()?;
    let reference = subject.varied(&result.arms).or(result.arms.first())?;
    let compared = result.comparisons.iter().find(|one| {
        let is_throughput = one.metric == "throughput_ops_s";
        is_throughput && one.cell == cell.id && one.a == reference.name && one.b == subject.name
    })?;
    let nodes = result.host.extra.get("numa_nodes");
    let nodes = nodes.and_then(serde_json::Value::as_u64);
    Some(Change {
        before: side(result, reference, cell),
        after: side(result, subject, cell),
        ratio: compared.ratio.median,
        interval: compared.ratio.ci95,
        nodes: nodes.and_then(|nodes| nodes.try_into().ok()),
    })
}

fn side(result: &ExperimentResult, arm: &Arm, cell: &Cell) -> Side {
    let cores = f64::from(result.host.cores.max(1));
    let busy = |run: &Run| Some(run.metrics.get("server_cpu_s")? / run.seconds / cores);
    let busy: Vec<f64> = result
        .accepted(&arm.name, &cell.id)
        .filter_map(busy)
        .collect();
    Side {
        name: arm.name.clone(),
        load: result.load(&arm.name, cell).map(in_words_of_the_rules),
        binding: Binding::of(&arm.server),
        busy: (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64),
    }
}

fn in_words_of_the_rules(load: Load) -> change::Load {
    let Load {
        clients,
        throughput_s,
        response_ms,
    } = load;
    change::Load {
        clients,
        throughput: throughput_s,
        response_ms,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn result(cells: &[(&str, &str, u32)]) -> ExperimentResult {
        let text = include_str!("../../../measure/experiment/tests/data/result-v1.json");
        let mut result = ExperimentResult::from_json(text).unwrap();
        let run = result.runs[0].clone();
        let arm = result.arms[0].clone();
        result.arms = vec![arm];
        result.subject = None;
        result.comparisons.clear();
        let cell = result.cells[0].clone();
        result.cells.clear();
        result.runs.clear();
        for (id, test, clients) in cells {
            let mut cell = cell.clone();
            cell.id = (*id).to_owned();
            let workload = [("test", json!(test)), ("clients", json!(clients))];
            let workload = workload.map(|(name, value)| (name.to_owned(), value));
            cell.params.workload = BTreeMap::from(workload);
            result.cells.push(cell);
            let mut run = run.clone();
            run.cell = (*id).to_owned();
            run.arm.clone_from(&result.arms[0].name);
            run.rejected = None;
            let metrics = [
                ("throughput_ops_s", 1000.0 * f64::from(*clients)),
                ("latency_mean_us", 900.0),
            ];
            run.metrics = metrics.map(|(name, value)| (name.to_owned(), value)).into();
            result.runs.push(run);
        }
        result
    }

    #[test]
    fn cells_that_differ_in_their_clients_are_steps_of_one_load() {
        let result = result(&[
            ("get-1", "get", 1),
            ("set-50", "set", 50),
            ("set-1", "set", 1),
        ]);
        let mut observation = Observation::default();
        add(&result, Path::new("out"), None, &mut observation).unwrap();
        let clients: Vec<f64> = observation.load.hops[0]
            .windows
            .iter()
            .map(|window| window.clients)
            .collect();
        assert_eq!(clients, [1.0, 50.0]);
        assert!(
            observation.gaps[0]
                .reason
                .starts_with("1 other load left out")
        );
        let unknown = add(&result, Path::new("out"), Some("x"), &mut observation);
        assert!(unknown.unwrap_err().to_string().contains("--arm"));
    }

    #[test]
    fn rows_outside_the_measured_phase_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.csv");
        let text = "time_s,steal_percent\n0.000,\n1.000,90\n# mark 1.000 measured\n2.000,10\n\
                    3.000,20\n# mark 3.500 end\n4.000,90\n";
        fs::write(&path, text).unwrap();
        let mut metrics = Metrics::default();
        add_file(&Series::read(&path).unwrap(), &mut metrics);
        assert_eq!(metrics.mean("steal_percent"), Some(15.0));
    }
}
