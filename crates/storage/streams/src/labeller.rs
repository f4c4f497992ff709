//! The labeller: sets the hint of every file of a database when the file appears, and again when
//! the hint was lost.
//!
//! One thread waits for all events: names that appear on the file systems (fanotify with directory
//! handle and name), lost pins, changes of mounts and rule files, signals, and the time of the next
//! scan. A periodic scan finds files whose events the kernel dropped. No directory is held open, so
//! that file systems can be unmounted.

mod appear;
mod file;
mod known_files;
mod metrics;
mod reload;
mod roots;
mod scan;
mod warnings;
mod watcher;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use crate::control::Control;
use crate::counters::{Counted, Counters, count};
use crate::gate::Gate;
use crate::labels;
use crate::lock::LockError;
use crate::pins::{self, Pins};
use crate::route::{Report, System};
use crate::rules::{RuleSet, RulesError};
use crate::setter::Setter;
use crate::sys;
use crate::tree::{self, Identity};
use crate::view::View;

use known_files::KnownFiles;
use metrics::Metrics;
use reload::Loaded;
use roots::Root;
use warnings::Warnings;
use watcher::{Ready, Watcher};

/// A directory and the rules for it.
#[derive(Debug, Clone)]
pub struct Database {
    pub dir: PathBuf,
    /// Rule sets; earlier ones take precedence.
    pub rules: Vec<RuleSet>,
}

/// The time at which a file is labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Soon after the file was created.
    Notify,
    /// Before the open that creates the file returns.
    Gate,
}

/// The settings of a labeller.
#[derive(Debug, Clone)]
pub struct Options {
    pub databases: Vec<Database>,
    pub mode: Mode,
    /// Label the present files and end.
    pub once: bool,
    /// Overwrite hints that other programs have set.
    pub force: bool,
    /// The interval between two scans of all files.
    pub scan_interval: Duration,
    /// The longest time for one open; after that the watchdog opens the gate for good.
    pub stall_limit: Duration,
    /// For tests: the gate stalls at the open of a file with this name, so that the watchdog acts.
    pub drill: Option<OsString>,
    /// The file of metrics for node_exporter's textfile collector.
    pub metrics: Option<PathBuf>,
    pub lock_dir: PathBuf,
    /// An open file for the labels that survives a restart: systemd's file descriptor store,
    /// because systemd removes the directory of locks with the service.
    pub kept: Option<Arc<File>>,
    pub system: System,
}

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A problem.
    Warn,
    /// Start, end and changes of state.
    Info,
    /// Logged once, after the first scan: from then on new files are labelled.
    Begun,
    /// The label of each file.
    Detail,
}

/// A receiver of log lines.
pub type Log<'a> = dyn Fn(Level, &str) + 'a;

/// The result of a labeller's run.
#[derive(Debug)]
pub struct Ended {
    pub counted: Counted,
    /// The route of hints from each directory.
    pub reports: Vec<Report>,
}

/// An error at the start of a labeller.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// A directory cannot be labelled.
    #[error("{}: {problem}", dir.display())]
    Directory { dir: PathBuf, problem: String },
    #[error(transparent)]
    Lock(#[from] LockError),
    /// This process lacks these capabilities.
    #[error(
        "labelling files as they appear needs root, or CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH \
         (`saiga streams unit` makes a service with these and without root); this process lacks \
         {}. --once needs only read access to the files", .0.join(" and ")
    )]
    Rights(Vec<&'static str>),
    /// The kernel refuses inotify, fanotify or the capabilities of this process.
    #[error("cannot watch file systems: {0}; in a container, run this on the host")]
    Watch(Errno),
    /// The kernel was built without permission events.
    #[error(
        "this kernel does not support the gate ({0}; CONFIG_FANOTIFY_ACCESS_PERMISSIONS); label \
         files with --mode notify"
    )]
    Gate(Errno),
    #[error("cannot start the labeller: {0}")]
    Io(#[from] io::Error),
}

struct Labeller<'a> {
    options: &'a Options,
    control: &'a Control,
    log: &'a Log<'a>,
    setter: Arc<dyn Setter>,
    counters: Arc<Counters>,
    loaded: Loaded,
    roots: Vec<Root>,
    view: Arc<View>,
    watcher: Watcher,
    gate: Option<Gate>,
    /// The error with which the kernel refused permission events.
    no_gate: Option<Errno>,
    known: KnownFiles,
    /// Roots to be scanned, each with a log line for the end of the scan.
    unscanned: VecDeque<(PathBuf, Option<String>)>,
    /// Links to directories that are labelled by another path already.
    known_links: BTreeSet<PathBuf>,
    mount_points: Vec<PathBuf>,
    has_started: bool,
    is_stall_reported: bool,
    warnings: Warnings,
    metrics: Metrics,
}

