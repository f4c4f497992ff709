//! The directories: those that were given, and those that links and mounts in them lead to. They may vanish and return.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::inotify::WatchFlags;
use rustix::io::Errno;

use super::{Database, Labeller, Level, Options, RunError};
use crate::gate::{self, Gate};
use crate::lock::Lock;
use crate::route::{self, Report};
use crate::sys;
use crate::tree::{self, Found, Identity};
use crate::view::{Branch, View};

/// A directory of a database.
#[derive(Debug)]
pub(super) struct Root {
    /// As it was given, or the link.
    pub(super) path: PathBuf,
    /// Where it appears in its database.
    prefix: PathBuf,
    database: usize,
    origin: Origin,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Given,
    /// By a link or a mount.
    Found,
}

#[derive(Debug)]
enum State {
    Gone(Option<String>),
    Armed(Armed),
}

/// A directory that is watched.
#[derive(Debug)]
pub(super) struct Armed {
    /// Without links.
    pub(super) dir: PathBuf,
    identity: Identity,
    pub(super) mount: Option<u64>,
    watch: i32,
    is_stale: bool,
}

impl Armed {
    /// Its file system and its mount.
    fn whereabouts(&self) -> ((u32, u32), Option<u64>) {
        (self.identity.device(), self.mount)
    }
}

impl Root {
    pub(super) fn is_given(&self) -> bool {
        self.origin == Origin::Given
    }

    pub(super) fn armed(&self) -> Option<&Armed> {
        match &self.state {
            State::Armed(armed) => Some(armed),
            State::Gone(_) => None,
        }
    }

    /// Why it is not watched.
    pub(super) fn problem(&self) -> Option<&str> {
        match &self.state {
            State::Armed(_) => None,
            State::Gone(problem) => Some(problem.as_deref().unwrap_or("it is gone")),
        }
    }
}

pub(super) fn given(databases: &[Database]) -> Vec<Root> {
    let roots = databases.iter().enumerate().map(|(database, it)| Root {
        path: std::path::absolute(&it.dir).unwrap_or_else(|_| it.dir.clone()),
        prefix: PathBuf::new(),
        database,
        origin: Origin::Given,
        state: State::Gone(None),
    });
    roots.collect()
}

fn unfit(dir: &Path, problem: impl ToString) -> RunError {
    RunError::Directory {
        dir: dir.to_owned(),
        problem: problem.to_string(),
    }
}

/// An error of opening, with what helps against it.
fn advised(error: Errno) -> String {
    match error {
        Errno::ACCESS => format!("{error}; run this as root (or with CAP_DAC_READ_SEARCH)"),
        error => error.to_string(),
    }
}

/// Where hints go from each directory.
pub(super) fn survey(options: &Options) -> Result<Vec<Report>, RunError> {
    let mut reports = Vec::new();
    for Database { dir, .. } in &options.databases {
        let report = route::probe(&options.system, dir).map_err(|error| unfit(dir, error))?;
        if let Some(problem) = report.obstacle() {
            return Err(unfit(dir, problem));
        }
        if !dir.is_dir() {
            return Err(unfit(dir, "it is no directory"));
        }
        reports.push(report);
    }
    Ok(reports)
}

pub(super) fn lock_all(options: &Options) -> Result<Vec<Lock>, RunError> {
    let mut taken = HashSet::new();
    let locks = options.databases.iter().map(|Database { dir, .. }| {
        let open = tree::open_dir(dir).map_err(|error| unfit(dir, advised(error)))?;
        let identity = tree::identity(open.as_fd()).map_err(|error| unfit(dir, error))?;
        if !taken.insert(identity) {
            return Err(unfit(dir, "it is given twice"));
        }
        Ok(Lock::take(&options.lock_dir, dir, identity)?)
    });
    locks.collect()
}

