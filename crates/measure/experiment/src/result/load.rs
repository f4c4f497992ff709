//! The load of runs: number of clients, throughput and response time.

use serde::Serialize;
use serde_json::Value;

use super::detail::Series;
use super::{Cell, Detail, ExperimentResult, Run};

/// Parameters of a cell that are numbers of clients, of which a cell has one.
const CLIENTS: [&str; 2] = ["clients", "terminals"];
/// Requests that each client sends at once.
const PIPELINE: &str = "pipeline";
/// Name of the event that covers the measured interval.
const MEASURED: &str = "measured";

/// Little's numbers of a run or of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// `N`: clients, each with one request at a time.
    pub clients: f64,
    /// `X`: requests or transactions per second.
    pub throughput_s: f64,
    /// `R`: mean response time.
    pub response_ms: f64,
}

impl Load {
    /// `X R / N`: the share of the clients whose request is in progress.
    #[must_use]
    pub fn area_ratio(&self) -> f64 {
        self.throughput_s * self.response_ms / 1000.0 / self.clients
    }
}

impl Cell {
    /// The number of clients, if the load has one.
    #[must_use]
    pub fn clients(&self) -> Option<f64> {
        let number = |name: &str| self.params.workload.get(name).and_then(Value::as_f64);
        let clients = CLIENTS.into_iter().find_map(number)?;
        let at_once = number(PIPELINE).unwrap_or(1.0);
        (clients > 0.0).then_some(clients * at_once)
    }
}

impl Detail {
    /// Start and end of the measured interval, in seconds since the start of the run.
    #[must_use]
    pub fn measured(&self) -> Option<[f64; 2]> {
        let mark = self.marks.iter().find(|mark| mark.what == MEASURED)?;
        Some([mark.from_s, mark.to_s.unwrap_or(f64::INFINITY)])
    }

    /// Throughput and mean response time at each point of the measured interval: seconds since the
    /// start of the run, requests per second, milliseconds. Empty without these series.
    #[must_use]
    pub fn rates(&self) -> Vec<[f64; 3]> {
        let named = |name: &str| self.series.iter().find(|series| series.name == name);
        let (Some(throughput), Some(response)) =
            (named("throughput_ops_s"), named("response_mean_ms"))
        else {
            return Vec::new();
        };
        let [from_s, to_s] = self.measured().unwrap_or([0.0, f64::INFINITY]);
        let points = points(throughput).zip(points(response));
        points
            .filter(|((at_s, _), _)| (from_s..to_s).contains(at_s))
            .filter_map(|((at_s, throughput), (_, response))| Some([at_s, throughput?, response?]))
            .collect()
    }
}

fn points(series: &Series) -> impl Iterator<Item = (f64, Option<f64>)> {
    series.at_s.iter().copied().zip(series.mean.iter().copied())
}

impl Run {
    /// The load of the run in its cell; `None` without a mean response time.
    #[must_use]
    pub fn load(&self, cell: &Cell) -> Option<Load> {
        let throughput_s = *self.metrics.get("throughput_ops_s")?;
        let of_run = self.metrics.get("latency_mean_us").map(|us| us / 1000.0);
        let of_series = || weighted(&self.detail.as_ref()?.rates());
        Some(Load {
            clients: cell.clients()?,
            throughput_s,
            response_ms: of_run.or_else(of_series)?,
        })
    }
}

/// Mean response time, weighted by requests.
fn weighted(rates: &[[f64; 3]]) -> Option<f64> {
    let requests: f64 = rates.iter().map(|[_, throughput, _]| throughput).sum();
    let times: f64 = rates.iter().map(|[_, x, r]| x * r).sum();
    (requests > 0.0).then(|| times / requests)
}

impl ExperimentResult {
    /// The mean load of an arm over its accepted runs in a cell.
    #[must_use]
    pub fn load(&self, arm: &str, cell: &Cell) -> Option<Load> {
        let runs = self.accepted(arm, &cell.id);
        let loads: Vec<Load> = runs.filter_map(|run| run.load(cell)).collect();
        let count = loads.len() as f64;
        let mean = |of: fn(&Load) -> f64| loads.iter().map(of).sum::<f64>() / count;
        (!loads.is_empty()).then(|| Load {
            clients: mean(|load| load.clients),
            throughput_s: mean(|load| load.throughput_s),
            response_ms: mean(|load| load.response_ms),
        })
    }

    /// The accepted runs of an arm in a cell.
    pub fn accepted<'a>(&'a self, arm: &'a str, cell: &'a str) -> impl Iterator<Item = &'a Run> {
        let is_meant =
            move |run: &&Run| run.arm == arm && run.cell == cell && run.rejected.is_none();
        self.runs.iter().filter(is_meant)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::CellParams;
    use super::super::detail::Mark;
    use super::*;
    use serde_json::json;

    fn cell(params: &Value) -> Cell {
        let params = params.as_object().unwrap().clone();
        Cell {
            id: "a".to_owned(),
            params: CellParams {
                placement: "unpinned".to_owned(),
                hog: "none".to_owned(),
                workload: params.into_iter().collect(),
            },
        }
    }

    fn run(metrics: &[(&str, f64)], detail: Option<Detail>) -> Run {
        Run {
            cell: "a".to_owned(),
            arm: "kernel".to_owned(),
            pair: 0,
            position: 0,
            started: String::new(),
            seconds: 3.0,
            metrics: metrics
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect::<BTreeMap<_, _>>(),
            foreign_cpu_s: 0.0,
            rejected: None,
            detail: detail.map(Box::new),
        }
    }

    #[test]
    fn pipelined_requests_are_in_progress_together() {
        let clients = |params: Value| cell(&params).clients();
        assert_eq!(clients(json!({"clients": 50, "pipeline": 16})), Some(800.0));
        assert_eq!(clients(json!({"terminals": 8})), Some(8.0));
        assert_eq!(clients(json!({"clients": 0})), None);
        assert_eq!(clients(json!({"clients": {"a": 1}})), None);
    }

    #[test]
    fn the_response_time_of_series_is_that_of_the_measured_interval() {
        let series = |name: &str, mean: [f64; 4]| Series {
            name: name.to_owned(),
            at_s: vec![0.5, 1.5, 2.5, 3.5],
            mean: mean.map(Some).into(),
            low: Vec::new(),
            high: Vec::new(),
        };
        let detail = Detail {
            series: vec![
                series("throughput_ops_s", [900.0, 100.0, 300.0, 900.0]),
                series("response_mean_ms", [99.0, 8.0, 4.0, 99.0]),
            ],
            marks: vec![Mark {
                from_s: 1.0,
                to_s: Some(3.0),
                what: "measured".to_owned(),
            }],
            ..Detail::default()
        };
        assert_eq!(detail.rates(), [[1.5, 100.0, 8.0], [2.5, 300.0, 4.0]]);
        let cell = cell(&json!({"clients": 1}));
        let load = run(&[("throughput_ops_s", 200.0)], Some(detail)).load(&cell);
        let load = load.unwrap();
        // (100 * 8 + 300 * 4) / 400.
        assert_eq!((load.throughput_s, load.response_ms), (200.0, 5.0));
        assert_eq!(load.area_ratio(), 1.0);
        let without = run(&[("throughput_ops_s", 200.0)], None).load(&cell);
        assert_eq!(without, None);
    }
}