/// Labels files until `control` ends it, or once.
///
/// # Errors
/// The labeller could not start. Later errors are logged and counted.
pub fn run(
    options: &Options,
    setter: Arc<dyn Setter>,
    control: &Control,
    log: &Log<'_>,
) -> Result<Ended, RunError> {
    let loaded = Loaded::load(&options.databases, options.force)?;
    let reports = roots::survey(options)?;
    for report in &reports {
        log(report.level(), &report.headline());
    }
    for warning in &loaded.warnings {
        log(Level::Warn, &warning.to_string());
    }
    if !options.once {
        check_rights()?;
    }
    let locks = roots::lock_all(options)?;
    let counters = Arc::new(Counters::default());
    let gate = match options.mode {
        Mode::Notify => None,
        Mode::Gate => {
            let (setter, counters) = (Arc::clone(&setter), Arc::clone(&counters));
            let (limit, drill) = (options.stall_limit, options.drill.clone());
            let gate = Gate::new(setter, counters, limit, drill, control.end_flag());
            Some(gate.map_err(|error| {
                RunError::Watch(Errno::from_io_error(&error).unwrap_or(Errno::IO))
            })?)
        }
    };
    // This thread may wait at its own gate, uninterruptibly: the gate's threads handle the signals.
    let _signals = gate.as_ref().map(|_| sys::block_signals());
    let root = options.system.root();
    let kept = options.kept.iter().flat_map(|file| labels::read_from(file));
    let earlier = locks.iter().flat_map(|lock| labels::read(lock.labels()));
    let pins = Pins::new(pins::limit(root)).map_err(RunError::Watch)?;
    let known = KnownFiles::new(pins, kept.chain(earlier));
    let mut labeller = Labeller {
        options,
        control,
        log,
        setter,
        counters,
        roots: roots::given(&options.databases, locks),
        loaded,
        view: Arc::default(),
        watcher: Watcher::new().map_err(|error| RunError::Watch(tree::errno(&error)))?,
        gate,
        no_gate: None,
        known,
        unscanned: VecDeque::new(),
        known_links: BTreeSet::new(),
        mount_points: Vec::new(),
        has_started: false,
        is_stall_reported: false,
        warnings: Warnings::default(),
        metrics: Metrics::new(options, &|text| log(Level::Info, text)),
    };
    labeller.start()?;
    if !options.once {
        labeller.run_loop();
    }
    labeller.save_labels();
    labeller.write_metrics(Instant::now(), true);
    let counted = labeller.counters.now();
    Ok(Ended { counted, reports })
}

