//! `/proc/loadavg`: the load averages.

use procfs::{FromRead, LoadAverage};

use crate::table::{Column, Table};

use super::text::Files;

/// Reads the load averages from `/proc/loadavg`.
#[derive(Debug)]
pub(crate) struct Load {
    columns: [Column; 3],
}

impl Load {
    pub(crate) fn new(table: &mut Table) -> Self {
        let names = ["load_1min_tasks", "load_5min_tasks", "load_15min_tasks"];
        Self {
            columns: names.map(|name| table.column(name)),
        }
    }

    pub(crate) fn sample(&mut self, files: &mut Files, table: &mut Table) {
        let bytes = files.proc_bytes("loadavg");
        let Some(load) = bytes.and_then(|bytes| LoadAverage::from_read(bytes).ok()) else {
            return;
        };
        for (column, average) in self.columns.iter().zip([load.one, load.five, load.fifteen]) {
            // `as f64` would turn 0.96_f32 into 0.9599999785; text keeps 0.96.
            table.put(*column, average.to_string().parse().ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Host;
    use super::*;

    #[test]
    fn averages_have_the_digits_that_the_kernel_prints() {
        let host = Host::new();
        host.proc("loadavg", "0.96 5.19 6.70 2/91 645\n");
        let mut table = Table::default();
        let mut load = Load::new(&mut table);
        load.sample(&mut host.files(), &mut table);
        assert_eq!(table.cells(), [Some(0.96), Some(5.19), Some(6.70)]);
        table.clear();
        host.proc("loadavg", "torn");
        load.sample(&mut host.files(), &mut table);
        assert_eq!(table.cells(), [None; 3]);
    }
}
