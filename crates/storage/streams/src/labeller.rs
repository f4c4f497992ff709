//! The labeller: gives every file of a database its hint, when it appears and again when the hint was lost.
//!
//! One thread waits for everything: names that appear on the file systems (fanotify, directory handle and name), pins
//! that go, mounts that change, rule files, signals, the time for a look at everything. What comes too fast for the
//! kernel's queue is found by such a look. No directory is held open, so nothing keeps a file system from being
//! unmounted.

mod appear;
mod file;
mod metrics;
mod reload;
mod roots;
mod scan;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use crate::control::Control;
use crate::counters::{Counted, Counters, count};
use crate::gate::Gate;
use crate::labels::{self, Label};
use crate::lock::LockError;
use crate::pins::{self, Pins, Watches};
use crate::route::{Report, System};
use crate::rules::{RuleSet, RulesError};
use crate::setter::Setter;
use crate::sys;
use crate::tree::Identity;
use crate::view::View;

use metrics::Metrics;
use reload::Loaded;
use roots::Root;

/// A directory and the rules for it.
#[derive(Debug, Clone)]
pub struct Database {
    /// The directory.
    pub dir: PathBuf,
    /// Rule sets in their order.
    pub rules: Vec<RuleSet>,
}

/// When a file is labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Once it is there.
    Notify,
    /// Before the open that makes it returns.
    Gate,
}

/// What a labeller does.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where.
    pub databases: Vec<Database>,
    /// When.
    pub mode: Mode,
    /// Label what is there and end.
    pub once: bool,
    /// Overwrite hints that somebody else has set.
    pub force: bool,
    /// How often it looks at everything.
    pub look: Duration,
    /// How long the gate may take for one open before it is opened for good.
    pub stall_limit: Duration,
    /// At the open of a file with this name the gate stalls, to see the watchdog at work.
    pub drill: Option<OsString>,
    /// Where its numbers go.
    pub metrics: Option<PathBuf>,
    /// Where locks are.
    pub lock_dir: PathBuf,
    /// A file that outlives the labeller, for the hints that it has set: a service manager's, which
    /// removes the directory of the locks at every end.
    pub kept: Option<Arc<File>>,
    /// What it knows of kernel and devices.
    pub system: System,
}

/// How much somebody should care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is not as it should be.
    Warn,
    /// Begin, end, changes.
    Info,
    /// Said once: what is there has been looked at, and what appears from now on is labelled.
    Begun,
    /// Each file.
    Detail,
}

/// Takes log lines.
pub type Log<'a> = dyn Fn(Level, &str) + 'a;

/// How a labeller ended.
#[derive(Debug)]
pub struct Ended {
    /// Its numbers.
    pub counted: Counted,
    /// Where hints go from each directory.
    pub reports: Vec<Report>,
}

/// Why a labeller could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The rules.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// A directory that cannot be labelled.
    #[error("{}: {problem}", dir.display())]
    Directory {
        /// It.
        dir: PathBuf,
        /// Why.
        problem: String,
    },
    /// Another labeller.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// This process may not watch file systems.
    #[error(
        "labelling files as they appear takes root, or CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH (`saiga streams unit` makes a \
         service with these and without root); this process lacks {}. --once needs no more than to read the files", .0.join(" and ")
    )]
    Rights(Vec<&'static str>),
    /// The kernel does not let us watch.
    #[error("cannot watch file systems: {0}; in a container, run this on the host")]
    Watch(Errno),
    /// The kernel lets nobody wait.
    #[error(
        "this kernel has no gate to offer ({0}; CONFIG_FANOTIFY_ACCESS_PERMISSIONS); label files with --mode notify"
    )]
    Gate(Errno),
    /// Anything else.
    #[error("cannot begin: {0}")]
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
    /// fanotify groups, one for each file system.
    groups: HashMap<(u32, u32), OwnedFd>,
    gate: Option<Gate>,
    /// Why this kernel has none.
    no_gate: Option<Errno>,
    pins: Pins,
    /// Watches of the directories themselves.
    own: Watches,
    /// Watches of where directories and rule files may appear.
    places: Watches,
    place_watches: HashSet<i32>,
    /// Watches of what the paths of directories lead through.
    ways: Watches,
    way_watches: HashSet<i32>,
    /// Directories that are still to be looked at, and what is to be said then.
    unscanned: VecDeque<(PathBuf, Option<String>)>,
    /// Links to what is ours by another way.
    known_links: BTreeSet<PathBuf>,
    mounts: File,
    mount_points: Vec<PathBuf>,
    /// Files that have the hint of their rule.
    labels: HashMap<Identity, Label>,
    /// Files of which it was said already that they are refused, or keep their own hint.
    told: HashSet<Identity>,
    has_begun: bool,
    is_full_told: bool,
    is_stall_told: bool,
    /// What was said of paths, and at which look it was still so.
    warned: HashMap<PathBuf, (String, u64)>,
    metrics: Metrics,
}

