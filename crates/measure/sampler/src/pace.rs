//! How often a costly file is read: rarer, the more there is in it.
//!
//! Where nothing was read, cells stay empty, and rates are over the longer time. So the cost
//! per second has a bound on a machine with 256 cores and on one with 800 connections, each a
//! process.

/// Decides in which rows something is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    units_per_row: usize,
    wait_rows: usize,
}

impl Pace {
    /// At most `units_per_row` are read per row, on average.
    pub(crate) fn new(units_per_row: usize) -> Self {
        Self {
            units_per_row,
            wait_rows: 0,
        }
    }

    /// Asked once per row.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.wait_rows == 0;
        self.wait_rows = self.wait_rows.saturating_sub(1);
        due
    }

    /// What the last look was worth.
    pub(crate) fn on_read(&mut self, units: usize) {
        self.wait_rows = units.div_ceil(self.units_per_row).saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_in_ten_rows(units: usize) -> usize {
        let mut pace = Pace::new(100);
        let due = (0..10).filter(|_| {
            let due = pace.is_due();
            if due {
                pace.on_read(units);
            }
            due
        });
        due.count()
    }

    #[test]
    fn more_to_read_is_read_less_often() {
        for (units, rows) in [(0, 10), (1, 10), (100, 10), (101, 5), (500, 2), (1000, 1)] {
            assert_eq!(due_in_ten_rows(units), rows, "{units}");
        }
    }
}
