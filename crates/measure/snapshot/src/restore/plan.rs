//! Plans a restore: compares the directories with the snapshot and changes nothing.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::{RestoreError, owners};
use crate::compare::is_root;
use crate::content::{self, Chunk, Piece, chunks};
use crate::disk::{Disk, Fault};
use crate::handle::{Handle, Support};
use crate::manifest::{Contents, Entry, Kind, Part};
use crate::options::{Check, Options, Reflink};
use crate::pool;
use crate::progress::{Meter, Phase, Report};
use crate::scan::{Found, mounted_inside, scan};
use crate::snapshot::Snapshot;
use crate::stat::{FileType, Identity};
use crate::store;
use crate::tree::{Access, Tree};

/// Pieces per unit of work of a thread.
const RUN: usize = 64;

/// All changes that a restore has to make.
pub(super) struct Plan<'s, 'd> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) options: &'s Options,
    pub(super) store: Tree<'d>,
    pub(super) targets: Vec<Target<'s, 'd>>,
    pub(super) files: Vec<FilePlan<'s>>,
}

/// A part of the snapshot and the present directory at its path.
pub(super) struct Target<'s, 'd> {
    pub(super) part: &'s Part,
    /// `None` if the directory does not exist.
    pub(super) tree: Option<Tree<'d>>,
    pub(super) found: Vec<Found>,
    /// Whether files can share extents with the snapshot.
    shares: bool,
    /// Names to remove, the content of a folder before the folder.
    pub(super) to_remove: Vec<(PathBuf, FileType)>,
    /// Names that the restore does not remove.
    pub(super) kept: HashSet<PathBuf>,
}

/// A file of the snapshot, and how to restore its content.
pub(super) struct FilePlan<'s> {
    pub(super) part: usize,
    pub(super) entry: &'s Entry,
    pub(super) contents: &'s Contents,
    pub(super) transfer: Transfer,
}

/// How the content of a file is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Transfer {
    /// Share the extents of the whole file.
    Share,
    /// Write the pieces with these numbers.
    Write(Vec<u64>),
}

impl<'s, 'd> Plan<'s, 'd> {
    pub(super) fn new(
        disk: &'d Disk,
        snapshot: &'s Snapshot,
        options: &'s Options,
        report: Report<'_>,
    ) -> Result<Self, RestoreError> {
        let manifest = snapshot.manifest();
        let store = Tree::open(disk, snapshot.dir())?;
        let mut plan = Self {
            snapshot,
            options,
            store,
            targets: Vec::new(),
            files: Vec::new(),
        };
        for part in &manifest.parts {
            plan.targets.push(target(disk, part)?);
        }
        plan.probe_sharing()?;
        plan.choose_names();
        owners::check(&plan.targets)?;
        plan.check_store()?;
        plan.check_space(disk)?;
        plan.files = manifest
            .files()
            .filter(|(_, _, contents)| contents.size > 0)
            .map(|(part, entry, contents)| FilePlan {
                part,
                entry,
                contents,
                transfer: Transfer::Share,
            })
            .collect();
        plan.find_differences(report)?;
        plan.check_bytes(report)?;
        Ok(plan)
    }

    /// Whether the content of this part's files is checked.
    pub(super) fn is_thorough(&self, part: usize) -> bool {
        match self.options.check {
            Check::Full => true,
            Check::Quick => false,
            Check::Auto => !self.shares(part),
        }
    }

    fn shares(&self, part: usize) -> bool {
        self.targets.get(part).is_some_and(|target| target.shares)
    }