/// Labels until the end is asked for, or once.
///
/// # Errors
/// Why it could not begin. What happens later is logged and counted.
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
    // We may wait at our own gate, where no signal wakes us: the gate's threads take them.
    let _signals = gate.as_ref().map(|_| sys::leave_signals());
    let root = options.system.root();
    let kept = options.kept.iter().flat_map(|file| labels::read_from(file));
    let earlier = locks.iter().flat_map(|lock| labels::read(lock.labels()));
    let earlier = kept.chain(earlier);
    let earlier = earlier.map(|(identity, hint)| (identity, Label::ours(hint)));
    let earlier = earlier.collect();
    let mut labeller = Labeller {
        options,
        control,
        log,
        setter,
        counters,
        roots: roots::given(&options.databases, locks),
        loaded,
        view: Arc::default(),
        groups: HashMap::new(),
        gate,
        no_gate: None,
        pins: Pins::new(pins::limit(root)).map_err(RunError::Watch)?,
        own: Watches::new().map_err(RunError::Watch)?,
        places: Watches::new().map_err(RunError::Watch)?,
        place_watches: HashSet::new(),
        ways: Watches::new().map_err(RunError::Watch)?,
        way_watches: HashSet::new(),
        unscanned: VecDeque::new(),
        known_links: BTreeSet::new(),
        mounts: File::open("/proc/self/mountinfo")?,
        mount_points: Vec::new(),
        labels: earlier,
        told: HashSet::new(),
        has_begun: false,
        is_full_told: false,
        is_stall_told: false,
        warned: HashMap::new(),
        metrics: Metrics::new(options, &|text| log(Level::Info, text)),
    };
    labeller.begin()?;
    if !options.once {
        labeller.attend();
    }
    labeller.remember();
    labeller.write_metrics(Instant::now(), true);
    let counted = labeller.counters.now();
    Ok(Ended { counted, reports })
}

