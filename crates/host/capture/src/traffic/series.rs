//! Events per window, in any order of time, and the integral of outstanding requests.
//!
//! A request adds one to the level when it begins and takes one away when it ends. Each of the
//! two touches one window only: its share of that window, and the level of all windows behind.

use std::time::Duration;

use super::{Budget, Window, sketch::Sketch};
use crate::Timestamp;

/// Windows without events that are written between two with events: one hour.
const LONGEST_GAP_S: u64 = 3_600;

#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub(super) arrivals: u64,
    pub(super) responses: u64,
    pub(super) total_ns: u64,
    pub(super) longest_ns: u64,
    pub(super) times: Sketch,
    pub(super) opened: u64,
    pub(super) closed: u64,
    pub(super) resets: u64,
    pub(super) retransmissions: u64,
    pub(super) syn_retransmissions: u64,
    pub(super) zero_windows: u64,
    pub(super) bytes_from_clients: u64,
    pub(super) bytes_to_clients: u64,
    /// Change of the level within the window, and its integral until the window's end.
    change: i64,
    area_ns: i128,
}

#[derive(Debug, Clone)]
pub(super) struct Series {
    window_ns: u64,
    cells: Vec<(u64, Cell)>,
}

impl Series {
    pub(super) fn new(window_ns: u64) -> Self {
        Self {
            window_ns,
            cells: Vec::new(),
        }
    }

    /// The window of a time; `None` if there are too many.
    pub(super) fn cell(&mut self, at: Timestamp, budget: &mut Budget) -> Option<&mut Cell> {
        let index = at.0 / self.window_ns;
        let place = match self.cells.last() {
            Some((last, _)) if *last == index => self.cells.len() - 1,
            Some((last, _)) if *last > index => {
                match self.cells.binary_search_by_key(&index, |(index, _)| *index) {
                    Ok(place) => place,
                    Err(place) => self.insert(place, index, budget)?,
                }
            }
            Some(_) | None => self.insert(self.cells.len(), index, budget)?,
        };
        Some(&mut self.cells[place].1)
    }

    fn insert(&mut self, place: usize, index: u64, budget: &mut Budget) -> Option<usize> {
        if !budget.take_window() {
            return None;
        }
        self.cells.insert(place, (index, Cell::default()));
        Some(place)
    }

    /// The number of outstanding requests changes by `change`.
    pub(super) fn level(&mut self, at: Timestamp, change: i64, budget: &mut Budget) {
        let left = self.window_ns - at.0 % self.window_ns;
        if let Some(cell) = self.cell(at, budget) {
            cell.change += change;
            cell.area_ns += i128::from(change) * i128::from(left);
        }
    }

    /// All windows from the first to the last packet of the capture.
    pub(super) fn finish(self, span: (Timestamp, Timestamp), budget: &mut Budget) -> Vec<Window> {
        let (first, last) = (span.0.0 / self.window_ns, span.1.0 / self.window_ns);
        let mut windows = Vec::new();
        let (mut level, mut next) = (0, first);
        let Self { window_ns, cells } = self;
        let longest_gap = LONGEST_GAP_S * 1_000_000_000 / window_ns;
        let mut fill =
            |windows: &mut Vec<Window>, from: u64, to: u64, level: i64| {
                if to.saturating_sub(from) <= longest_gap {
                    let empty = (from..to).take_while(|_| budget.take_window());
                    windows.extend(empty.map(|index| {
                        window(index, window_ns, level, &Cell::default(), (first, last))
                    }));
                }
            };
        for (index, cell) in &cells {
            fill(&mut windows, next, *index, level);
            windows.push(window(*index, window_ns, level, cell, (first, last)));
            level += cell.change;
            next = index + 1;
        }
        fill(&mut windows, next, last.saturating_add(1), level);
        windows
    }
}

fn window(index: u64, length_ns: u64, level: i64, cell: &Cell, ends: (u64, u64)) -> Window {
    let area_ns = i128::from(level) * i128::from(length_ns) + cell.area_ns;
    let mean = cell
        .total_ns
        .checked_div(cell.responses)
        .map(Duration::from_nanos);
    let quantile = |share| cell.times.quantile(share).map(Duration::from_nanos);
    Window {
        start: Timestamp(index.saturating_mul(length_ns)),
        length: Duration::from_nanos(length_ns),
        complete: index > ends.0 && index < ends.1,
        arrivals: cell.arrivals,
        responses: cell.responses,
        concurrency: area_ns as f64 / length_ns as f64,
        response_mean: mean,
        response_p50: quantile(0.5),
        response_p99: quantile(0.99),
        response_max: mean.map(|_| Duration::from_nanos(cell.longest_ns)),
        opened: cell.opened,
        closed: cell.closed,
        resets: cell.resets,
        retransmissions: cell.retransmissions,
        syn_retransmissions: cell.syn_retransmissions,
        zero_windows: cell.zero_windows,
        bytes_from_clients: cell.bytes_from_clients,
        bytes_to_clients: cell.bytes_to_clients,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    const SECOND: u64 = 1_000_000_000;

    /// A request from 0.5 s to 3.25 s, and one from 1.0 s to 1.5 s whose end is told last.
    #[test]
    fn concurrency_is_the_integral_of_outstanding_requests() {
        let mut budget = Budget::new(&Limits::default());
        let mut series = Series::new(SECOND);
        for (at, change) in [
            (SECOND / 2, 1),
            (SECOND, 1),
            (3 * SECOND + SECOND / 4, -1),
            (3 * SECOND / 2, -1),
        ] {
            series.level(Timestamp(at), change, &mut budget);
        }
        let windows = series.finish((Timestamp(0), Timestamp(4 * SECOND)), &mut budget);
        let levels: Vec<_> = windows.iter().map(|window| window.concurrency).collect();
        assert_eq!(levels, [0.5, 1.5, 1.0, 0.25, 0.0]);
        let complete: Vec<_> = windows.iter().map(|window| window.complete).collect();
        assert_eq!(complete, [false, true, true, true, false]);
    }

    #[test]
    fn windows_are_bounded() {
        let limits = Limits {
            windows: 10,
            ..Limits::default()
        };
        let mut budget = Budget::new(&limits);
        let mut series = Series::new(SECOND);
        for second in 0..100 {
            series.level(Timestamp(second * SECOND), 1, &mut budget);
        }
        let windows = series.finish((Timestamp(0), Timestamp(99 * SECOND)), &mut budget);
        assert_eq!(windows.len(), 10);
        assert!(budget.windows_left_out >= 90);
    }
}