    /// Opens the snapshot's copy of a file.
    pub(super) fn stored(&self, contents: &Contents) -> Result<Handle<'d>, Fault> {
        let name = store::file_name(contents.stored.unwrap_or(u64::MAX));
        self.store.file(&name, Access::Read)
    }

    /// Scans again and compares with the first scan, including ctime, which no program can set.
    pub(super) fn check_unchanged(&self, trees: &[Tree<'_>]) -> Result<(), RestoreError> {
        for (target, tree) in self.targets.iter().zip(trees) {
            // The root itself changes: this restore has marked it, or made it.
            let inside = |found: &&Found| !found.path.as_os_str().is_empty();
            let now = scan(tree)?;
            let mut now = now.iter().filter(inside);
            let before = target.found.iter().filter(inside);
            for before in before {
                let changed = match now.next() {
                    Some(now) if before.is_same(now) => continue,
                    Some(now) => before.path.as_path().min(&now.path),
                    None => &before.path,
                };
                return Err(RestoreError::Changed(tree.full_path(changed)));
            }
            if let Some(new) = now.next() {
                return Err(RestoreError::Changed(tree.full_path(&new.path)));
            }
        }
        Ok(())
    }

    /// Tests for each part whether a file can share extents with the snapshot.
    fn probe_sharing(&mut self) -> Result<(), RestoreError> {
        let file_in = |target: &Target<'s, 'd>| target.tree.as_ref().and_then(Tree::unnamed_file);
        for index in 0..self.targets.len() {
            let mut files = self.snapshot.manifest().files();
            let first = files.find(|(part, _, contents)| *part == index && contents.size > 0);
            let probe = self.targets.get(index).and_then(file_in);
            let shares = match (self.options.reflink, first, probe) {
                (Reflink::Auto, Some((_, _, contents)), Some(probe)) => {
                    let source = self.stored(contents)?;
                    probe.clone_from(&source)? == Support::Done
                }
                (Reflink::Auto | Reflink::Never, _, _) => false,
            };
            if let Some(target) = self.targets.get_mut(index) {
                target.shares = shares;
            }
        }
        Ok(())
    }

    /// Decides which present names stay: those of the right file type whose file has exactly the
    /// hard links of the snapshot. Writing to a file with another hard link would change a file
    /// outside of the parts.
    fn choose_names(&mut self) {
        let mut names: HashMap<Identity, Vec<(usize, PathBuf)>> = HashMap::new();
        for (index, target) in self.targets.iter().enumerate() {
            let files = target
                .found
                .iter()
                .filter(|found| found.stat.file_type == FileType::File);
            for found in files {
                let name = (index, found.path.clone());
                names.entry(found.stat.identity).or_default().push(name);
            }
        }
        let wanted = wanted_names(self.snapshot);
        for (index, target) in self.targets.iter_mut().enumerate() {
            let kinds = target.part.entries.iter();
            let kinds: HashMap<&Path, &Kind> = kinds
                .map(|entry| (entry.path.as_path(), &entry.kind))
                .collect();
            for found in &target.found {
                let is_right = match (kinds.get(found.path.as_path()), found.stat.file_type) {
                    (Some(Kind::Directory), FileType::Directory) => true,
                    (Some(Kind::Symlink(target)), FileType::Symlink) => {
                        found.target.as_ref() == Some(target)
                    }
                    (Some(Kind::File(_) | Kind::HardLink { .. }), FileType::File) => {
                        let present = names.get(&found.stat.identity);
                        let wanted = wanted.get(&(index, found.path.clone()));
                        let count = usize::try_from(found.stat.links);
                        present == wanted
                            && count == Ok(present.map_or(0, Vec::len))
                            && (is_root() || found.stat.mode & 0o600 == 0o600)
                    }
                    (_, _) => false,
                };
                if is_right {
                    target.kept.insert(found.path.clone());
                } else {
                    let removed = (found.path.clone(), found.stat.file_type);
                    target.to_remove.push(removed);
                }
            }
            target.to_remove.reverse();
        }
    }

    /// Checks sizes and times of the snapshot's own files.
    fn check_store(&self) -> Result<(), RestoreError> {
        for (part, entry, contents) in self.snapshot.manifest().files() {
            if contents.size == 0 {
                continue;
            }
            let file = self.stored(contents)?;
            let stat = file.stat()?;
            // A snapshot that was copied has other times; a full check reads the content anyway.
            let has_old_time = stat.mtime == entry.metadata.mtime || self.is_thorough(part);
            if stat.size != contents.size || !has_old_time {
                return Err(damaged(&file));
            }
        }
        Ok(())
    }

    fn check_space(&self, disk: &Disk) -> Result<(), RestoreError> {
        // By file system: a part on it, its free and reusable bytes, and the bytes needed.
        let mut needs: HashMap<(u32, u32), (PathBuf, u64, u64)> = HashMap::new();
        for (index, target) in self.targets.iter().enumerate() {
            let parent = || target.part.path.parent().unwrap_or(Path::new("/"));
            let home = match &target.tree {
                Some(_) => Tree::open(disk, &target.part.path)?,
                None => Tree::open(disk, parent())?,
            };
            let Some(stat) = home.stat(Path::new(""))? else {
                continue;
            };
            let files = self.snapshot.manifest().files();
            let own = files.filter(|(part, _, _)| *part == index && !target.shares);
            let needed: u64 = own.map(|(_, _, contents)| contents.allocated).sum();
            let free = home.free_bytes()?;
            let path = target.part.path.clone();
            let device = (stat.identity.major, stat.identity.minor);
            let need = needs.entry(device).or_insert((path, free, 0));
            need.1 = need.1.saturating_add(target.reusable());
            need.2 = need.2.saturating_add(needed);
        }
        match needs.into_values().find(|(_, free, needed)| free < needed) {
            None => Ok(()),
            Some((path, free, needed)) => Err(RestoreError::Space { path, free, needed }),
        }
    }

    /// Finds the pieces to write: the pieces that differ, or all pieces of a file that is not read.
    fn find_differences(&mut self, report: Report<'_>) -> Result<(), RestoreError> {
        let read: Vec<bool> = self.files.iter().map(|file| self.is_read(file)).collect();
        let sizes = self.files.iter().zip(&read);
        let sizes = sizes.map(|(file, read)| if *read { file.contents.size } else { 0 });
        let sizes: Vec<u64> = sizes.collect();
        let meter = Meter::new(Phase::Compare, sizes.iter().sum(), report);
        let differing: Vec<Mutex<Vec<u64>>> = read.iter().map(|_| Mutex::default()).collect();
        pool::each(self.options.workers(), &chunks(sizes), |chunk| {
            let pieces = self.differing(chunk, &meter)?;
            if let Some(all) = differing.get(chunk.file) {
                let mut all = all.lock().unwrap_or_else(|poison| poison.into_inner());
                all.extend(pieces);
            }
            Ok::<(), RestoreError>(())
        })?;
        let shares: Vec<bool> = self.targets.iter().map(|target| target.shares).collect();
        for ((file, read), differing) in self.files.iter_mut().zip(read).zip(differing) {
            let mut pieces = differing
                .into_inner()
                .unwrap_or_else(|poison| poison.into_inner());
            pieces.sort_unstable();
            file.transfer = if shares.get(file.part) == Some(&true) {
                Transfer::Share
            } else if read {
                Transfer::Write(pieces)
            } else {
                Transfer::Write((0..file.contents.pieces.len() as u64).collect())
            };
        }
        Ok(())
    }

    /// Whether the present content of a file is compared with the snapshot.
    fn is_read(&self, file: &FilePlan<'_>) -> bool {
        let target = self.targets.get(file.part);
        let is_kept = target.is_some_and(|target| target.kept.contains(&file.entry.path));
        is_kept && self.is_thorough(file.part) && !self.shares(file.part)
    }

    fn differing(&self, chunk: &Chunk, meter: &Meter<'_>) -> Result<Vec<u64>, RestoreError> {
        let file = self.files.get(chunk.file);
        let tree = file.and_then(|file| self.targets.get(file.part)?.tree.as_ref());
        let Some((file, tree)) = file.zip(tree) else {
            return Ok(Vec::new());
        };
        let present = tree.file(&file.entry.path, Access::Read)?;
        let size = file.contents.size;
        let data = present.data(size)?;
        let mut buffer = content::buffer();
        let mut differing = Vec::new();
        for index in chunk.pieces.clone() {
            let piece = content::read(&present, &data, index, size, &mut buffer)?;
            let wanted = usize::try_from(index).ok();
            let wanted = wanted.and_then(|index| file.contents.pieces.get(index));
            // A piece beyond the end of the file has no hash and differs.
            if piece.hash().as_ref() != wanted {
                differing.push(index);
            }
            meter.add(content::window(index, size).len())?;
        }
        Ok(differing)
    }

    /// Checks the hashes of all pieces that the restore will take from the snapshot.
    fn check_bytes(&self, report: Report<'_>) -> Result<(), RestoreError> {
        let checked: Vec<&FilePlan<'_>> = self
            .files
            .iter()
            .filter(|file| self.is_thorough(file.part))
            .collect();
        let lists: Vec<(usize, Vec<u64>)> = checked
            .iter()
            .map(|file| file.pieces())
            .enumerate()
            .collect();
        let total = checked.iter().map(|file| file.bytes()).sum();
        let meter = Meter::new(Phase::Check, total, report);
        let runs = runs(&lists);
        pool::each(self.options.workers(), &runs, |(file, pieces)| {
            let Some(file) = checked.get(*file) else {
                return Ok(());
            };
            let stored = self.stored(file.contents)?;
            let size = file.contents.size;
            let data = stored.data(size)?;
            let mut buffer = content::buffer();
            for index in *pieces {
                let piece = content::read(&stored, &data, *index, size, &mut buffer)?;
                file.check(*index, &piece, &stored)?;
                meter.add(content::window(*index, size).len())?;
            }
            Ok::<(), RestoreError>(())
        })
    }
}

