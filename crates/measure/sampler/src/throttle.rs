//! Limits how often an expensive file is read.
//!
//! The larger the file, the fewer rows read it. In the other rows its cells are empty, and rates
//! cover the longer interval. This bounds the cost per second on a machine with 256 cores, or with
//! 800 connections that are a process each.

/// Decides which rows read a source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Throttle {
    units_per_row: usize,
    wait_rows: usize,
}

impl Throttle {
    /// Allows reads of `units_per_row` units (bytes, files or processes) per row, on average.
    pub(crate) fn new(units_per_row: usize) -> Self {
        Self {
            units_per_row,
            wait_rows: 0,
        }
    }

    /// Whether this row reads the source. Must be called once per row.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.wait_rows == 0;
        self.wait_rows = self.wait_rows.saturating_sub(1);
        due
    }

    /// Records that this row has read `units` units.
    pub(crate) fn on_read(&mut self, units: usize) {
        self.wait_rows = units.div_ceil(self.units_per_row).saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_in_ten_rows(units: usize) -> usize {
        let mut throttle = Throttle::new(100);
        let due = (0..10).filter(|_| {
            let due = throttle.is_due();
            if due {
                throttle.on_read(units);
            }
            due
        });
        due.count()
    }

    #[test]
    fn larger_sources_are_read_less_often() {
        for (units, rows) in [(0, 10), (1, 10), (100, 10), (101, 5), (500, 2), (1000, 1)] {
            assert_eq!(due_in_ten_rows(units), rows, "{units}");
        }
    }
}
