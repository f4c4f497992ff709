//! The load over time: clients, throughput and response time, at one or several hops.
//!
//! A hop is a place where requests are measured: the client, an ingress, an application, a
//! database. Hops form a tree: each request at a hop leads to requests at the hops below it.

use hdrhistogram::Histogram;

/// Ratio of neighbouring numbers of clients that makes two levels.
const LEVEL_RATIO: f64 = 1.08;
/// Ratio of the clients of two levels from which they are compared: a step that a load chose, and
/// one of requests in progress, whose number varies by itself.
const STEP: [f64; 2] = [1.2, 2.0];

/// One interval of a hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Start, in seconds on the clock of the source.
    pub time_s: f64,
    /// `N`: mean number of clients, or of requests in progress.
    pub clients: f64,
    /// `X`: completed requests per second.
    pub throughput: f64,
    /// `R`: mean response time in milliseconds.
    pub response_ms: f64,
    /// Number of the run to which the interval belongs; sources with one run have run 0.
    pub run: u32,
}

/// A place where requests are measured.
#[derive(Debug, Clone)]
pub struct Hop {
    pub name: String,
    /// Index in [`Load::hops`] of the hop that sends the requests; lower than the own index.
    pub parent: Option<usize>,
    /// Windows by ascending time.
    pub windows: Vec<Window>,
    /// Response times in microseconds, if the source has single requests.
    pub times_us: Option<Histogram<u64>>,
    /// Whether `N` was counted as the requests in progress, as in a capture, and not chosen by the
    /// load. Such a number rises with the response time by itself.
    pub counts_requests: bool,
}

/// All hops, each behind its parent. The first hop is the outermost.
#[derive(Debug, Clone, Default)]
pub struct Load {
    pub hops: Vec<Hop>,
}

/// Means over all windows with a similar number of clients at the outermost hop.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Mean number of clients at the outermost hop.
    pub clients: f64,
    /// Number of windows.
    pub windows: usize,
    /// Mean throughput and mean response time of each hop, in the order of [`Load::hops`]; `None`
    /// if the hop has no window at the times of this level.
    pub hops: Vec<Option<Rates>>,
}

/// Means of one hop at one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Requests per second.
    pub throughput: f64,
    /// Milliseconds, weighted by requests.
    pub response_ms: f64,
}

impl Hop {
    /// A hop without a parent and without single response times.
    #[must_use]
    pub fn new(name: impl Into<String>, windows: Vec<Window>) -> Self {
        Self {
            name: name.into(),
            parent: None,
            windows,
            times_us: None,
            counts_requests: false,
        }
    }

    /// Usual distance of two windows in seconds; infinite with less than two windows.
    fn spacing_s(&self) -> f64 {
        let mut distances: Vec<f64> = self
            .windows
            .windows(2)
            .map(|pair| pair[1].time_s - pair[0].time_s)
            .collect();
        distances.sort_by(f64::total_cmp);
        let middle = distances.get(distances.len() / 2);
        middle.copied().unwrap_or(f64::INFINITY)
    }

    /// The window that is nearest to a time, at most half a `spacing_s` away.
    fn at(&self, time_s: f64, spacing_s: f64) -> Option<&Window> {
        let distance = |window: &&Window| (window.time_s - time_s).abs();
        self.windows
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
            .filter(|window| distance(window) <= spacing_s / 2.0)
    }
}

impl Load {
    /// The outermost hop.
    #[must_use]
    pub fn outer(&self) -> Option<&Hop> {
        self.hops.first()
    }

    /// Windows of the outermost hop, each with the windows of the other hops at the same time.
    #[must_use]
    pub fn aligned(&self) -> Vec<Vec<Option<Window>>> {
        let Some((outer, inner)) = self.hops.split_first() else {
            return Vec::new();
        };
        let spacing_s = outer.spacing_s();
        let row = |window: &Window| {
            let others = inner.iter().map(|hop| hop.at(window.time_s, spacing_s));
            std::iter::once(Some(*window))
                .chain(others.map(Option::<&Window>::copied))
                .collect()
        };
        outer.windows.iter().map(row).collect()
    }