impl FilePlan<'_> {
    /// The pieces whose content the restore replaces.
    pub(super) fn pieces(&self) -> Vec<u64> {
        match &self.transfer {
            Transfer::Share => (0..self.contents.pieces.len() as u64).collect(),
            Transfer::Write(pieces) => pieces.clone(),
        }
    }

    /// Returns the total length of [`Self::pieces`].
    pub(super) fn bytes(&self) -> u64 {
        let size = self.contents.size;
        let pieces = self.pieces().into_iter();
        pieces.map(|index| content::window(index, size).len()).sum()
    }

    /// Fails unless `piece`, read from the snapshot's file `stored`, has the hash of the manifest.
    pub(super) fn check(
        &self,
        index: u64,
        piece: &Piece<'_>,
        stored: &Handle<'_>,
    ) -> Result<(), RestoreError> {
        if self.is_right(index, piece) {
            Ok(())
        } else {
            Err(damaged(stored))
        }
    }

    /// Whether `piece` has the hash of the manifest.
    pub(super) fn is_right(&self, index: u64, piece: &Piece<'_>) -> bool {
        let index = usize::try_from(index).ok();
        let wanted = index.and_then(|index| self.contents.pieces.get(index));
        wanted.is_some() && piece.hash().as_ref() == wanted
    }
}