/// Whether this process has what fanotify takes, before anything is made.
fn check_rights() -> Result<(), RunError> {
    let has = rustix::thread::capabilities(None)
        .map_err(RunError::Watch)?
        .effective;
    let needed = [
        (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
        (CapabilitySet::DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"),
    ];
    let lacking = needed.into_iter().filter(|(set, _)| !has.contains(*set));
    let names: Vec<&str> = lacking.map(|(_, name)| name).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(RunError::Rights(names))
    }
}

impl Labeller<'_> {
    fn begin(&mut self) -> Result<(), RunError> {
        self.mount_points = self.points_below();
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
        self.has_begun = true;
        self.remember();
        let counted = self.counters.now();
        let pinned = self.pins.len();
        let way = match self.options.mode {
            Mode::Notify => "as they appear",
            Mode::Gate => "before their first byte",
        };
        let (level, then) = if self.options.once || self.control.shall_end() {
            (Level::Info, String::new())
        } else {
            (Level::Begun, format!("; labelling files {way}"))
        };
        self.say(
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

    fn say(&self, level: Level, text: &str) {
        (self.log)(level, text);
    }

    /// Waits for whatever comes until the end is asked for.
    fn attend(&mut self) {
        // None is a time that no clock reaches.
        let options = self.options;
        let next = || Instant::now().checked_add(options.look);
        let mut next_look = next();
        while !self.control.shall_end() {
            let now = Instant::now();
            self.write_metrics(now, false);
            if next_look.is_some_and(|look| now >= look) {
                self.look();
                next_look = next();
            }
            let longest = next_look.map(|look| look.saturating_duration_since(now));
            let ready = self.wait(longest.unwrap_or(Duration::MAX));
            self.control.drain();
            if ready.bell {
                self.on_stall();
            }
            self.sweep();
            let mut has_moved = ready.mounts && self.mounts_matter();
            has_moved |= self.directories_went();
            has_moved |= !self.ways.news().is_empty();
            for device in ready.groups {
                self.on_names(device);
            }
            let has_news = !self.places.news().is_empty();
            if has_moved || has_news {
                self.recheck();
            }
            if self.control.take_reload() {
                self.reload(reload::Because::Asked);
            } else if has_news {
                self.reload(reload::Because::Changed);
            }
        }
        self.say(Level::Info, "ended");
    }

    fn wait(&self, longest: Duration) -> Ready {
        let devices: Vec<(u32, u32)> = self.groups.keys().copied().collect();
        let longest = self
            .metrics_pause()
            .map_or(longest, |pause| longest.min(pause));
        let mut wait = vec![
            PollFd::new(self.control, PollFlags::IN),
            PollFd::new(&self.pins, PollFlags::IN),
            PollFd::new(&self.own, PollFlags::IN),
            PollFd::new(&self.places, PollFlags::IN),
            // The kernel tells of changed mounts as an error (proc_pid_mountinfo(5)).
            PollFd::new(&self.mounts, PollFlags::PRI),
            PollFd::new(&self.ways, PollFlags::IN),
        ];
        let fixed = wait.len();
        wait.extend(
            self.groups
                .values()
                .map(|group| PollFd::new(group, PollFlags::IN)),
        );
        let bell = self.gate.as_ref().filter(|_| !self.is_stall_told);
        let bell_at = wait.len();
        let bell = bell.map(Gate::bell);
        wait.extend(bell.iter().map(|bell| PollFd::new(bell, PollFlags::IN)));
        let timeout = Timespec::try_from(longest).ok();
        if rustix::event::poll(&mut wait, timeout.as_ref()).is_err() {
            return Ready::default();
        }
        let is_ready = |at: usize| wait.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let groups = (fixed..).zip(devices).filter(|(at, _)| is_ready(*at));
        Ready {
            mounts: is_ready(4),
            groups: groups.map(|(_, device)| device).collect(),
            bell: is_ready(bell_at),
        }
    }

    fn on_stall(&mut self) {
        self.is_stall_told = true;
        let limit = self.options.stall_limit;
        let why = match self.gate.as_ref().and_then(Gate::failure) {
            Some(error) => format!(
                "the gate could not be told of an open, which the kernel refused then ({error}),"
            ),
            None => format!("the gate took longer than {limit:?} for one open"),
        };
        self.say(
            Level::Warn,
            &format!(
                "{why} and was opened for good; from here on files are labelled once they are there. Restart to close \
                 it again"
            ),
        );
        // What was opened meanwhile has no label yet.
        self.look();
    }

    /// What the gate has given is ours.
    fn hear_of_gate(&mut self) {
        let given = self.gate.as_ref().map(Gate::take_given);
        let given = given.unwrap_or_default().into_iter();
        let given = given.map(|(identity, hint)| (identity, Label::ours(hint)));
        self.labels.extend(given);
    }

    /// Writes down which hints are ours, for the run after this one.
    fn remember(&mut self) {
        self.hear_of_gate();
        let locks = self.roots.iter().filter_map(|root| root.lock.as_ref());
        let files = locks.map(|lock| lock.labels().to_owned());
        let saved = files.map(|file| (labels::save(&file, &self.labels), file));
        let kept = self.options.kept.iter();
        let kept = kept.map(|file| {
            (
                labels::save_into(file, &self.labels),
                PathBuf::from("the labels that systemd keeps"),
            )
        });
        let all: Vec<_> = saved.chain(kept).collect();
        for (saved, file) in all {
            match saved {
                Ok(()) => {
                    self.warned.remove(&file);
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

    /// Looks at every file.
    fn look(&mut self) {
        count(&self.counters.looks);
        self.recheck();
        let mut seen = HashSet::new();
        for root in 0..self.roots.len() {
            self.queue(root, None);
        }
        self.scan_queued(&mut seen);
        // An interrupted look has not seen everything.
        if !self.control.shall_end() {
            // What is on a disk that is away may come back with it.
            let there = self.devices();
            let stays = |it: &Identity| seen.contains(it) || !there.contains(&it.device());
            self.labels.retain(|identity, _| stays(identity));
            self.told.retain(stays);
            self.remember();
            let now = self.looks();
            self.warned.retain(|_, (_, look)| *look == now);
        }
    }

    /// Forgets files that are gone. Where nobody knows when a file was made, the next one with its number is another.
    fn sweep(&mut self) {
        for identity in self.pins.sweep() {
            if !identity.is_certain() {
                self.labels.remove(&identity);
            }
        }
    }

    fn looks(&self) -> u64 {
        self.counters.looks.load(Ordering::Relaxed)
    }

    /// Says something of a path unless it was said already and is so ever since; whether it did.
    fn warn_once(&mut self, path: &Path, text: &str) -> bool {
        let now = (text.to_owned(), self.looks());
        let before = self.warned.insert(path.to_owned(), now);
        let is_news = before.is_none_or(|(before, _)| before != text);
        if is_news {
            self.say(Level::Warn, text);
        }
        is_news
    }
}

/// What has something to tell.
#[derive(Default)]
struct Ready {
    mounts: bool,
    groups: Vec<(u32, u32)>,
    bell: bool,
}