    /// Levels by ascending number of clients.
    #[must_use]
    pub fn levels(&self) -> Vec<Level> {
        let mut rows = self.aligned();
        let clients = |row: &[Option<Window>]| row[0].map_or(0.0, |window| window.clients);
        rows.sort_by(|a, b| clients(a).total_cmp(&clients(b)));
        rows.chunk_by(|low, high| clients(high) / clients(low) < LEVEL_RATIO)
            .map(|rows| Level {
                clients: rows.iter().map(|row| clients(row)).sum::<f64>() / rows.len() as f64,
                windows: rows.len(),
                hops: (0..self.hops.len()).map(|hop| rates(rows, hop)).collect(),
            })
            .collect()
    }

    /// Ratio of the clients of two levels from which they can be compared.
    #[must_use]
    pub fn least_step(&self) -> f64 {
        let [chosen, counted] = STEP;
        let is_counted = self.outer().is_some_and(|hop| hop.counts_requests);
        if is_counted { counted } else { chosen }
    }

    /// Response time of a hop without that of the hops below it, which includes the network up to
    /// them, in milliseconds. `hops` has the rates of each hop. A request at the hop leads to as
    /// many requests below as the ratio of the throughputs says; they are taken to follow each
    /// other.
    #[must_use]
    pub fn own_ms(&self, hops: &[Option<Rates>], hop: usize) -> Option<f64> {
        let here = hops[hop]?;
        let mut own_ms = here.response_ms;
        for below in self.below(hop) {
            let child = hops[below]?;
            own_ms -= child.throughput / here.throughput * child.response_ms;
        }
        Some(own_ms)
    }

    /// A hop with the network up to the hops below it.
    #[must_use]
    pub fn place(&self, hop: usize) -> String {
        let below: Vec<&str> = self
            .below(hop)
            .map(|below| self.hops[below].name.as_str())
            .collect();
        match below.as_slice() {
            [] => self.hops[hop].name.clone(),
            below => format!("{} up to {}", self.hops[hop].name, below.join(" and ")),
        }
    }

    /// Indices of the hops directly below a hop.
    pub fn below(&self, hop: usize) -> impl Iterator<Item = usize> {
        let of = move |other: &Hop| other.parent == Some(hop);
        (0..self.hops.len()).filter(move |index| of(&self.hops[*index]))
    }
}

fn rates(rows: &[Vec<Option<Window>>], hop: usize) -> Option<Rates> {
    let windows: Vec<Window> = rows.iter().filter_map(|row| row[hop]).collect();
    let requests: f64 = windows.iter().map(|one| one.throughput).sum();
    let times: f64 = windows
        .iter()
        .map(|one| one.throughput * one.response_ms)
        .sum();
    (requests > 0.0).then(|| Rates {
        throughput: requests / windows.len() as f64,
        response_ms: times / requests,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(time_s: f64, clients: f64, throughput: f64, response_ms: f64) -> Window {
        Window {
            time_s,
            clients,
            throughput,
            response_ms,
            run: 0,
        }
    }

    #[test]
    fn windows_with_similar_clients_are_one_level() {
        let load = Load {
            hops: vec![Hop::new(
                "client",
                vec![
                    window(0.0, 3000.0, 10_000.0, 290.0),
                    window(1.0, 5000.0, 9_800.0, 500.0),
                    window(2.0, 3010.0, 10_000.0, 310.0),
                ],
            )],
        };
        let levels = load.levels();
        assert_eq!(levels.len(), 2);
        assert_eq!((levels[0].clients, levels[0].windows), (3005.0, 2));
        let low = levels[0].hops[0].unwrap();
        assert_eq!((low.throughput, low.response_ms), (10_000.0, 300.0));
    }

    #[test]
    fn windows_of_hops_are_aligned_by_time() {
        let times = |shift: f64| [0.0, 1.0, 2.0].map(|t| window(t + shift, 10.0, 1.0, t));
        let mut inner = Hop::new("database", times(0.3)[..2].to_vec());
        inner.parent = Some(0);
        let load = Load {
            hops: vec![Hop::new("client", times(0.0).to_vec()), inner],
        };
        let seconds: Vec<Option<f64>> = load
            .aligned()
            .iter()
            .map(|row| row[1].map(|window| window.response_ms))
            .collect();
        assert_eq!(seconds, [Some(0.0), Some(1.0), None]);
        assert_eq!(load.below(0).collect::<Vec<_>>(), [1]);
    }
}
