//! What there is to copy: everything in the parts, each file once whatever names it has.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::TakeError;
use crate::disk::{Disk, Fault};
use crate::handle::Attributes;
use crate::links::{self, Leads};
use crate::manifest::{Contents, Dress, Entry, Kind, Manifest, Part};
use crate::name::shown;
use crate::options::LinkedFiles;
use crate::running;
use crate::scan::{Found, mounted_inside, scan};
use crate::stat::{Identity, Sort};
use crate::tree::{Access, Tree};

/// The parts as they are.
pub(super) struct Survey<'d> {
    pub(super) parts: Vec<Surveyed<'d>>,
    /// Files that are not empty, in the order of their numbers, which begin with 0.
    pub(super) files: Vec<FileAt>,
    /// The first name of each file that has several.
    first_names: HashMap<Identity, (usize, PathBuf)>,
    notes: Vec<String>,
}

pub(super) struct Surveyed<'d> {
    pub(super) tree: Tree<'d>,
    /// All that was found, what is left out among it.
    found: Vec<Found>,
}

/// A file by its first name.
pub(super) struct FileAt {
    pub(super) part: usize,
    pub(super) found: Found,
}

impl<'d> Survey<'d> {
    pub(super) fn of(
        disk: &'d Disk,
        paths: &[PathBuf],
        linked_files: LinkedFiles,
    ) -> Result<Self, TakeError> {
        let mut survey = Self {
            parts: Vec::new(),
            files: Vec::new(),
            first_names: HashMap::new(),
            notes: Vec::new(),
        };
        for path in paths {
            let tree = Tree::open(disk, path)?;
            let found = scan(&tree)?;
            if let Some(inside) = mounted_inside(&found) {
                return Err(TakeError::MountInside(tree.whole(inside)));
            }
            survey.parts.push(Surveyed { tree, found });
        }
        survey.check_links(paths, linked_files)?;
        for index in 0..survey.parts.len() {
            survey.collect(index);
        }
        survey.note_outer_names();
        Ok(survey)
    }

    /// Refuses links behind which data would be missing, and notes what is left out.
    fn check_links(&mut self, paths: &[PathBuf], files: LinkedFiles) -> Result<(), TakeError> {
        let (mut to_directories, mut to_files) = (Vec::new(), Vec::new());
        for Surveyed { tree, found } in &self.parts {
            let links = found.iter();
            for link in links.filter(|found| found.stat.sort == Sort::Symlink) {
                let stray = match links::follow(&tree.whole(&link.path), paths)? {
                    Leads::Well => continue,
                    Leads::ToDirectory(stray) => {
                        to_directories.push(stray);
                        continue;
                    }
                    Leads::ToFile(stray) if files == LinkedFiles::Refuse => {
                        to_files.push(stray);
                        continue;
                    }
                    Leads::ToFile(stray) | Leads::ToSpecial(stray) => stray,
                };
                let note = format!("{stray}, which is not in the snapshot");
                self.notes.push(note);
            }
        }
        if !to_directories.is_empty() {
            return Err(TakeError::Strays(to_directories));
        }
        if !to_files.is_empty() {
            return Err(TakeError::LinkedFiles(to_files));
        }
        Ok(())
    }

    /// Collects files and notes of one part.
    fn collect(&mut self, index: usize) {
        let Some(Surveyed { tree, found }) = self.parts.get(index) else {
            return;
        };
        for found in found {
            let whole = tree.whole(&found.path);
            match found.stat.sort {
                Sort::Special(kind) => {
                    let note = format!("{} is left out: it is a {kind}", shown(&whole));
                    self.notes.push(note);
                }
                Sort::File if is_pid_file(found) => {
                    self.notes.push(running::stale_pid_file(&whole));
                }
                Sort::File => {
                    let name = (index, found.path.clone());
                    let is_first = found.stat.links == 1
                        || *self
                            .first_names
                            .entry(found.stat.identity)
                            .or_insert(name.clone())
                            == name;
                    if is_first && found.stat.size > 0 {
                        self.files.push(FileAt {
                            part: index,
                            found: found.clone(),
                        });
                    }
                }
                Sort::Directory | Sort::Symlink => {}
            }
        }
    }

