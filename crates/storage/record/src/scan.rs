//! Scans the directories of the databases for the extents of every file.
//!
//! A scan reads times and sizes; the extents of a file are read again only if those have changed,
//! or if some bytes had no extent yet. Links to directories are followed as by the labeller; files
//! behind them are named by the path through the link, which rules match.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;
use saiga_blocktrace::Device;
use saiga_streams::tree::{self, Found, Identity};

use crate::backing::{self, BackingError, BackingVolume};
use crate::clock::{monotonic_ns, now_ns};
use crate::fiemap::{self, Layout};
use crate::map::{Map, OwnedRange};

/// The number of the recorder's own output.
pub(crate) const OWN_OUTPUT: u32 = u32::MAX;
/// A file that changed within this time before a scan may change again without a new time stamp.
const SETTLED: Duration = Duration::from_secs(1);
/// Number of files and directories after which events are fetched, before the kernel's buffer is
/// full.
const FILES_AT_ONCE: u32 = 64;

/// Called repeatedly during a scan; `Break` ends the scan.
pub(crate) type Between<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// The result of a scan.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    /// The start of the scan by CLOCK_MONOTONIC.
    pub(crate) began_ns: u64,
    pub(crate) map: Arc<Map>,
}

/// The attributes of a file that change if its extents change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    born: (i64, u32),
    bytes: u64,
    blocks: u64,
    modified: (i64, u32),
    changed: (i64, u32),
}

/// A file of the last scans.
#[derive(Debug)]
struct Known {
    name: u32,
    state: State,
    layout: Layout,
    /// Whether an unchanged state implies an unchanged layout.
    is_settled: bool,
    scan: u64,
}

/// A file system and the address of its disk in the trace.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    pub(crate) volume: BackingVolume,
    /// Address of its disk in the trace, in which disks follow each other.
    pub(crate) base: u64,
    /// A directory on the file system.
    pub(crate) dir: PathBuf,
}

/// Scans directories.
#[derive(Debug)]
pub(crate) struct Scanner {
    dirs: Vec<PathBuf>,
    spaces: Vec<Space>,
    files: HashMap<Identity, Known>,
    names: Names,
    /// The births of the files with these names, by CLOCK_MONOTONIC.
    births: HashMap<u32, u64>,
    /// The recorder's own output, if there is one.
    output: Option<(File, Identity)>,
    scans: u64,
    map: Arc<Map>,
    has_changed: bool,
    reported: HashSet<PathBuf>,
    /// Whether the recording has started, so that a file that cannot be recorded is not an error
    /// any more.
    pub(crate) has_started: bool,
    /// Remarks for the user.
    pub(crate) remarks: Vec<String>,
}

/// Numbers for the names of files.
#[derive(Debug, Default)]
struct Names {
    list: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Names {
    fn number(&mut self, path: &Path) -> u32 {
        let name = path.to_string_lossy();
        if let Some(number) = self.numbers.get(name.as_ref()) {
            return *number;
        }
        let name: Arc<str> = name.into();
        let number = u32::try_from(self.list.len()).unwrap_or(OWN_OUTPUT - 1);
        self.list.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }
}

fn identified(output: File) -> Result<(File, Identity), BackingError> {
    let identity = tree::identity(output.as_fd());
    let identity = identity.map_err(|error| BackingError::Unfit {
        dir: PathBuf::from("the output"),
        why: error.to_string(),
    })?;
    Ok((output, identity))
}

impl Scanner {
    /// Creates a scanner for directories with resolved paths that are not nested.
    pub(crate) fn new(dirs: Vec<PathBuf>, output: Option<File>) -> Result<Self, BackingError> {
        let output = output.map(identified).transpose()?;
        let mut scanner = Self {
            dirs,
            spaces: Vec::new(),
            files: HashMap::new(),
            names: Names::default(),
            births: HashMap::new(),
            output,
            scans: 0,
            map: Arc::default(),
            has_changed: true,
            reported: HashSet::new(),
            has_started: false,
            remarks: Vec::new(),
        };
        for dir in scanner.dirs.clone() {
            scanner.add_volume(&dir)?;
        }
        Ok(scanner)
    }

    pub(crate) fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    /// Returns a directory on each file system, for syncfs(2).
    pub(crate) fn sync_dirs(&self) -> Vec<PathBuf> {
        let dirs = self.spaces.iter().map(|space| space.dir.clone());
        dirs.collect()
    }

