//! Makes rows from the kernel's files. Time is an argument; `sampler` has the thread.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::benchmarksql::{Failure, Outputs};
use crate::config::{Config, Device, Sink};
use crate::sampler::StartError;
use crate::series::{Mark, Writer};
use crate::snapshot::Snapshot;
use crate::source::cpu::{Cpu, Work};
use crate::source::disk::Disks;
use crate::source::filesystem::Usage;
use crate::source::interrupts::Interrupts;
use crate::source::load::Load;
use crate::source::memory::Memory;
use crate::source::network::Networks;
use crate::source::numa::Numa;
use crate::source::processes::{Processes, Units};
use crate::source::tcp::Tcp;
use crate::source::text::Files;
use crate::status::StatusReader;
use crate::summary::{Builder, Cost, FileSystem, Summary, Times};
use crate::table::Table;

/// The readers of all files and databases.
#[derive(Debug)]
struct Sources {
    cpu: Cpu,
    load: Load,
    memory: Memory,
    numa: Numa,
    disks: Disks,
    networks: Networks,
    tcp: Tcp,
    interrupts: Interrupts,
    processes: Processes,
    status_readers: Vec<StatusReader>,
}

/// Reads all sources, writes rows to the output files, and builds the summary.
#[derive(Debug)]
pub(crate) struct Engine {
    files: Files,
    table: Table,
    sources: Sources,
    series: Option<(PathBuf, Writer)>,
    benchmarksql: Option<Outputs>,
    builder: Builder,
    file_systems: Vec<FileSystem>,
    warnings: Vec<String>,
    rows: u64,
    last_s: f64,
    last_cpu_s: f64,
}

impl Engine {
    /// Creates the output files and the columns. `start` is the zero of the status threads' clock.
    pub(crate) fn new(config: Config, sink: &Sink, start: Instant) -> Result<Self, StartError> {
        let page_bytes = rustix::param::page_size() as u64;
        let units = Units {
            ticks_per_s: rustix::param::clock_ticks_per_second(),
            page_bytes,
        };
        let mut files = Files::new(config.roots.clone());
        if files.proc("stat").is_none() {
            let path = config.roots.proc.join("stat");
            return Err(StartError::NoProc { path });
        }
        let series = sink.series.clone().map(open_series).transpose()?;
        let outputs = sink.benchmarksql.as_ref();
        let outputs = outputs.map(|sink| Outputs::create(sink, &config.devices, page_bytes));
        let benchmarksql = outputs.transpose().map_err(|failure| {
            if let Some((path, _)) = &series {
                // An empty file would make the next start fail. If it cannot be removed, the error
                // of the next start names it.
                let _ = std::fs::remove_file(path);
            }
            StartError::file(failure)
        })?;
        let mut table = Table::default();
        let group_names = config.groups.iter().map(|group| group.name.clone());
        let builder = Builder::new(group_names.collect());
        let file_systems = config.directories.iter().map(|directory| FileSystem {
            before: Usage::of(directory),
            after: None,
            directory: directory.clone(),
        });
        let file_systems = file_systems.collect();
        Ok(Self {
            sources: Sources::new(config, units, start, &files, &mut table)?,
            files,
            table,
            series,
            benchmarksql,
            builder,
            file_systems,
            warnings: Vec::new(),
            rows: 0,
            last_s: 0.0,
            last_cpu_s: 0.0,
        })
    }

    /// Starts a new phase of the run.
    pub(crate) fn mark(&mut self, mark: Mark) {
        if let Some((path, writer)) = &mut self.series {
            let written = writer.mark(&mark);
            let written = written.map_err(|source| (path.clone(), source));
            self.stop_writing_series(written);
        }
        self.builder.mark(mark);
    }

    /// Replaces the root processes of a group, from the next row on.
    pub(crate) fn set_group(&mut self, name: &str, pids: &[u32]) {
        self.sources.processes.set_roots(name, pids);
    }

    /// Makes the row that ends at `at_s`. `own_cpu_s` is the CPU time of the sampler thread so far.
    pub(crate) fn tick(&mut self, at_s: f64, own_cpu_s: f64) -> Snapshot {
        self.table.clear();
        let (work, groups) = self.sources.sample(at_s, &mut self.files, &mut self.table);
        let cpu_s = own_cpu_s
            + self
                .sources
                .status_readers
                .iter()
                .map(StatusReader::cpu_s)
                .sum::<f64>();
        let times = Times {
            from_s: self.last_s,
            to_s: at_s,
            work,
            groups,
            sampler_s: cpu_s - self.last_cpu_s,
            own_group: self.sources.processes.group_of(std::process::id()),
        };
        self.write(at_s);
        if self.rows > 0 {
            self.builder.row(self.table.cells(), &times);
        }
        let snapshot = Snapshot {
            row: self.rows,
            time_s: at_s,
            phase: self.builder.phase().to_owned(),
            names: self.table.shared_names(),
            cells: self.table.cells().to_vec(),
        };
        self.rows += 1;
        self.last_s = at_s;
        self.last_cpu_s = cpu_s;
        snapshot
    }