    /// Notes files that have names outside of the parts: a restore ends that bond.
    fn note_outer_names(&mut self) {
        let mut names: HashMap<Identity, u32> = HashMap::new();
        let all = self.parts.iter().flat_map(|part| &part.found);
        for found in all.filter(|found| found.stat.sort == Sort::File) {
            *names.entry(found.stat.identity).or_default() += 1;
        }
        for Surveyed { tree, found } in &self.parts {
            let files = found.iter().filter(|found| found.stat.sort == Sort::File);
            for Found { path, stat, .. } in files {
                if names.get(&stat.identity) != Some(&stat.links) {
                    let path = shown(&tree.whole(path));
                    let note = format!(
                        "{path} has further names outside; a restore makes it a file of its own"
                    );
                    self.notes.push(note);
                }
            }
        }
    }

    /// Looks again: whoever changed anything since the first look was writing.
    pub(super) fn check_unchanged(&self) -> Result<(), TakeError> {
        for Surveyed { tree, found } in &self.parts {
            let now = scan(tree)?;
            let pairs = found.iter().zip(&now);
            let differs = pairs.clone().find(|(before, now)| !before.is_same(now));
            let differs = differs.map(|(before, _)| before);
            let longer = found.get(now.len()).or_else(|| now.get(found.len()));
            if let Some(changed) = differs.or(longer) {
                return Err(TakeError::Changed(tree.whole(&changed.path)));
            }
        }
        Ok(())
    }

    /// The manifest of what was surveyed; `contents` are of `files`, in the same order.
    pub(super) fn manifest(
        &self,
        taken: String,
        contents: Vec<Contents>,
    ) -> Result<Manifest, Fault> {
        let mut contents = contents.into_iter();
        let mut parts = Vec::new();
        for (index, Surveyed { tree, found }) in self.parts.iter().enumerate() {
            let mut entries = Vec::new();
            for found in found.iter().filter(|found| !is_left_out(found)) {
                let kind = self.kind(index, found, &mut contents);
                entries.push(Entry {
                    path: found.path.clone(),
                    dress: dress(tree, found, &kind)?,
                    kind,
                });
            }
            let root = found.first();
            parts.push(Part {
                path: tree.path().to_owned(),
                is_mount_point: root.is_some_and(|root| root.stat.is_mount_point),
                entries,
            });
        }
        Ok(Manifest {
            taken,
            notes: self.notes.clone(),
            parts,
        })
    }

    /// What `found` stands for; takes the next contents for a file that is not empty.
    fn kind(
        &self,
        part: usize,
        found: &Found,
        contents: &mut impl Iterator<Item = Contents>,
    ) -> Kind {
        let first = self.first_names.get(&found.stat.identity);
        match (found.stat.sort, &found.target, first) {
            (Sort::Symlink, Some(target), _) => Kind::Symlink(target.clone()),
            (Sort::File, _, Some((first, path))) if (*first, path) != (part, &found.path) => {
                Kind::HardLink {
                    part: *first,
                    path: path.clone(),
                }
            }
            (Sort::File, _, _) if found.stat.size > 0 => {
                Kind::File(contents.next().unwrap_or_else(empty))
            }
            (Sort::File, _, _) => Kind::File(empty()),
            (Sort::Directory | Sort::Special(_) | Sort::Symlink, _, _) => Kind::Directory,
        }
    }
}

fn empty() -> Contents {
    Contents {
        size: 0,
        allocated: 0,
        stored: None,
        pieces: Vec::new(),
    }
}

fn is_left_out(found: &Found) -> bool {
    matches!(found.stat.sort, Sort::Special(_)) || is_pid_file(found)
}

/// No server runs here: what is left of one has ended without cleaning up.
fn is_pid_file(found: &Found) -> bool {
    found.path == Path::new(running::PID_FILE) && found.stat.sort == Sort::File
}

fn dress(tree: &Tree<'_>, found: &Found, kind: &Kind) -> Result<Dress, Fault> {
    let Found { path, stat, .. } = found;
    let attributes = match kind {
        Kind::Directory => tree.folder_handle(path)?.attributes()?,
        Kind::File(_) => tree.file(path, Access::Read)?.attributes()?,
        // A further name's are the file's; the kernel gives none of a user's to links.
        Kind::HardLink { .. } | Kind::Symlink(_) => Attributes::new(),
    };
    Ok(Dress {
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        mtime: stat.mtime,
        attributes,
    })
}