    /// Returns the name of a file by its number.
    pub(crate) fn name(&self, number: u32) -> Option<Arc<str>> {
        let number = usize::try_from(number).ok()?;
        self.names.list.get(number).map(Arc::clone)
    }

    /// Converts an address on a device to an address in the trace.
    pub(crate) fn address(&self, device: Device, address: u64) -> Option<u64> {
        let space = self
            .spaces
            .iter()
            .find(|space| space.volume.device == device)?;
        space.base.checked_add(address)
    }

    /// Adds the file system of a directory unless it is known.
    fn add_volume(&mut self, dir: &Path) -> Result<(), BackingError> {
        let volume = backing::find(dir)?;
        if self
            .spaces
            .iter()
            .any(|space| space.volume.device == volume.device)
        {
            return Ok(());
        }
        self.remarks.extend(volume.note.clone());
        let same = self
            .spaces
            .iter()
            .find(|space| space.volume.disk == volume.disk);
        let ends = self
            .spaces
            .iter()
            .map(|space| space.base + space.volume.disk_bytes);
        let base = match same {
            Some(space) => space.base,
            None => ends.max().unwrap_or(0),
        };
        if base > 0 {
            self.remarks.push(format!(
                "{} is on another drive ({}), whose addresses begin at {base} in the trace",
                dir.display(),
                volume.name
            ));
        }
        let dir = dir.to_owned();
        self.spaces.push(Space { volume, base, dir });
        Ok(())
    }

    /// Scans all directories and calls `between` repeatedly. Returns `None` if `between` ended the
    /// scan.
    pub(crate) fn scan(&mut self, between: &mut Between<'_>) -> Result<Option<Scan>, BackingError> {
        let began_ns = now_ns();
        self.scans += 1;
        let settled_before = SystemTime::now().checked_sub(SETTLED).unwrap_or(UNIX_EPOCH);
        let mut entered = HashSet::new();
        let given = self.dirs.iter().map(|dir| (dir.clone(), dir.clone()));
        let mut queue: VecDeque<(PathBuf, PathBuf)> = given.collect();
        while let Some((name, dir)) = queue.pop_front() {
            let Ok(open) = tree::open_dir(&dir) else {
                self.remark(&dir, "cannot be opened");
                continue;
            };
            if !self.enter(&dir, open.as_fd(), &mut entered) {
                continue;
            }
            let links = self.walk(open.as_fd(), &name, &mut entered, settled_before, between)?;
            let Some(links) = links else {
                return Ok(None);
            };
            let links = links
                .into_iter()
                .filter_map(|link| Some((link.clone(), link.canonicalize().ok()?)));
            queue.extend(links);
        }
        let known = self.files.len();
        let scan = self.scans;
        self.files.retain(|_, file| file.scan == scan);
        self.has_changed |= self.files.len() != known;
        self.inspect_output();
        if std::mem::take(&mut self.has_changed) {
            self.map = Arc::new(self.build_map());
        }
        Ok(Some(Scan {
            began_ns,
            map: Arc::clone(&self.map),
        }))
    }

    /// Whether to scan a directory: it was not scanned yet and can be recorded.
    fn enter(&mut self, dir: &Path, open: BorrowedFd<'_>, entered: &mut HashSet<Identity>) -> bool {
        let Ok(identity) = tree::identity(open) else {
            return false;
        };
        if entered.contains(&identity) {
            return false;
        }
        let is_known = self.space_of(identity).is_some();
        if let Err(error) = if is_known {
            Ok(())
        } else {
            self.add_volume(dir)
        } {
            if self.reported.insert(dir.to_owned()) {
                self.remarks.push(error.to_string());
            }
            return false;
        }
        true
    }

    fn space_of(&self, identity: Identity) -> Option<&Space> {
        let (major, minor) = identity.device();
        let device = Device { major, minor };
        self.spaces
            .iter()
            .find(|space| space.volume.device == device)
    }

