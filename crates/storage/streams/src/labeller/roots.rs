//! The directories: those that were given, and those that links and mounts in them lead to. They may vanish and return.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::inotify::WatchFlags;
use rustix::io::Errno;

use super::{Database, Labeller, Level, Options, RunError};
use crate::gate;
use crate::links::{self, End, LinkError};
use crate::lock::Lock;
use crate::route::{self, Report};
use crate::sys;
use crate::tree::{self, Identity};
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
    /// That it is ours, for one that was given.
    pub(super) lock: Option<Lock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Given,
    /// By a link or a mount.
    Found,
}

impl Origin {
    /// Goes where the path of a root leads. Who gives a path answers for the links in it.
    fn lead(self, path: &Path) -> Result<End, LinkError> {
        match self {
            Self::Found => links::follow(path),
            Self::Given => {
                let path = path.canonicalize().map_err(|error| tree::errno(&error))?;
                let dir = tree::open_dir(&path)?;
                Ok(End { dir, path })
            }
        }
    }
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
    /// Whether it is what the root's path leads to.
    fn is_still_of(&self, root: &Root) -> bool {
        let now = root.origin.lead(&root.path);
        now.is_ok_and(|end| end.path == self.dir && self.is(end.dir.as_fd()))
    }

    /// Whether it is this open directory.
    pub(super) fn is(&self, dir: BorrowedFd<'_>) -> bool {
        let place = (tree::identity(dir), tree::whereabouts(dir));
        place == (Ok(self.identity), Ok(self.whereabouts()))
    }

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

pub(super) fn given(databases: &[Database], locks: Vec<Lock>) -> Vec<Root> {
    let locked = databases.iter().zip(locks).enumerate();
    let roots = locked.map(|(database, (it, lock))| Root {
        path: std::path::absolute(&it.dir).unwrap_or_else(|_| it.dir.clone()),
        prefix: PathBuf::new(),
        database,
        origin: Origin::Given,
        state: State::Gone(None),
        lock: Some(lock),
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
            return Err(unfit(dir, "it is not a directory"));
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
        // Between the look and the watch for its return, a directory may come back, or go: so look again.
        loop {
            self.disarm_stale();
            // All of them before the first is looked at: a link to one of them is not to take it over.
            for number in 0..self.roots.len() {
                let root = self.roots.get(number);
                if root.is_some_and(|root| root.armed().is_none()) && self.arm(number) {
                    self.queue(number, None);
                }
            }
            self.publish();
            self.scan_queued(&mut HashSet::new());
            self.watch_places();
            let is_settled = |root: &Root| match &root.state {
                State::Armed(armed) => armed.is_still_of(root),
                State::Gone(problem) => problem.is_some() || !root.path.is_dir(),
            };
            if self.roots.iter().all(is_settled) || self.control.shall_end() {
                return;
            }
        }
    }

    fn disarm_stale(&mut self) {
        let is_stale = |root: &Root| {
            let armed = root.armed();
            armed.is_some_and(|armed| armed.is_stale || !armed.is_still_of(root))
        };
        let stale: Vec<usize> = (0..self.roots.len())
            .filter(|number| self.roots.get(*number).is_some_and(is_stale))
            .collect();
        if stale.is_empty() {
            return;
        }
        let mut links = std::mem::take(&mut self.known_links);
        for number in stale {
            self.disarm(number);
            let found = self.roots.get(number).filter(|root| !root.is_given());
            let Some(path) = found.map(|root| root.path.clone()) else {
                continue;
            };
            if !path.is_dir() {
                self.say(Level::Info, &format!("{} is gone", path.display()));
            }
            links.insert(path);
        }
        self.roots
            .retain(|root| root.is_given() || root.armed().is_some());
        self.forget_groups();
        self.publish();
        // What was found by a link is found again where it leads now, or by another link.
        for path in links {
            self.link(&path);
        }
    }

    fn disarm(&mut self, number: usize) {
        let Some(root) = self.roots.get_mut(number) else {
            return;
        };
        if let State::Armed(armed) = std::mem::replace(&mut root.state, State::Gone(None)) {
            self.own.remove(armed.watch);
        }
    }

    /// Ends the queues of file systems on which nothing is watched any more.
    fn forget_groups(&mut self) {
        let devices = self.devices();
        self.groups.retain(|device, _| devices.contains(device));
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
        let state = match self.arm_at(number, &path) {
            Ok(armed) => State::Armed(armed),
            Err(ArmError::Gone) => State::Gone(None),
            Err(ArmError::Problem(problem)) => State::Gone(Some(problem)),
        };
        let Some(root) = self.roots.get_mut(number) else {
            return false;
        };
        let text = match &state {
            State::Armed(_) => {
                root.state = state;
                self.warned.remove(&path);
                return true;
            }
            State::Gone(None) => format!("{} is gone; waiting for it", path.display()),
            State::Gone(Some(problem)) => format!("{}: {problem}", path.display()),
        };
        root.state = state;
        // For one that was given this is the error with which the beginning ends.
        if self.has_begun || !root.is_given() {
            self.warn_once(&path, &text);
        }
        false
    }

    fn arm_at(&mut self, number: usize, path: &Path) -> Result<Armed, ArmError> {
        let origin = self.roots.get(number).map(|root| root.origin);
        let end = origin.unwrap_or(Origin::Found).lead(path);
        let End {
            dir: open,
            path: dir,
        } = end.map_err(ArmError::astray)?;
        let report = route::probe(&self.options.system, &dir);
        if let Some(problem) = report.ok().and_then(|report| report.obstacle()) {
            return Err(ArmError::Problem(problem));
        }
        let identity = tree::identity(open.as_fd()).map_err(|error| ArmError::of(&error))?;
        let whereabouts = tree::whereabouts(open.as_fd()).map_err(|error| ArmError::of(&error))?;
        self.lock_again(number, path, identity)?;
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

    /// Takes the lock of what a given path leads to by now; the old one goes with what it was for.
    fn lock_again(
        &mut self,
        number: usize,
        path: &Path,
        identity: Identity,
    ) -> Result<(), ArmError> {
        let place = &self.options.lock_dir;
        let has_it = |root: &Root| root.lock.as_ref().is_some_and(|lock| lock.is_of(identity));
        let mut others = self.roots.iter().enumerate();
        if others.any(|(other, root)| other != number && has_it(root)) {
            return Err(ArmError::Problem("it is given twice".to_owned()));
        }
        if let Some(root) = self.roots.get_mut(number)
            && root.is_given()
            && !has_it(root)
        {
            let lock = Lock::take(place, path, identity);
            root.lock = Some(lock.map_err(|error| ArmError::Problem(error.to_string()))?);
        }
        Ok(())
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

    /// Takes up a directory to which a link or a mount at `path` leads, unless it is ours already.
    pub(super) fn link(&mut self, path: &Path) {
        let end = match links::follow(path) {
            Ok(end) => end,
            Err(LinkError::Errno(error)) if tree::is_gone(error) => return,
            Err(LinkError::Errno(error)) => return self.on_unseen(path, error),
            Err(error @ LinkError::Distrusted { .. }) => {
                let text = format!("{} is not followed: {error}", path.display());
                self.warn_once(path, &text);
                return;
            }
        };
        let known = self.roots.iter().position(|root| root.path == path);
        if let Some(number) = known {
            let root = self.roots.get(number);
            let is_same = |root: &Root| root.armed().is_some_and(|armed| armed.is(end.dir.as_fd()));
            if root.is_some_and(|root| root.is_given() || is_same(root)) {
                return;
            }
            self.disarm(number);
            self.roots.remove(number);
            self.forget_groups();
            self.publish();
        }
        let Some((branch, prefix)) = self.view.branch(path) else {
            return;
        };
        let database = branch.database;
        let Ok(place) = tree::whereabouts(end.dir.as_fd()) else {
            return;
        };
        let is_ours = self.roots.iter().filter_map(Root::armed).any(|armed| {
            end.path.starts_with(&armed.dir) && armed.whereabouts() == place
                || armed.dir.starts_with(&end.path)
        });
        if is_ours {
            self.known_links.insert(path.to_owned());
        } else {
            self.take_up(path, prefix, database, &end.path);
        }
    }

    fn take_up(&mut self, path: &Path, prefix: PathBuf, database: usize, dir: &Path) {
        self.roots.push(Root {
            path: path.to_owned(),
            prefix,
            database,
            origin: Origin::Found,
            state: State::Gone(None),
            lock: None,
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
            self.publish();
            self.queue(number, Some(text));
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

    /// Watches where a missing directory may appear, where rule files are, and what our paths lead through.
    fn watch_places(&mut self) {
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ONLYDIR;
        let mut places = BTreeSet::from_iter(self.rule_dirs());
        for root in self.roots.iter().filter(|root| root.armed().is_none()) {
            let ancestor = root.path.ancestors().skip(1).find(|place| place.is_dir());
            places.extend(ancestor.map(Path::to_owned));
        }
        self.places.watch(&mut self.place_watches, &places, flags);
        let mut ways = BTreeSet::new();
        for root in &self.roots {
            ways.extend(root.path.ancestors().map(Path::to_owned));
            let end = root.armed().map(|armed| armed.dir.ancestors().skip(1));
            ways.extend(end.into_iter().flatten().map(Path::to_owned));
        }
        let flags = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::DONT_FOLLOW;
        self.ways.watch(&mut self.way_watches, &ways, flags);
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

    fn astray(error: LinkError) -> Self {
        match error {
            LinkError::Errno(error) => Self::of(&error),
            error @ LinkError::Distrusted { .. } => Self::Problem(error.to_string()),
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