/// Cuts lists of pieces, one per file, into units of work.
pub(super) fn runs(lists: &[(usize, Vec<u64>)]) -> Vec<(usize, &[u64])> {
    let mut runs = Vec::new();
    for (file, pieces) in lists {
        runs.extend(pieces.chunks(RUN).map(|run| (*file, run)));
    }
    runs
}

fn damaged(file: &Handle<'_>) -> RestoreError {
    RestoreError::Damaged(super::DisplayPath(file.path().to_owned()))
}

impl Target<'_, '_> {
    /// Bytes of present files that the restore overwrites or removes.
    fn reusable(&self) -> u64 {
        let files = self.found.iter().filter(|found| found.stat.links == 1);
        files.map(|found| found.stat.allocated).sum()
    }
}

fn target<'s, 'd>(disk: &'d Disk, part: &'s Part) -> Result<Target<'s, 'd>, RestoreError> {
    let mut target = Target {
        part,
        tree: None,
        found: Vec::new(),
        shares: false,
        to_remove: Vec::new(),
        kept: HashSet::new(),
    };
    match part.path.canonicalize() {
        Ok(real) if real == part.path && real.is_dir() => {}
        Ok(_) => return Err(RestoreError::Moved(part.path.clone())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return missing(target);
        }
        Err(error) => return Err(Fault::at("open", &part.path)(error).into()),
    }
    let tree = Tree::open(disk, &part.path)?;
    target.found = scan(&tree)?;
    if let Some(inside) = mounted_inside(&target.found) {
        return Err(RestoreError::MountInside(tree.full_path(inside)));
    }
    let is_mounted = target
        .found
        .first()
        .is_some_and(|root| root.stat.is_mount_point);
    if part.is_mount_point && !is_mounted {
        return Err(RestoreError::NotMounted(part.path.clone()));
    }
    if let Some(fixed) = target.found.iter().find(|found| found.stat.is_immutable) {
        return Err(RestoreError::Immutable(tree.full_path(&fixed.path)));
    }
    target.tree = Some(tree);
    Ok(target)
}

/// Checks that a missing directory can be made: its parent must exist and be free of links.
fn missing<'s, 'd>(target: Target<'s, 'd>) -> Result<Target<'s, 'd>, RestoreError> {
    let path = &target.part.path;
    if target.part.is_mount_point {
        return Err(RestoreError::NotMounted(path.clone()));
    }
    // A dangling link occupies the path.
    if path.symlink_metadata().is_ok() {
        return Err(RestoreError::Moved(path.clone()));
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    match parent.canonicalize() {
        Ok(real) if real == parent => Ok(target),
        Ok(_) => Err(RestoreError::Moved(parent.to_owned())),
        Err(error) => Err(Fault::at("open", parent)(error).into()),
    }
}

/// For each name of a regular file in the snapshot: all names of that file, in order.
fn wanted_names(snapshot: &Snapshot) -> HashMap<(usize, PathBuf), Vec<(usize, PathBuf)>> {
    let mut groups: HashMap<(usize, PathBuf), Vec<(usize, PathBuf)>> = HashMap::new();
    for (index, part) in snapshot.manifest().parts.iter().enumerate() {
        for entry in &part.entries {
            let name = (index, entry.path.clone());
            match &entry.kind {
                Kind::File(_) => groups.entry(name.clone()).or_default().push(name),
                Kind::HardLink { part, path } => {
                    let first = (*part, path.clone());
                    groups.entry(first).or_default().push(name);
                }
                Kind::Directory | Kind::Symlink(_) => {}
            }
        }
    }
    let groups = groups.into_values();
    groups
        .flat_map(|group| {
            let names = group.clone();
            names.into_iter().map(move |name| (name, group.clone()))
        })
        .collect()
}