    /// Ends the status threads and returns the summary.
    pub(crate) fn finish(mut self, wall_s: f64, own_cpu_s: f64) -> Summary {
        let status_readers = std::mem::take(&mut self.sources.status_readers);
        let cpu_s = own_cpu_s + status_readers.iter().map(StatusReader::cpu_s).sum::<f64>();
        self.warnings
            .extend(status_readers.into_iter().filter_map(StatusReader::stop));
        for group in self.sources.processes.never_found() {
            let warning = format!("no process of the group {group} was found during the run");
            self.warnings.push(warning);
        }
        for file_system in &mut self.file_systems {
            file_system.after = Usage::of(&file_system.directory);
        }
        let series = self.series.as_ref();
        let cost = Cost {
            cpu_s,
            wall_s,
            file_bytes: series.map_or(0, |(_, writer)| writer.bytes()),
        };
        let names = self.table.names();
        self.builder
            .finish(names, self.file_systems, cost, self.warnings)
    }

    /// Writes the row to the output files. A write error ends that file, and sampling continues.
    fn write(&mut self, at_s: f64) {
        if let Some((path, writer)) = &mut self.series {
            let written = writer.row(at_s, self.table.names(), self.table.cells());
            let written = written.map_err(|source| (path.clone(), source));
            self.stop_writing_series(written);
        }
        // The collector of BenchmarkSQL writes its first row after the first interval, too.
        let outputs = self.benchmarksql.as_mut().filter(|_| self.rows > 0);
        let written = outputs.map(|outputs| outputs.row(at_s, &self.table));
        if let Some(Err(Failure { path, source })) = written {
            self.benchmarksql = None;
            self.warnings.push(incomplete(&path, &source));
        }
    }

    fn stop_writing_series(&mut self, written: Result<(), (PathBuf, io::Error)>) {
        if let Err((path, source)) = written {
            self.series = None;
            self.warnings.push(incomplete(&path, &source));
        }
    }
}

impl Sources {
    fn new(
        config: Config,
        units: Units,
        start: Instant,
        files: &Files,
        table: &mut Table,
    ) -> Result<Self, StartError> {
        let (mut disks, mut networks) = (Vec::new(), Vec::new());
        for device in &config.devices {
            match device {
                Device::Disk(name) => disks.push(name.clone()),
                Device::Network(name) => networks.push(name.clone()),
            }
        }
        Ok(Self {
            cpu: Cpu::new(units.ticks_per_s, table),
            load: Load::new(table),
            memory: Memory::new(table),
            numa: Numa::new(files, table),
            disks: Disks::new(&disks, table),
            networks: Networks::new(&networks, table),
            tcp: Tcp::new(table),
            interrupts: Interrupts::new(files, table),
            processes: Processes::new(&config.groups, units, table),
            status_readers: config
                .sources
                .into_iter()
                .map(|source| StatusReader::start(source, start, config.interval, table))
                .collect::<io::Result<_>>()
                .map_err(StartError::Thread)?,
        })
    }

    /// Fills a row. Returns the CPU time of the host and of each group.
    fn sample(
        &mut self,
        at_s: f64,
        files: &mut Files,
        table: &mut Table,
    ) -> (Option<Work>, Option<Vec<f64>>) {
        let Self {
            cpu,
            load,
            memory,
            numa,
            disks,
            networks,
            tcp,
            interrupts,
            processes,
            status_readers,
        } = self;
        let work = cpu.sample(at_s, files, table);
        let groups = processes.sample(at_s, files, table);
        load.sample(files, table);
        memory.sample(at_s, files, table);
        numa.sample(at_s, files, table);
        disks.sample(at_s, files, table);
        networks.sample(at_s, files, table);
        tcp.sample(at_s, files, table);
        interrupts.sample(at_s, files, table);
        for reader in status_readers {
            reader.sample(table);
        }
        (work, groups)
    }
}

fn open_series(path: PathBuf) -> Result<(PathBuf, Writer), StartError> {
    match Writer::create(&path) {
        Ok(writer) => Ok((path, writer)),
        Err(source) => Err(StartError::File { path, source }),
    }
}

fn incomplete(path: &Path, source: &io::Error) -> String {
    let path = path.display();
    format!("{path} is incomplete, because a write failed: {source}")
}

#[cfg(test)]
mod tests;
