//! The labelled directories: those that were given, and those to which links and mounts in them
//! lead. Each may disappear and return; it is watched again then.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::{Database, Labeller, Level, Options, RunError};
use crate::links::{self, End, LinkError};
use crate::lock::Lock;
use crate::route::{self, Report};
use crate::tree::{self, Identity};
use crate::view::{Branch, View};

/// A directory of a database, given or found.
#[derive(Debug)]
pub(super) struct Root {
    /// The path that was given, made absolute, or the path of the link or mount.
    pub(super) path: PathBuf,
    /// Its path in the database.
    prefix: PathBuf,
    database: usize,
    origin: Origin,
    state: State,
    /// `None` for a found directory.
    pub(super) lock: Option<Lock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Given,
    /// Found by a link or a mount.
    Found,
}

impl Origin {
    /// Opens the directory at the end of `path`. Links in a given path are trusted.
    fn resolve(self, path: &Path) -> Result<End, LinkError> {
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
    Watched(Watched),
}

/// A watched directory.
#[derive(Debug)]
pub(super) struct Watched {
    /// Absolute path without links.
    pub(super) dir: PathBuf,
    identity: Identity,
    pub(super) mount: Option<u64>,
    watch: i32,
    is_stale: bool,
}

impl Watched {
    /// Whether the path of `root` still leads to this directory.
    fn is_still_of(&self, root: &Root) -> bool {
        let now = root.origin.resolve(&root.path);
        now.is_ok_and(|end| end.path == self.dir && self.is(end.dir.as_fd()))
    }

    /// Whether `dir` is this directory, opened by the same mount.
    pub(super) fn is(&self, dir: BorrowedFd<'_>) -> bool {
        let found = (tree::identity(dir), tree::file_system_and_mount(dir));
        found == (Ok(self.identity), Ok(self.file_system_and_mount()))
    }

    fn file_system_and_mount(&self) -> ((u32, u32), Option<u64>) {
        (self.identity.device(), self.mount)
    }
}

impl Root {
    pub(super) fn is_given(&self) -> bool {
        self.origin == Origin::Given
    }

    pub(super) fn watched(&self) -> Option<&Watched> {
        match &self.state {
            State::Watched(watched) => Some(watched),
            State::Gone(_) => None,
        }
    }

