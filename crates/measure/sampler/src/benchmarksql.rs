//! Writes BenchmarkSQL's files about the host: `sys_info.csv`, `blk_X.csv`, `net_X.csv`.
//!
//! Names and order of columns are those of `os_collector_linux.py` 5.0, so that BenchmarkSQL's
//! reports and other scripts can read the files. That collector needs Python 2 and divides by the
//! intended interval; Saiga divides by the actual one. Shares add up to 1 without the guest
//! columns, which are part of user and nice. Unknown values are empty.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::config::{BenchmarkSqlSink, Device};
use crate::series::Writer;
use crate::table::Table;

const SYSTEM: [(&str, &str); 10] = [
    ("cpu_user", "cpu_user_percent"),
    ("cpu_nice", "cpu_nice_percent"),
    ("cpu_system", "cpu_system_percent"),
    ("cpu_idle", "cpu_idle_percent"),
    ("cpu_iowait", "cpu_iowait_percent"),
    ("cpu_irq", "cpu_irq_percent"),
    ("cpu_softirq", "cpu_softirq_percent"),
    ("cpu_steal", "steal_percent"),
    ("cpu_guest", "cpu_guest_percent"),
    ("cpu_guest_nice", "cpu_guest_nice_percent"),
];

const DISK: [(&str, &str); 6] = [
    ("rdiops", "reads_s"),
    ("rdmerges", "read_merges_s"),
    ("rdkbps", "read_kb_s"),
    ("wriops", "writes_s"),
    ("wrmerges", "write_merges_s"),
    ("wrkbps", "write_kb_s"),
];

const NETWORK: [(&str, &str); 4] = [
    ("rxpktsps", "rx_packets_s"),
    ("rxkbps", "rx_kb_s"),
    ("txpktsps", "tx_packets_s"),
    ("txkbps", "tx_kb_s"),
];

/// One output file; `device` is `None` for `sys_info.csv`.
#[derive(Debug)]
struct Output {
    path: PathBuf,
    file: File,
    device: Option<Device>,
}

/// All output files of a run.
#[derive(Debug)]
pub(crate) struct Outputs {
    run: u32,
    page_kb: f64,
    outputs: Vec<Output>,
}

/// A file that could not be created or written.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

impl Outputs {
    /// Creates the files for the system and for each device, and writes their headers.
    pub(crate) fn create(
        sink: &BenchmarkSqlSink,
        devices: &[Device],
        page_bytes: u64,
    ) -> Result<Self, Failure> {
        let all = [None].into_iter().chain(devices.iter().cloned().map(Some));
        let outputs = all.map(|device| {
            let name = device.as_ref().map_or("sys_info".into(), Device::to_string);
            let path = sink.directory.join(format!("{name}.csv"));
            match Writer::create_private(&path).and_then(|file| with_header(file, device.as_ref()))
            {
                Ok(file) => Ok(Output { path, file, device }),
                Err(source) => Err(Failure { path, source }),
            }
        });
        Ok(Self {
            run: sink.run,
            page_kb: page_bytes as f64 / 1024.0,
            outputs: outputs.collect::<Result<_, _>>()?,
        })
    }

    /// Appends a row to every file.
    pub(crate) fn row(&mut self, time_s: f64, table: &Table) -> Result<(), Failure> {
        let start = format!("{},{:.0}", self.run, time_s * 1000.0);
        for output in &mut self.outputs {
            let line = match &output.device {
                None => format!("{start}{}\n", system(table, self.page_kb)),
                Some(device) => format!("{start},{device}{}\n", of_device(table, device)),
            };
            output
                .file
                .write_all(line.as_bytes())
                .map_err(|source| Failure {
                    path: output.path.clone(),
                    source,
                })?;
        }
        Ok(())
    }
}

fn with_header(mut file: File, device: Option<&Device>) -> io::Result<File> {
    let names = |columns: &[(&str, &str)]| -> String {
        columns.iter().map(|(name, _)| format!(",{name}")).collect()
    };
    let header = match device {
        None => format!("run,elapsed{},vm_nr_dirty\n", names(&SYSTEM)),
        Some(Device::Disk(_)) => format!("run,elapsed,device{}\n", names(&DISK)),
        Some(Device::Network(_)) => format!("run,elapsed,device{}\n", names(&NETWORK)),
    };
    file.write_all(header.as_bytes())?;
    Ok(file)
}

fn system(table: &Table, page_kb: f64) -> String {
    let shares = SYSTEM.iter().map(|(_, metric)| {
        let share = table.value(metric).map(|percent| percent / 100.0);
        cell(share)
    });
    let dirty = table.value("mem_dirty_kb").map(|kb| kb / page_kb);
    shares.chain([cell(dirty)]).collect()
}

fn of_device(table: &Table, device: &Device) -> String {
    let (prefix, columns): (String, &[(&str, &str)]) = match device {
        Device::Disk(name) => (format!("disk_{name}"), &DISK),
        Device::Network(name) => (format!("net_{name}"), &NETWORK),
    };
    let metrics = columns
        .iter()
        .map(|(_, metric)| format!("{prefix}_{metric}"));
    metrics.map(|metric| cell(table.value(&metric))).collect()
}

fn cell(value: Option<f64>) -> String {
    let Some(value) = value else {
        return ",".into();
    };
    let text = format!("{value:.6}");
    format!(",{}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(cells: &[(&str, f64)]) -> Table {
        let mut table = Table::default();
        for (name, value) in cells {
            let column = table.column(name);
            table.put(column, Some(*value));
        }
        table
    }

    /// The headers are exactly those of os_collector_linux.py 5.0.
    #[test]
    fn files_have_the_format_of_benchmarksql() {
        let directory = tempfile::tempdir().unwrap();
        let sink = BenchmarkSqlSink {
            directory: directory.path().into(),
            run: 17,
        };
        let devices = Device::list("blk_vda net_lo").unwrap();
        let mut outputs = Outputs::create(&sink, &devices, 4096).unwrap();
        let row = [
            ("cpu_user_percent", 25.0),
            ("cpu_idle_percent", 100.0 / 3.0),
            ("steal_percent", 0.0),
            ("mem_dirty_kb", 4000.0),
            ("disk_vda_writes_s", 120.0),
            ("disk_vda_write_kb_s", 0.5),
            ("net_lo_rx_packets_s", 12.0),
            ("net_lo_tx_kb_s", 1234.567),
        ];
        outputs.row(1.0014, &table(&row)).unwrap();
        for (name, text) in [
            (
                "sys_info.csv",
                "run,elapsed,cpu_user,cpu_nice,cpu_system,cpu_idle,cpu_iowait,cpu_irq,cpu_softirq,\
                 cpu_steal,cpu_guest,cpu_guest_nice,vm_nr_dirty\n\
                 17,1001,0.25,,,0.333333,,,,0,,,1000\n",
            ),
            (
                "blk_vda.csv",
                "run,elapsed,device,rdiops,rdmerges,rdkbps,wriops,wrmerges,wrkbps\n\
                 17,1001,blk_vda,,,,120,,0.5\n",
            ),
            (
                "net_lo.csv",
                "run,elapsed,device,rxpktsps,rxkbps,txpktsps,txkbps\n\
                 17,1001,net_lo,12,,,1234.567\n",
            ),
        ] {
            let written = std::fs::read_to_string(directory.path().join(name)).unwrap();
            assert_eq!(written, text);
        }
        let again = Outputs::create(&sink, &devices, 4096).unwrap_err();
        assert_eq!(again.path, directory.path().join("sys_info.csv"));
    }
}
