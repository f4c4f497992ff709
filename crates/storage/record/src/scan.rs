//! Where every file of the databases lies, looked at again and again.
//!
//! A scan walks and asks for times and sizes; the extents of a file are only asked for again when those have changed, or
//! when some of its bytes had no place yet. Links to directories are followed, as the labeller does; what stands behind
//! them is named by the way through the link, for rules look for it there.

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

use crate::clock::{monotonic_ns, now_ns};
use crate::fiemap::{self, Layout};
use crate::ground::{self, Ground, GroundError};
use crate::map::{Map, Owned};

/// The owner of what we write ourselves.
pub(crate) const OURSELVES: u32 = u32::MAX;
/// A file that changed so shortly before a scan may change again without another time.
const SETTLED: Duration = Duration::from_secs(1);
/// After so many files and directories events are fetched, lest the kernel runs out of room for them.
const FILES_AT_ONCE: u32 = 64;

/// What is done in between; the scan ends when it breaks.
pub(crate) type Between<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// What one scan saw.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    /// When it began, by CLOCK_MONOTONIC.
    pub(crate) began_ns: u64,
    /// Who owns what, by addresses of the trace.
    pub(crate) map: Arc<Map>,
}

/// What changes when a file's extents may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    born: (i64, u32),
    bytes: u64,
    blocks: u64,
    modified: (i64, u32),
    changed: (i64, u32),
}

/// A file that some scan has seen.
#[derive(Debug)]
struct Known {
    name: u32,
    state: State,
    layout: Layout,
    /// Whether the same state means the same layout.
    is_settled: bool,
    scan: u64,
}

/// A file system and where its first byte is in the trace.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    pub(crate) ground: Ground,
    /// Where its disk begins: disks lie one after another.
    pub(crate) base: u64,
    /// The directory by which it was found.
    pub(crate) dir: PathBuf,
}

/// Looks at everything in some directories.
#[derive(Debug)]
pub(crate) struct Scanner {
    dirs: Vec<PathBuf>,
    spaces: Vec<Space>,
    files: HashMap<Identity, Known>,
    names: Names,
    /// When the files were made that have these names.
    births: HashMap<u32, u64>,
    /// Our own output, if there is one, whose writes are nobody's.
    output: Option<(File, Identity)>,
    scans: u64,
    map: Arc<Map>,
    has_changed: bool,
    told: HashSet<PathBuf>,
    /// Whether a file that cannot be recorded is not a reason to end any more: others are being recorded.
    pub(crate) has_begun: bool,
    /// What people should know, until it is taken.
    pub(crate) remarks: Vec<String>,
}

/// The names of files, by their numbers.
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
        let number = u32::try_from(self.list.len()).unwrap_or(OURSELVES - 1);
        self.list.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }
}

fn identified(output: File) -> Result<(File, Identity), GroundError> {
    let identity = tree::identity(output.as_fd());
    let identity = identity.map_err(|error| GroundError::Unfit {
        dir: PathBuf::from("the output"),
        why: error.to_string(),
    })?;
    Ok((output, identity))
}