    /// Returns the reason if the directory is not watched.
    pub(super) fn problem(&self) -> Option<&str> {
        match &self.state {
            State::Watched(_) => None,
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

/// Formats an error of opening a directory, with advice.
fn advised(error: Errno) -> String {
    match error {
        Errno::ACCESS => format!("{error}; run this as root (or with CAP_DAC_READ_SEARCH)"),
        error => error.to_string(),
    }
}

/// Returns the route of hints from each given directory.
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
    /// Updates all roots: ends watches of directories that disappeared or moved, and watches those
    /// that returned.
    pub(super) fn recheck(&mut self) {
        // A directory may return or disappear between the check and the watch of its parent: repeat
        // until nothing changes.
        loop {
            self.unwatch_stale();
            // Watch all roots before the first scan, so that a link to one of them does not add it
            // again.
            for number in 0..self.roots.len() {
                let root = self.roots.get(number);
                if root.is_some_and(|root| root.watched().is_none()) && self.watch_root(number) {
                    self.queue(number, None);
                }
            }
            self.publish();
            self.scan_queued(&mut HashSet::new());
            self.watch_parents_and_ancestors();
            let is_settled = |root: &Root| match &root.state {
                State::Watched(watched) => watched.is_still_of(root),
                State::Gone(problem) => problem.is_some() || !root.path.is_dir(),
            };
            if self.roots.iter().all(is_settled) || self.control.shall_end() {
                return;
            }
        }
    }

    fn unwatch_stale(&mut self) {
        let is_stale = |root: &Root| {
            let watched = root.watched();
            watched.is_some_and(|watched| watched.is_stale || !watched.is_still_of(root))
        };
        let stale: Vec<usize> = (0..self.roots.len())
            .filter(|number| self.roots.get(*number).is_some_and(is_stale))
            .collect();
        if stale.is_empty() {
            return;
        }
        let mut links = std::mem::take(&mut self.known_links);
        for number in stale {
            self.unwatch(number);
            let found = self.roots.get(number).filter(|root| !root.is_given());
            let Some(path) = found.map(|root| root.path.clone()) else {
                continue;
            };
            if !path.is_dir() {
                self.log(Level::Info, &format!("{} is gone", path.display()));
            }
            links.insert(path);
        }
        self.roots
            .retain(|root| root.is_given() || root.watched().is_some());
        self.forget_groups();
        self.publish();
        // Follow the links again: they may lead elsewhere now.
        for path in links {
            self.follow_link(&path);
        }
    }

    fn unwatch(&mut self, number: usize) {
        let Some(root) = self.roots.get_mut(number) else {
            return;
        };
        if let State::Watched(watched) = std::mem::replace(&mut root.state, State::Gone(None)) {
            self.watcher.remove_root(watched.watch);
        }
    }

    /// Closes the fanotify groups of file systems without a watched directory.
    fn forget_groups(&mut self) {
        let devices = self.devices();
        self.watcher.retain_file_systems(&devices);
    }

    /// Returns the device numbers of the file systems with watched directories.
    pub(super) fn devices(&self) -> HashSet<(u32, u32)> {
        let watched = self.roots.iter().filter_map(Root::watched);
        watched.map(|watched| watched.identity.device()).collect()
    }

    /// Tries to watch a directory. Returns whether it is watched now.
    fn watch_root(&mut self, number: usize) -> bool {
        let Some(path) = self.roots.get(number).map(|root| root.path.clone()) else {
            return false;
        };
        let state = match self.open_and_watch(number, &path) {
            Ok(watched) => State::Watched(watched),
            Err(WatchError::Gone) => State::Gone(None),
            Err(WatchError::Problem(problem)) => State::Gone(Some(problem)),
        };
        let Some(root) = self.roots.get_mut(number) else {
            return false;
        };
        let text = match &state {
            State::Watched(_) => {
                root.state = state;
                self.warnings.end(&path);
                return true;
            }
            State::Gone(None) => format!("{} is gone; waiting for it", path.display()),
            State::Gone(Some(problem)) => format!("{}: {problem}", path.display()),
        };
        root.state = state;
        // At the start, a missing given directory is the error of `run` instead.
        if self.has_started || !root.is_given() {
            self.warn_once(&path, &text);
        }
        false
    }

    fn open_and_watch(&mut self, number: usize, path: &Path) -> Result<Watched, WatchError> {
        let origin = self.roots.get(number).map(|root| root.origin);
        let end = origin.unwrap_or(Origin::Found).resolve(path);
        let End {
            dir: open,
            path: dir,
        } = end.map_err(WatchError::of_link)?;
        let report = route::probe(&self.options.system, &dir);
        if let Some(problem) = report.ok().and_then(|report| report.obstacle()) {
            return Err(WatchError::Problem(problem));
        }
        let identity = tree::identity(open.as_fd()).map_err(|error| WatchError::of(&error))?;
        let (_, mount) =
            tree::file_system_and_mount(open.as_fd()).map_err(|error| WatchError::of(&error))?;
        self.renew_lock(number, path, identity)?;
        let watch = self.watcher.add_root(&tree::own_path(open.as_fd()));
        let watch =
            watch.map_err(|error| WatchError::Problem(format!("cannot watch it: {error}")))?;
        if !self.options.once {
            let watched = self
                .watcher
                .watch_file_system(identity.device(), open.as_fd());
            watched.map_err(WatchError::unwatchable)?;
        }
        Ok(Watched {
            dir,
            identity,
            mount,
            watch,
            is_stale: false,
        })
    }

    /// Replaces the lock of a given root if its path leads to another directory now.
    fn renew_lock(
        &mut self,
        number: usize,
        path: &Path,
        identity: Identity,
    ) -> Result<(), WatchError> {
        let place = &self.options.lock_dir;
        let has_it = |root: &Root| root.lock.as_ref().is_some_and(|lock| lock.is_of(identity));
        let mut others = self.roots.iter().enumerate();
        if others.any(|(other, root)| other != number && has_it(root)) {
            return Err(WatchError::Problem("it is given twice".to_owned()));
        }
        if let Some(root) = self.roots.get_mut(number)
            && root.is_given()
            && !has_it(root)
        {
            let lock = Lock::take(place, path, identity);
            root.lock = Some(lock.map_err(|error| WatchError::Problem(error.to_string()))?);
        }
        Ok(())
    }

    /// Rebuilds the view of all branches and passes it to the gate.
    pub(super) fn publish(&mut self) {
        let branches = self.roots.iter().filter_map(|root| {
            let watched = root.watched()?;
            Some(Branch {
                dir: watched.dir.clone(),
                prefix: root.prefix.clone(),
                rules: Arc::clone(self.loaded.rules.get(root.database)?),
                database: root.database,
                device: watched.identity.device(),
                mount: watched.mount,
            })
        });
        self.view = Arc::new(View {
            branches: branches.collect(),
        });
        if let Some(gate) = &self.gate {
            gate.set_view(Arc::clone(&self.view));
        }
    }

    /// Adds the directory to which a link or mount at `path` leads, unless it is labelled already.
    pub(super) fn follow_link(&mut self, path: &Path) {
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
            let is_same = |root: &Root| {
                root.watched()
                    .is_some_and(|watched| watched.is(end.dir.as_fd()))
            };
            if root.is_some_and(|root| root.is_given() || is_same(root)) {
                return;
            }
            self.unwatch(number);
            self.roots.remove(number);
            self.forget_groups();
            self.publish();
        }
        let Some((branch, prefix)) = self.view.branch(path) else {
            return;
        };
        let database = branch.database;
        let Ok(found) = tree::file_system_and_mount(end.dir.as_fd()) else {
            return;
        };
        let is_ours = self.roots.iter().filter_map(Root::watched).any(|watched| {
            end.path.starts_with(&watched.dir) && watched.file_system_and_mount() == found
                || watched.dir.starts_with(&end.path)
        });
        if is_ours {
            self.known_links.insert(path.to_owned());
        } else {
            self.add_found(path, prefix, database, &end.path);
        }
    }

    fn add_found(&mut self, path: &Path, prefix: PathBuf, database: usize, dir: &Path) {
        self.roots.push(Root {
            path: path.to_owned(),
            prefix,
            database,
            origin: Origin::Found,
            state: State::Gone(None),
            lock: None,
        });
        let number = self.roots.len() - 1;
        if self.watch_root(number) {
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

    /// Marks roots that were deleted, moved or unmounted since the last call. Returns whether a
    /// watch of a root had an event.
    pub(super) fn mark_stale_roots(&mut self) -> bool {
        let mut has_event = false;
        for event in self.watcher.root_events() {
            for root in &mut self.roots {
                let State::Watched(watched) = &mut root.state else {
                    continue;
                };
                if event.concerns(watched.watch) {
                    watched.is_stale |= event.is_end();
                    has_event = true;
                }
            }
        }
        has_event
    }

    /// Watches the directories in which missing roots and rule files may appear, and all links and
    /// directories on the paths of the roots.
    fn watch_parents_and_ancestors(&mut self) {
        let mut parents = BTreeSet::from_iter(self.rule_dirs());
        for root in self.roots.iter().filter(|root| root.watched().is_none()) {
            let ancestor = root.path.ancestors().skip(1).find(|path| path.is_dir());
            parents.extend(ancestor.map(Path::to_owned));
        }
        self.watcher.watch_parents(&parents);
        let mut ancestors = BTreeSet::new();
        for root in &self.roots {
            ancestors.extend(root.path.ancestors().map(Path::to_owned));
            let end = root
                .watched()
                .map(|watched| watched.dir.ancestors().skip(1));
            ancestors.extend(end.into_iter().flatten().map(Path::to_owned));
        }
        self.watcher.watch_ancestors(&ancestors);
    }

    /// Returns the mount points in the roots and above them.
    pub(super) fn relevant_mount_points(&self) -> Vec<PathBuf> {
        let mounts = self.options.system.mounts().unwrap_or_default();
        let points = mounts.into_iter().map(|mount| mount.point);
        let concerns = |point: &PathBuf| {
            self.roots.iter().any(|root| {
                let dir = root.watched().map_or(&root.path, |watched| &watched.dir);
                point.starts_with(dir) || dir.starts_with(point)
            })
        };
        points.filter(concerns).collect()
    }

    /// Scans all files if the relevant mount points have changed. Returns whether they have.
    pub(super) fn on_mounts_changed(&mut self) -> bool {
        let points = self.relevant_mount_points();
        let has_changed = points != self.mount_points;
        self.mount_points = points;
        if has_changed {
            self.scan_all();
        }
        has_changed
    }
}

/// An error of watching a directory.
enum WatchError {
    Gone,
    Problem(String),
}

impl WatchError {
    fn of(error: &Errno) -> Self {
        match *error {
            Errno::NOENT | Errno::NOTDIR | Errno::STALE => Self::Gone,
            error => Self::Problem(error.to_string()),
        }
    }

    fn of_link(error: LinkError) -> Self {
        match error {
            LinkError::Errno(error) => Self::of(&error),
            error @ LinkError::Distrusted { .. } => Self::Problem(error.to_string()),
        }
    }

    fn unwatchable(error: Errno) -> Self {
        Self::Problem(match error {
            Errno::OPNOTSUPP | Errno::NODEV | Errno::XDEV => format!(
                "its file system cannot be watched ({error}); label it periodically with --once"
            ),
            Errno::PERM => "watching its file system needs root (CAP_SYS_ADMIN)".to_owned(),
            error => format!("cannot watch its file system: {error}"),
        })
    }
}
