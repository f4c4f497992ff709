//! Samples the host during the runs of a workload, for the experiment engine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use saiga_experiment::observer::{HostObserver, ObservedLoad};
use saiga_experiment::result::Detail;
use saiga_sampler::{Config, Device, Group};

use super::{Host, Recording};

/// The directory of all runs, below that of the results.
const RUNS: &str = "runs";
/// Runs that are planned to be shorter are not sampled: starting and stopping a sampler would be
/// most of its samples.
const WATCHED: Duration = Duration::from_secs(5);

/// Samples the host during each run that is long enough.
#[derive(Debug)]
pub(crate) struct BesideRuns<'a> {
    host: &'a Host,
    /// The result directory, if there is one.
    out: Option<PathBuf>,
    now: Option<SampledRun<'a>>,
    problem: Option<String>,
}

#[derive(Debug)]
struct SampledRun<'a> {
    recording: Recording<'a>,
    /// Relative to the result directory.
    folder: Option<String>,
    began: Instant,
}

impl<'a> BesideRuns<'a> {
    /// `out` gets a directory for each run.
    pub(crate) fn new(host: &'a Host, out: Option<&Path>) -> Self {
        Self {
            host,
            out: out.map(Path::to_owned),
            now: None,
            problem: None,
        }
    }

    /// The first error. It does not affect the runs.
    pub(crate) fn problem(&self) -> Option<String> {
        let problem = self.problem.as_ref()?;
        Some(format!(
            "the host was not sampled during every run: {problem}"
        ))
    }

    fn watch(&self, begun: &ObservedLoad<'_>) -> anyhow::Result<SampledRun<'a>> {
        let folder = match &self.out {
            Some(out) => Some(new_folder(out, begun.arm)?),
            None => None,
        };
        let path = self.out.as_ref().zip(folder.as_ref());
        let path = path.map(|(out, folder)| out.join(folder));
        let group = |name: &str, pids: Vec<u32>| Group {
            name: name.to_owned(),
            pids,
        };
        // All our processes descend from this one; those other than servers and hogs are the
        // client.
        let mut groups = vec![
            group("server", begun.servers.clone()),
            group("client", vec![std::process::id()]),
        ];
        if !begun.hogs.is_empty() {
            groups.push(group("hog", begun.hogs.clone()));
        }
        let config = Config {
            groups,
            devices: begun.devices.iter().map(|name| device(name)).collect(),
            ..Config::default()
        };
        let began = Instant::now();
        Ok(SampledRun {
            recording: Recording::begin(self.host, config, path.as_deref(), None)?,
            folder,
            began,
        })
    }

    fn note(&mut self, error: &anyhow::Error) {
        self.problem.get_or_insert_with(|| format!("{error:#}"));
    }
}

impl HostObserver for BesideRuns<'_> {
    fn begin(&mut self, begun: &ObservedLoad<'_>) {
        if begun.planned.is_some_and(|planned| planned < WATCHED) {
            return;
        }
        match self.watch(begun) {
            Ok(watched) => self.now = Some(watched),
            Err(error) => self.note(&error),
        }
    }

    fn begin_self_observed(&mut self) {
        self.host.pause();
    }

    fn end(&mut self) -> Option<Detail> {
        self.host.resume();
        let SampledRun {
            recording,
            folder,
            began,
        } = self.now.take()?;
        match recording.end(began) {
            Ok(seen) => {
                let warning = seen.summary.warnings.into_iter().next();
                self.problem = self.problem.take().or(warning);
                let is_kept = folder.is_some() || !seen.series.is_empty();
                is_kept.then(|| Detail {
                    folder,
                    series: seen.series,
                    ..Detail::default()
                })
            }
            Err(error) => {
                self.note(&error);
                None
            }
        }
    }
}

/// A disk or a network interface of this host.
pub(crate) fn device(name: &str) -> Device {
    if Path::new("/sys/class/net").join(name).exists() {
        Device::Network(name.to_owned())
    } else {
        Device::Disk(name.to_owned())
    }
}

/// Creates `runs/0003-saiga` with the first free number; the directories of an interrupted campaign
/// stay.
fn new_folder(out: &Path, arm: &str) -> io::Result<String> {
    let runs = out.join(RUNS);
    fs::create_dir_all(&runs)?;
    let number = |entry: io::Result<fs::DirEntry>| -> Option<u32> {
        let name = entry.ok()?.file_name();
        name.to_str()?.split('-').next()?.parse().ok()
    };
    let last = fs::read_dir(&runs)?.filter_map(number).max().unwrap_or(0);
    let words: Vec<&str> = arm
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let folder = format!("{RUNS}/{:04}-{}", last + 1, words.join("-"));
    fs::create_dir(out.join(&folder))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_its_own_directory() {
        let out = tempfile::tempdir().unwrap();
        let folder = |arm| new_folder(out.path(), arm).unwrap();
        assert_eq!(folder("kernel (again)"), "runs/0001-kernel-again");
        assert_eq!(folder("../saiga"), "runs/0002-saiga");
        fs::create_dir(out.path().join("runs/0041-x")).unwrap();
        assert_eq!(folder("saiga"), "runs/0042-saiga");
    }

    #[test]
    fn a_short_run_is_not_sampled() {
        let (host, out) = (Host::default(), tempfile::tempdir().unwrap());
        let mut beside = BesideRuns::new(&host, Some(out.path()));
        let begun = |planned: Option<u64>| ObservedLoad {
            arm: "kernel",
            servers: Vec::new(),
            hogs: Vec::new(),
            devices: vec!["lo".into()],
            planned: planned.map(Duration::from_secs),
        };
        beside.begin(&begun(Some(4)));
        assert_eq!(beside.end(), None);
        assert!(!out.path().join("runs").exists());
        beside.begin(&begun(None));
        let seen = beside.end().unwrap();
        // The run ended at once: its file is kept, but there are too few rows to draw.
        assert_eq!(seen.folder.as_deref(), Some("runs/0001-kernel"));
        assert_eq!(seen.series, []);
        assert!(out.path().join("runs/0001-kernel/host.csv").exists());
        assert_eq!(beside.problem(), None);
    }

    #[test]
    fn the_host_is_not_sampled_here_while_the_load_samples_it() {
        let host = Host::default();
        let mut beside = BesideRuns::new(&host, None);
        assert!(host.latest().is_none(), "the first row has no rates");
        beside.begin_self_observed();
        assert!(matches!(
            *host.sampler_state(),
            super::super::SamplerState::Elsewhere
        ));
        assert!(host.latest().is_none());
        assert!(matches!(
            *host.sampler_state(),
            super::super::SamplerState::Elsewhere
        ));
        assert_eq!(beside.end(), None);
        assert!(matches!(
            *host.sampler_state(),
            super::super::SamplerState::Nothing
        ));
    }

    #[test]
    fn a_sampling_error_is_reported_and_does_not_fail_the_run() {
        let (host, out) = (Host::default(), tempfile::tempdir().unwrap());
        fs::write(out.path().join("runs"), "in the way").unwrap();
        let mut beside = BesideRuns::new(&host, Some(out.path()));
        beside.begin(&ObservedLoad {
            arm: "kernel",
            servers: Vec::new(),
            hogs: Vec::new(),
            devices: Vec::new(),
            planned: None,
        });
        assert_eq!(beside.end(), None);
        assert!(beside.problem().unwrap().contains("not sampled"));
    }
}