impl Labeller<'_> {
    /// Takes up what has vanished and what has returned.
    pub(super) fn recheck(&mut self) {
        self.disarm_stale();
        // Between the look and the watch for its return, a directory may come back: so look again.
        loop {
            let gone = |root: &Root| root.armed().is_none();
            // All of them before the first is looked at: a link to one of them is not to take it over.
            let armed = (0..self.roots.len())
                .filter(|number| self.roots.get(*number).is_some_and(gone) && self.arm(*number));
            let armed: Vec<usize> = armed.collect();
            self.publish();
            let mut seen = HashSet::new();
            for number in armed {
                self.scan(number, &mut seen);
            }
            self.watch_places();
            let returned = self.roots.iter().any(|root| {
                gone(root) && root.problem() == Some("it is gone") && root.path.is_dir()
            });
            if !returned || self.control.shall_end() {
                return;
            }
        }
    }

    fn disarm_stale(&mut self) {
        let mut is_changed = false;
        for root in &mut self.roots {
            let State::Armed(armed) = &root.state else {
                continue;
            };
            let now = root.path.canonicalize().ok().and_then(|dir| {
                let open = tree::open_dir(&dir).ok()?;
                Some((dir, tree::identity(open.as_fd()).ok()?))
            });
            let is_same = now.as_ref() == Some(&(armed.dir.clone(), armed.identity));
            if is_same && !armed.is_stale {
                continue;
            }
            is_changed = true;
            self.own.remove(armed.watch);
            let level = if root.origin == Origin::Given {
                Level::Warn
            } else {
                Level::Info
            };
            if now.is_none() {
                (self.log)(
                    level,
                    &format!("{} is gone; waiting for it", root.path.display()),
                );
            }
            root.state = State::Gone(None);
        }
        if !is_changed {
            return;
        }
        self.roots
            .retain(|root| root.is_given() || root.armed().is_some());
        let devices = self.devices();
        self.groups.retain(|device, _| devices.contains(device));
        self.publish();
    }

    /// The file systems that are watched.
    pub(super) fn devices(&self) -> HashSet<(u32, u32)> {
        let armed = self.roots.iter().filter_map(Root::armed);
        armed.map(|armed| armed.identity.device()).collect()
    }

    /// Watches a directory that is there; whether it is watched now.
    fn arm(&mut self, number: usize) -> bool {
        let Some(path) = self.roots.get(number).map(|root| root.path.clone()) else {
            return false;
        };
        let state = match self.arm_at(&path) {
            Ok(armed) => State::Armed(armed),
            Err(ArmError::Gone) => State::Gone(None),
            Err(ArmError::Problem(problem)) => State::Gone(Some(problem)),
        };
        let Some(root) = self.roots.get_mut(number) else {
            return false;
        };
        let old = root.problem().map(str::to_owned);
        root.state = state;
        match root.problem().map(str::to_owned) {
            None => true,
            Some(problem) => {
                // At the beginning this is the error with which it ends.
                let is_news = self.has_begun && Some(&problem) != old.as_ref();
                if is_news {
                    let text = format!("{}: {problem}", root.path.display());
                    self.say(Level::Warn, &text);
                }
                false
            }
        }
    }

    fn arm_at(&mut self, path: &Path) -> Result<Armed, ArmError> {
        let dir = path
            .canonicalize()
            .map_err(|error| ArmError::of(&tree::errno(&error)))?;
        let open = tree::open_dir(&dir).map_err(|error| ArmError::of(&error))?;
        let report = route::probe(&self.options.system, &dir);
        if let Some(problem) = report.ok().and_then(|report| report.obstacle()) {
            return Err(ArmError::Problem(problem));
        }
        let identity = tree::identity(open.as_fd()).map_err(|error| ArmError::of(&error))?;
        let whereabouts = tree::whereabouts(open.as_fd()).map_err(|error| ArmError::of(&error))?;
        let flags = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
        let watch = self.own.add(&tree::own_path(open.as_fd()), flags);
        let watch =
            watch.map_err(|error| ArmError::Problem(format!("cannot watch it: {error}")))?;
        if !self.options.once && !self.groups.contains_key(&identity.device()) {
            let group = watch_file_system(open.as_fd()).map_err(ArmError::unwatchable)?;
            self.groups.insert(identity.device(), group);
        }
        Ok(Armed {
            dir,
            identity,
            mount: whereabouts.1,
            watch,
            is_stale: false,
        })
    }

    /// Shows the gate and ourselves which rules hold where.
    pub(super) fn publish(&mut self) {
        let branches = self.roots.iter().filter_map(|root| {
            let armed = root.armed()?;
            Some(Branch {
                dir: armed.dir.clone(),
                prefix: root.prefix.clone(),
                rules: Arc::clone(self.loaded.rules.get(root.database)?),
                database: root.database,
                device: armed.identity.device(),
                mount: armed.mount,
            })
        });
        self.view = Arc::new(View {
            branches: branches.collect(),
        });
        if let Some(gate) = &self.gate {
            gate.show(Arc::clone(&self.view));
        }
    }

    /// Looks at everything in one directory, and in what is found by links.
    pub(super) fn scan(&mut self, number: usize, seen: &mut HashSet<Identity>) {
        let Some(armed) = self.roots.get(number).and_then(Root::armed) else {
            return;
        };
        let dir = armed.dir.clone();
        if let Ok(open) = tree::open_dir(&dir) {
            self.scan_below(open.as_fd(), &dir, &mut |identity| {
                seen.insert(identity);
            });
        }
    }

    /// Labels everything below the open directory at `path`.
    pub(super) fn scan_below(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &Path,
        see: &mut dyn FnMut(Identity),
    ) {
        let mut elsewhere = Vec::new();
        let unseen = tree::walk(dir, path, &mut |path, found| {
            match found {
                Found::Directory(dir) => self.shut(dir, path),
                Found::File {
                    dir,
                    name,
                    identity,
                    bytes: _,
                } => {
                    see(identity);
                    self.label(dir, name, path, identity);
                }
                Found::Elsewhere => elsewhere.push(path.to_owned()),
            }
            if self.control.shall_end() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        for tree::Unseen { path, error } in unseen {
            self.say(
                Level::Warn,
                &format!("cannot look at {}: {error}", path.display()),
            );
        }
        for path in elsewhere {
            self.link(&path);
        }
    }

    /// Lets opens in a directory wait, where there is a gate.
    fn shut(&self, dir: BorrowedFd<'_>, path: &Path) {
        if let Some(Err(error)) = self.gate.as_ref().map(|gate: &Gate| gate.close(dir)) {
            let text = format!(
                "no gate for {}: {error}; files there are labelled once they are there",
                path.display()
            );
            self.say(Level::Warn, &text);
        }
    }

    /// Takes up a directory to which a link or a mount at `path` leads, unless it is ours already.
    pub(super) fn link(&mut self, path: &Path) {
        let Ok(dir) = path.canonicalize() else {
            return;
        };
        let Some((branch, prefix)) = self.view.branch(path) else {
            return;
        };
        let database = branch.database;
        let place = tree::open_dir(&dir).and_then(|open| tree::whereabouts(open.as_fd()));
        let Ok(place) = place else {
            return;
        };
        let is_ours = self.roots.iter().any(|root| {
            let armed = root.armed();
            root.path == path
                || armed.is_some_and(|armed| {
                    dir.starts_with(&armed.dir) && armed.whereabouts() == place
                        || armed.dir.starts_with(&dir)
                })
        });
        if is_ours {
            return;
        }
        self.roots.push(Root {
            path: path.to_owned(),
            prefix,
            database,
            origin: Origin::Found,
            state: State::Gone(None),
        });
        let number = self.roots.len() - 1;
        if self.arm(number) {
            let text = if dir == path {
                format!("{} is another mount, which is labelled too", path.display())
            } else {
                format!(
                    "{} leads to {}, which is labelled too",
                    path.display(),
                    dir.display()
                )
            };
            self.say(Level::Info, &text);
            self.publish();
            self.scan(number, &mut HashSet::new());
        }
    }

    /// Whether a watched directory was deleted, moved or unmounted since the last call.
    pub(super) fn directories_went(&mut self) -> bool {
        let mut has_gone = false;
        for news in self.own.news() {
            for root in &mut self.roots {
                let State::Armed(armed) = &mut root.state else {
                    continue;
                };
                if crate::pins::concerns(news, armed.watch) {
                    armed.is_stale |= crate::pins::is_end(news);
                    has_gone = true;
                }
            }
        }
        has_gone
    }

    /// Watches where a missing directory may appear, and where rule files are.
    fn watch_places(&mut self) {
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ONLYDIR;
        for watch in self.place_watches.drain(..) {
            self.places.remove(watch);
        }
        let mut places = self.rule_dirs();
        for root in self.roots.iter().filter(|root| root.armed().is_none()) {
            let ancestor = root.path.ancestors().skip(1).find(|place| place.is_dir());
            places.extend(ancestor.map(Path::to_owned));
        }
        let watches = places
            .iter()
            .filter_map(|place| self.places.add(place, flags).ok());
        let watches: Vec<i32> = watches.collect();
        self.place_watches = watches;
    }

    /// The mount points in our directories, and those of our directories.
    pub(super) fn points_below(&self) -> Vec<PathBuf> {
        let mounts = self.options.system.mounts().unwrap_or_default();
        let points = mounts.into_iter().map(|mount| mount.point);
        let concerns = |point: &PathBuf| {
            self.roots.iter().any(|root| {
                let dir = root.armed().map_or(&root.path, |armed| &armed.dir);
                point.starts_with(dir) || dir.starts_with(point)
            })
        };
        points.filter(concerns).collect()
    }

    /// Whether mounts have changed where it matters; then everything there is looked at.
    pub(super) fn mounts_matter(&mut self) -> bool {
        let points = self.points_below();
        let has_changed = points != self.mount_points;
        self.mount_points = points;
        if has_changed {
            self.look();
        }
        has_changed
    }
}

/// Why a directory cannot be watched.
enum ArmError {
    Gone,
    Problem(String),
}

impl ArmError {
    fn of(error: &Errno) -> Self {
        match *error {
            Errno::NOENT | Errno::NOTDIR | Errno::STALE => Self::Gone,
            error => Self::Problem(error.to_string()),
        }
    }

    fn unwatchable(error: Errno) -> Self {
        Self::Problem(match error {
            Errno::OPNOTSUPP | Errno::NODEV | Errno::XDEV => format!(
                "its file system cannot be watched ({error}); label it from time to time with --once"
            ),
            Errno::PERM => "watching its file system needs root (CAP_SYS_ADMIN)".to_owned(),
            error => format!("cannot watch its file system: {error}"),
        })
    }
}

/// A queue of the names that appear on the file system of an open directory.
fn watch_file_system(dir: BorrowedFd<'_>) -> Result<std::os::fd::OwnedFd, Errno> {
    let flags =
        libc::FAN_CLASS_NOTIF | libc::FAN_REPORT_DFID_NAME | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK;
    let files = (libc::O_RDONLY | libc::O_CLOEXEC).cast_unsigned();
    let group = sys::fanotify_init(flags, files)?;
    if group.as_raw_fd() >= gate::NUMBER {
        // It would not end before the gate when this process is killed.
        return Err(Errno::MFILE);
    }
    let mask = libc::FAN_CREATE | libc::FAN_MOVED_TO | libc::FAN_ONDIR;
    let mark = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
    sys::fanotify_mark(group.as_fd(), mark, mask, dir)?;
    Ok(group)
}