    /// Inspects all files below an open directory. Returns the links to other directories; `None`
    /// if `between` ended the scan.
    fn walk(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &Path,
        entered: &mut HashSet<Identity>,
        settled_before: SystemTime,
        between: &mut Between<'_>,
    ) -> Result<Option<Vec<PathBuf>>, BackingError> {
        let mut links = Vec::new();
        let mut count = 0;
        let mut failed = None;
        let mut is_ended = false;
        let unseen = tree::walk(dir, name, &mut |path, found| {
            if count % FILES_AT_ONCE == 0 && between().is_break() {
                is_ended = true;
                return ControlFlow::Break(());
            }
            count += 1;
            match found {
                Found::Directory(dir) => entered.extend(tree::identity(dir).ok()),
                Found::Elsewhere => links.push(path.to_owned()),
                Found::File {
                    dir,
                    name,
                    identity,
                    bytes: _,
                } => {
                    if let Err(error) = self.inspect_file(dir, name, path, identity, settled_before)
                    {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        });
        for unseen in unseen {
            self.remark(&unseen.path, &format!("cannot be read: {}", unseen.error));
        }
        match failed {
            Some(error) => Err(error),
            None => Ok((!is_ended).then_some(links)),
        }
    }

    /// Updates the state and the extents of a file.
    fn inspect_file(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        identity: Identity,
        settled_before: SystemTime,
    ) -> Result<(), BackingError> {
        if self
            .output
            .as_ref()
            .is_some_and(|output| output.1 == identity)
        {
            return Ok(());
        }
        if self.space_of(identity).is_none() {
            self.remark(
                path,
                "is on another file system (a bind mount) and is not recorded",
            );
            return Ok(());
        }
        // Read before the extents, so that the next scan notices a change in between.
        let Ok(state) = state(dir, name) else {
            return Ok(());
        };
        let scan = self.scans;
        let number = self.names.number(path);
        if let Some(known) = self.files.get_mut(&identity) {
            let was_seen = known.scan == scan;
            if !was_seen && known.name != number {
                known.name = number;
                self.births.insert(number, monotonic_ns(known.state.born));
                self.has_changed = true;
            }
            known.scan = scan;
            // A second name of a file adds nothing.
            if was_seen || known.is_settled && known.state == state {
                return Ok(());
            }
        }
        let layout = match tree::open_file(dir, name) {
            Ok((file, same, _)) if same == identity => fiemap::layout(file.as_fd()),
            Ok(_) => return Ok(()),
            Err(error) => Err(error),
        };
        match layout {
            Ok(layout) => self.update(identity, number, state, layout, settled_before),
            Err(Errno::OPNOTSUPP | Errno::NOTTY) if self.has_started => {
                let known = self.space_of(identity).map(|space| space.dir.clone());
                let dir = known.unwrap_or_else(|| path.to_owned());
                self.remark(
                    &dir,
                    "does not report the extents of its files (FIEMAP); writes to them are not \
                     counted for any file",
                );
            }
            Err(Errno::OPNOTSUPP | Errno::NOTTY) => {
                return Err(BackingError::Unfit {
                    dir: path.to_owned(),
                    why:
                        "its file system does not report the extents of files (FIEMAP); record on \
                          another one (--loop)"
                            .to_owned(),
                });
            }
            Err(Errno::NOENT | Errno::STALE | Errno::NXIO | Errno::LOOP) => {}
            Err(error) => self.remark(path, &format!("cannot be read: {error}")),
        }
        Ok(())
    }

    /// Returns the birth of the file with this name by CLOCK_MONOTONIC; 0 if it was before boot or
    /// is unknown.
    pub(crate) fn born_ns(&self, number: u32) -> u64 {
        self.births.get(&number).copied().unwrap_or_default()
    }

    fn update(
        &mut self,
        identity: Identity,
        name: u32,
        state: State,
        layout: Layout,
        settled_before: SystemTime,
    ) {
        self.births.insert(name, monotonic_ns(state.born));
        let known = self.files.get(&identity);
        self.has_changed |= known.is_none_or(|known| known.layout != layout);
        let before = settled_before
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let before = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
        let is_settled =
            !layout.is_delayed && state.changed.0 < before && state.modified.0 < before;
        let known = Known {
            name,
            state,
            layout,
            is_settled,
            scan: self.scans,
        };
        self.files.insert(identity, known);
    }

    /// Updates the extents of the recorder's own output, by its descriptor.
    fn inspect_output(&mut self) {
        let Some((file, identity)) = &self.output else {
            return;
        };
        let identity = *identity;
        if self.space_of(identity).is_none() {
            return;
        }
        if let Ok(layout) = fiemap::layout(file.as_fd()) {
            let state = State {
                born: (0, 0),
                bytes: 0,
                blocks: 0,
                modified: (i64::MAX, 0),
                changed: (i64::MAX, 0),
            };
            self.update(identity, OWN_OUTPUT, state, layout, UNIX_EPOCH);
        }
    }

    /// Builds the map from the known files.
    fn build_map(&self) -> Map {
        let mut owned = Vec::new();
        for (identity, file) in &self.files {
            let Some(Space { volume, base, .. }) = self.space_of(*identity) else {
                continue;
            };
            let first = base + volume.start;
            let end = base + volume.disk_bytes;
            for extent in &file.layout.extents {
                let start = first.saturating_add(extent.start);
                let range = OwnedRange {
                    start,
                    end: start.saturating_add(extent.length).min(end),
                    file: file.name,
                    is_written: extent.is_written,
                };
                owned.push(range);
            }
        }
        Map::new(owned)
    }

    /// Returns the bytes of files without an extent, and the bytes that several files share.
    pub(crate) fn unusual_bytes(&self) -> (u64, u64) {
        let layouts = self.files.values().map(|file| &file.layout);
        layouts.fold((0, 0), |(unmapped, shared), layout| {
            let extents = layout.extents.iter().filter(|extent| extent.is_shared);
            let more = extents.map(|extent| extent.length).sum::<u64>();
            (unmapped + layout.unmapped_bytes, shared + more)
        })
    }

    /// Adds a remark about a path, once for each path.
    fn remark(&mut self, path: &Path, text: &str) {
        if self.reported.insert(path.to_owned()) {
            self.remarks.push(format!("{} {text}", path.display()));
        }
    }
}

fn state(dir: BorrowedFd<'_>, name: &OsStr) -> Result<State, Errno> {
    let stat = rustix::fs::statx(
        dir,
        name,
        AtFlags::SYMLINK_NOFOLLOW,
        StatxFlags::BASIC_STATS | StatxFlags::BTIME,
    )?;
    Ok(State {
        // Zero if the file system stores no time of birth.
        born: (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec),
        bytes: stat.stx_size,
        blocks: stat.stx_blocks,
        modified: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
        changed: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    /// A scanner of two hundred files in tmpfs, which it takes for a drive.
    fn scanner() -> (tempfile::TempDir, Scanner) {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        for number in 0..200 {
            fs::write(dir.path().join(number.to_string()), "x").unwrap();
        }
        let mut scanner = Scanner::new(Vec::new(), None).unwrap();
        let number = dir.path().metadata().unwrap().dev();
        let device = Device {
            major: rustix::fs::major(number),
            minor: rustix::fs::minor(number),
        };
        let volume = BackingVolume {
            device,
            name: "memory".to_owned(),
            disk: device,
            kind: "tmpfs".to_owned(),
            start: 0,
            disk_bytes: 1 << 30,
            note: None,
        };
        let path = dir.path().to_owned();
        scanner.spaces.push(Space {
            volume,
            base: 0,
            dir: path.clone(),
        });
        scanner.dirs.push(path);
        (dir, scanner)
    }

    #[test]
    fn missing_extents_are_an_error_before_and_a_remark_after_the_start() {
        let (dir, mut scanner) = scanner();
        let mut on = || ControlFlow::Continue(());
        let error = scanner.scan(&mut on).unwrap_err();
        assert!(error.to_string().contains("FIEMAP"), "{error}");
        assert_eq!(scanner.remarks, Vec::<String>::new());
        scanner.has_started = true;
        assert!(scanner.scan(&mut on).unwrap().is_some());
        assert!(scanner.scan(&mut on).unwrap().is_some());
        let [remark] = &scanner.remarks[..] else {
            panic!("{:?}", scanner.remarks)
        };
        assert!(remark.starts_with(&format!("{} does not report", dir.path().display())));
    }

    #[test]
    fn a_scan_ends_at_a_break() {
        let (_dir, mut scanner) = scanner();
        scanner.has_started = true;
        for last in [1, 3] {
            let mut calls = 0;
            let scan = scanner.scan(&mut || {
                calls += 1;
                if calls == last {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            assert!(scan.unwrap().is_none());
            assert_eq!(calls, last);
        }
    }
}