impl Scanner {
    /// For directories that are canonical, do not contain one another, and can be recorded.
    pub(crate) fn new(dirs: Vec<PathBuf>, output: Option<File>) -> Result<Self, GroundError> {
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
            told: HashSet::new(),
            has_begun: false,
            remarks: Vec::new(),
        };
        for dir in scanner.dirs.clone() {
            scanner.settle_on(&dir)?;
        }
        Ok(scanner)
    }

    /// The file systems that are followed.
    pub(crate) fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    /// A directory on each of them.
    pub(crate) fn places(&self) -> Vec<PathBuf> {
        let places = self.spaces.iter().map(|space| space.dir.clone());
        places.collect()
    }

    /// The name behind a number.
    pub(crate) fn name(&self, number: u32) -> Option<Arc<str>> {
        let number = usize::try_from(number).ok()?;
        self.names.list.get(number).map(Arc::clone)
    }

    /// Where a byte of a disk is in the trace.
    pub(crate) fn address(&self, device: Device, address: u64) -> Option<u64> {
        let space = self
            .spaces
            .iter()
            .find(|space| space.ground.device == device)?;
        space.base.checked_add(address)
    }

    /// Takes up the file system of a directory; whether it is a new one.
    fn settle_on(&mut self, dir: &Path) -> Result<(), GroundError> {
        let ground = ground::find(dir)?;
        if self
            .spaces
            .iter()
            .any(|space| space.ground.device == ground.device)
        {
            return Ok(());
        }
        self.remarks.extend(ground.note.clone());
        let same = self
            .spaces
            .iter()
            .find(|space| space.ground.disk == ground.disk);
        let ends = self
            .spaces
            .iter()
            .map(|space| space.base + space.ground.disk_bytes);
        let base = match same {
            Some(space) => space.base,
            None => ends.max().unwrap_or(0),
        };
        if base > 0 {
            self.remarks.push(format!(
                "{} is on another drive ({}), whose addresses begin at {base} in the trace",
                dir.display(),
                ground.name
            ));
        }
        let dir = dir.to_owned();
        self.spaces.push(Space { ground, base, dir });
        Ok(())
    }

    /// Looks at everything; `between` is called from time to time, and there is nothing to tell when it has broken it off.
    pub(crate) fn scan(&mut self, between: &mut Between<'_>) -> Result<Option<Scan>, GroundError> {
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
        self.look_at_output();
        if std::mem::take(&mut self.has_changed) {
            self.map = Arc::new(self.draw());
        }
        Ok(Some(Scan {
            began_ns,
            map: Arc::clone(&self.map),
        }))
    }

    /// Whether a directory is new to this scan and can be recorded.
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
            self.settle_on(dir)
        } {
            if self.told.insert(dir.to_owned()) {
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
            .find(|space| space.ground.device == device)
    }

    /// Looks at everything below an open directory; answers links to others, if it was not broken off.
    fn walk(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &Path,
        entered: &mut HashSet<Identity>,
        settled_before: SystemTime,
        between: &mut Between<'_>,
    ) -> Result<Option<Vec<PathBuf>>, GroundError> {
        let mut links = Vec::new();
        let mut count = 0;
        let mut failed = None;
        let mut is_broken_off = false;
        let unseen = tree::walk(dir, name, &mut |path, found| {
            if count % FILES_AT_ONCE == 0 && between().is_break() {
                is_broken_off = true;
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
                    if let Err(error) = self.look(dir, name, path, identity, settled_before) {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        });
        for unseen in unseen {
            self.remark(
                &unseen.path,
                &format!("cannot be looked at: {}", unseen.error),
            );
        }
        match failed {
            Some(error) => Err(error),
            None => Ok((!is_broken_off).then_some(links)),
        }
    }

    /// Looks at one file.
    fn look(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        identity: Identity,
        settled_before: SystemTime,
    ) -> Result<(), GroundError> {
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
        // Before the extents: what changes in between is seen by the next scan.
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
            // A second name of a file says nothing new.
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
            Ok(layout) => self.learn(identity, number, state, layout, settled_before),
            Err(Errno::OPNOTSUPP | Errno::NOTTY) if self.has_begun => {
                let known = self.space_of(identity).map(|space| space.dir.clone());
                let place = known.unwrap_or_else(|| path.to_owned());
                self.remark(&place, "does not tell where its files lie (FIEMAP); what is written to them is not counted for any file");
            }
            Err(Errno::OPNOTSUPP | Errno::NOTTY) => {
                return Err(GroundError::Unfit {
                    dir: path.to_owned(),
                    why: "its file system does not tell where files lie (FIEMAP); record on another one (--loop)".to_owned(),
                });
            }
            Err(Errno::NOENT | Errno::STALE | Errno::NXIO | Errno::LOOP) => {}
            Err(error) => self.remark(path, &format!("cannot be looked at: {error}")),
        }
        Ok(())
    }

    /// When the file that has this name now was made, by CLOCK_MONOTONIC; 0 if that was long ago or nobody knows.
    pub(crate) fn born_ns(&self, number: u32) -> u64 {
        self.births.get(&number).copied().unwrap_or_default()
    }

    fn learn(
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

    /// Our own output is known by its descriptor, wherever it is.
    fn look_at_output(&mut self) {
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
            self.learn(identity, OURSELVES, state, layout, UNIX_EPOCH);
        }
    }

    /// The map of all files as they are known now.
    fn draw(&self) -> Map {
        let mut owned = Vec::new();
        for (identity, file) in &self.files {
            let Some(Space { ground, base, .. }) = self.space_of(*identity) else {
                continue;
            };
            let first = base + ground.start;
            let end = base + ground.disk_bytes;
            for extent in &file.layout.extents {
                let start = first.saturating_add(extent.start);
                let range = Owned {
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

    /// Bytes of files that have no place of their own, and bytes that several files share.
    pub(crate) fn oddities(&self) -> (u64, u64) {
        let layouts = self.files.values().map(|file| &file.layout);
        layouts.fold((0, 0), |(placeless, shared), layout| {
            let extents = layout.extents.iter().filter(|extent| extent.is_shared);
            let more = extents.map(|extent| extent.length).sum::<u64>();
            (placeless + layout.placeless_bytes, shared + more)
        })
    }

    /// Says something of a path once.
    fn remark(&mut self, path: &Path, text: &str) {
        if self.told.insert(path.to_owned()) {
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
        // Zero where the file system does not keep it.
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

    /// Two hundred files in memory, as if that were a drive.
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
        let ground = Ground {
            device,
            name: "memory".to_owned(),
            disk: device,
            kind: "tmpfs".to_owned(),
            start: 0,
            disk_bytes: 1 << 30,
            note: None,
        };
        let place = dir.path().to_owned();
        scanner.spaces.push(Space {
            ground,
            base: 0,
            dir: place.clone(),
        });
        scanner.dirs.push(place);
        (dir, scanner)
    }

    #[test]
    fn a_file_without_places_is_an_error_before_and_a_remark_after_the_beginning() {
        let (dir, mut scanner) = scanner();
        let mut on = || ControlFlow::Continue(());
        let error = scanner.scan(&mut on).unwrap_err();
        assert!(error.to_string().contains("FIEMAP"), "{error}");
        assert_eq!(scanner.remarks, Vec::<String>::new());
        scanner.has_begun = true;
        assert!(scanner.scan(&mut on).unwrap().is_some());
        assert!(scanner.scan(&mut on).unwrap().is_some());
        let [remark] = &scanner.remarks[..] else {
            panic!("{:?}", scanner.remarks)
        };
        assert!(remark.starts_with(&format!("{} does not tell", dir.path().display())));
    }

    #[test]
    fn a_scan_ends_when_it_is_broken_off() {
        let (_dir, mut scanner) = scanner();
        scanner.has_begun = true;
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