/// Fails if this process lacks the capabilities for fanotify.
fn check_rights() -> Result<(), RunError> {
    let has = rustix::thread::capabilities(None)
        .map_err(RunError::Watch)?
        .effective;
    let needed = [
        (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
        (CapabilitySet::DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"),
    ];
    let missing = needed.into_iter().filter(|(set, _)| !has.contains(*set));
    let names: Vec<&str> = missing.map(|(_, name)| name).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(RunError::Rights(names))
    }
}

impl Labeller<'_> {
    fn start(&mut self) -> Result<(), RunError> {
        self.mount_points = self.relevant_mount_points();
        self.recheck();
        for root in self.roots.iter().filter(|root| root.is_given()) {
            if let Some(problem) = root.problem() {
                return Err(RunError::Directory {
                    dir: root.path.clone(),
                    problem: problem.to_owned(),
                });
            }
        }
        if let Some(error) = self.no_gate {
            return Err(RunError::Gate(error));
        }
        self.has_started = true;
        self.save_labels();
        let counted = self.counters.now();
        let pinned = self.known.pinned();
        let when = match self.options.mode {
            Mode::Notify => "as they appear",
            Mode::Gate => "before their first byte",
        };
        let (level, then) = if self.options.once || self.control.shall_end() {
            (Level::Info, String::new())
        } else {
            (Level::Begun, format!("; labelling files {when}"))
        };
        self.log(
            level,
            &format!(
                "{} files labelled ({}), {} kept their own hint, {} refused, {pinned} pinned{then}",
                counted.set,
                self.setter.name(),
                counted.kept,
                counted.refused
            ),
        );
        Ok(())
    }

    fn log(&self, level: Level, text: &str) {
        (self.log)(level, text);
    }

    /// Handles events until `control` ends the labeller.
    fn run_loop(&mut self) {
        // `None` if the time of the next scan exceeds the clock: no scan then.
        let options = self.options;
        let next = || Instant::now().checked_add(options.scan_interval);
        let mut next_scan = next();
        while !self.control.shall_end() {
            let now = Instant::now();
            self.write_metrics(now, false);
            if next_scan.is_some_and(|scan| now >= scan) {
                self.scan_all();
                next_scan = next();
            }
            let longest = next_scan.map(|scan| scan.saturating_duration_since(now));
            let (ready, is_gate_opened) = self.wait(longest.unwrap_or(Duration::MAX));
            self.control.drain();
            if is_gate_opened {
                self.on_stall();
            }
            self.known.sweep();
            let mut has_moved = ready.mounts && self.on_mounts_changed();
            has_moved |= self.mark_stale_roots();
            has_moved |= self.watcher.has_path_changed();
            for device in ready.groups {
                self.on_names(device);
            }
            let has_appeared = self.watcher.has_appeared();
            if has_moved || has_appeared {
                self.recheck();
            }
            if self.control.take_reload() {
                self.reload(reload::Cause::Signal);
            } else if has_appeared {
                self.reload(reload::Cause::Changed);
            }
        }
        self.log(Level::Info, "ended");
    }

    /// Waits for events. The second value says whether the watchdog has opened the gate.
    fn wait(&self, longest: Duration) -> (Ready, bool) {
        let longest = self
            .metrics_pause()
            .map_or(longest, |pause| longest.min(pause));
        let gate = self.gate.as_ref().filter(|_| !self.is_stall_reported);
        let opened = gate.map(Gate::opened_event);
        // The gate comes first: only it has to be told from the others.
        let mut others: Vec<BorrowedFd<'_>> = opened.iter().map(AsFd::as_fd).collect();
        others.extend([self.control.as_fd(), self.known.as_fd()]);
        let ready = self.watcher.wait(longest, &others);
        let is_opened = opened.is_some() && ready.other == Some(0);
        (ready, is_opened)
    }

    fn on_stall(&mut self) {
        self.is_stall_reported = true;
        let limit = self.options.stall_limit;
        let why = match self.gate.as_ref().and_then(Gate::failure) {
            Some(error) => format!(
                "the gate could not read an event, so that the kernel refused an open ({error}),"
            ),
            None => format!("the gate took longer than {limit:?} for one open"),
        };
        self.log(
            Level::Warn,
            &format!(
                "{why} and was opened for good; from now on files are labelled after their \
                 creation. Restart to close the gate again"
            ),
        );
        // Files that were opened in the meantime have no label yet.
        self.scan_all();
    }

    /// Adds the hints that the gate has set to the labels.
    fn collect_gate_labels(&mut self) {
        let set = self.gate.as_ref().map(Gate::take_labelled);
        self.known.add_ours(set.unwrap_or_default().into_iter());
    }

    /// Saves our hints for the next run.
    fn save_labels(&mut self) {
        self.collect_gate_labels();
        let locks = self.roots.iter().filter_map(|root| root.lock.as_ref());
        let files = locks.map(|lock| lock.labels().to_owned());
        let saved = files.map(|file| (labels::save(&file, self.known.labels()), file));
        let kept = self.options.kept.iter();
        let kept = kept.map(|file| {
            (
                labels::save_into(file, self.known.labels()),
                PathBuf::from("the labels that systemd keeps"),
            )
        });
        let all: Vec<_> = saved.chain(kept).collect();
        for (saved, file) in all {
            match saved {
                Ok(()) => {
                    self.warnings.end(&file);
                }
                Err(error) => {
                    let text = format!(
                        "cannot write {}: {error}; after a restart, hints of this run stay as they are",
                        file.display()
                    );
                    self.warn_once(&file, &text);
                }
            }
        }
    }

    /// Scans every file.
    fn scan_all(&mut self) {
        count(&self.counters.scans);
        self.recheck();
        let mut seen = HashSet::new();
        for root in 0..self.roots.len() {
            self.queue(root, None);
        }
        self.scan_queued(&mut seen);
        // An interrupted scan has not seen all files.
        if !self.control.shall_end() {
            // Files on an unmounted file system may return with it.
            let devices = self.devices();
            let stays = |it: &Identity| seen.contains(it) || !devices.contains(&it.device());
            self.known.retain(stays);
            self.save_labels();
            self.warnings.end_before(self.scans());
        }
    }

    fn scans(&self) -> u64 {
        self.counters.scans.load(Ordering::Relaxed)
    }

    /// Logs a warning about a path unless it is the last one about it. Returns whether it was
    /// logged.
    fn warn_once(&mut self, path: &Path, text: &str) -> bool {
        let is_new = self.warnings.is_new(path, text, self.scans());
        if is_new {
            self.log(Level::Warn, text);
        }
        is_new
    }
}
