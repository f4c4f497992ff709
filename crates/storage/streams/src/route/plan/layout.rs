//! Finds the file systems, disks and namespaces of the parts of a server on which a plan was
//! carried out, by the names of files, proc and sysfs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::drive::{is_namespace, names};
use super::engine::{Engine, Part as Kind};
use super::places::below;
use crate::route::disk;
use crate::route::mounts::{self, MountEntry};
use crate::route::{RouteError, System, controller};

/// The places of the parts of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The parts of the plan for this server. The last one is the data directory.
    pub parts: Vec<Part>,
    /// All namespaces of the drives that hold a part, in the order of their disks.
    pub namespaces: Vec<Namespace>,
    /// Directories that could not be read, and why.
    pub(super) unread: Vec<String>,
}

/// Files of a server that a plan keeps apart from its other files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name in the plan, and there the label of its file system.
    pub name: &'static str,
    /// The file systems that hold its files. Empty if no files were found.
    pub places: Vec<FileSystem>,
}

/// A mounted file system that holds files of a part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileSystem {
    pub point: PathBuf,
    /// The type of the file system, such as `xfs`.
    pub(super) kind: String,
    /// The kernel's name of its disk, if it is on a disk.
    pub disk: Option<String>,
}

/// A namespace of an NVMe drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// The kernel's name of its disk.
    pub disk: String,
    /// Its ID on the drive (NSID).
    pub id: u32,
    /// Its subsystem: the same for every controller of a drive.
    pub drive: String,
}

/// The names of all parts. A plan mounts each below `/mnt`.
pub(super) const PARTS: [&str; 6] = ["doublewrite", "redo", "undo", "temporary", "log", "wal"];

/// Finds the parts of the server whose data directory is `dir`.
///
/// Searches `dir`, `others`, and the mount points of a plan. Returns `None` if `dir`
/// does not belong to a server that can have a plan, if all parts are on one disk, or if `dir` is
/// not on an NVMe drive.
///
/// # Errors
/// proc cannot be read.
pub fn layout(
    system: &System,
    dir: &Path,
    others: &[PathBuf],
) -> Result<Option<Layout>, RouteError> {
    let mut search = Search {
        system,
        mounts: system.mount_entries()?,
        entries: Vec::new(),
        unread: Vec::new(),
    };
    let own = search.read(dir);
    let Some(engine) = engine_of(&own) else {
        return Ok(None);
    };
    search.entries.extend(own);
    for other in others.iter().filter(|other| *other != dir) {
        let entries = search.read(other);
        // Another server may have files with the same names.
        if engine_of(&entries).is_none() {
            search.entries.extend(entries);
        }
    }
    for name in PARTS {
        let entries = search.read(&below(system, &Path::new("/mnt").join(name)));
        search.entries.extend(entries);
    }
    let mut parts = search.parts(engine);
    let data = search.place(dir);
    let is_on_drive = data.as_ref().is_some_and(FileSystem::is_on_namespace);
    parts.push(Part {
        name: "data",
        places: data.into_iter().collect(),
    });
    let places = parts.iter().flat_map(|part| &part.places);
    let disks: BTreeSet<&str> = places.filter_map(|place| place.disk.as_deref()).collect();
    if !is_on_drive || disks.len() < 2 {
        return Ok(None);
    }
    let namespaces = namespaces(system, &disks);
    Ok(Some(Layout {
        parts,
        namespaces,
        unread: search.unread,
    }))
}

/// An entry of a directory in which parts are looked for.
struct Entry {
    name: PathBuf,
    path: PathBuf,
    bytes: u64,
}

impl Entry {
    fn file(&self) -> (PathBuf, u64) {
        (self.name.clone(), self.bytes)
    }

    /// Whether a running server has created files of this part here. A stopped server leaves an
    /// empty directory.
    fn is_created_for(&self, part: &Kind) -> bool {
        let is_empty =
            || fs::read_dir(&self.path).is_ok_and(|mut entries| entries.next().is_none());
        part.created
            .is_some_and(|created| self.name == Path::new(created))
            && !is_empty()
    }
}

/// Detects the server from the entries of its data directory.
fn engine_of(entries: &[Entry]) -> Option<Engine> {
    let files: Vec<(PathBuf, u64)> = entries.iter().map(Entry::file).collect();
    Engine::of(&files).ok()
}

struct Search<'a> {
    system: &'a System,
    mounts: Vec<MountEntry>,
    entries: Vec<Entry>,
    unread: Vec<String>,
}

impl Search<'_> {
    /// Returns the entries of a directory, with links resolved.
    fn read(&mut self, dir: &Path) -> Vec<Entry> {
        let entries = match fs::read_dir(dir).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    self.unread.push(format!("{}: {error}", dir.display()));
                }
                return Vec::new();
            }
        };
        let entries = entries.into_iter().filter_map(|entry| {
            // The server may have deleted the file.
            let path = entry.path().canonicalize().ok()?;
            Some(Entry {
                name: entry.file_name().into(),
                bytes: path.metadata().map_or(0, |data| data.len()),
                path,
            })
        });
        entries.collect()
    }

    /// Returns all parts but the data directory.
    fn parts(&self, engine: Engine) -> Vec<Part> {
        let files: BTreeMap<PathBuf, u64> = self.entries.iter().map(Entry::file).collect();
        let files: Vec<(PathBuf, u64)> = files.into_iter().collect();
        let parts = engine.parts(&files).into_iter();
        parts
            .map(|part| Part {
                name: part.name,
                places: self.places(&part),
            })
            .collect()
    }

    /// Returns the file systems with files of a part, and that which a plan created for the part.
    fn places(&self, part: &Kind) -> Vec<FileSystem> {
        let own = self.entries.iter();
        let own = own.filter(|entry| part.has(&entry.name) || entry.is_created_for(part));
        let mut places: BTreeSet<FileSystem> =
            own.filter_map(|entry| self.place(&entry.path)).collect();
        let planned = below(self.system, &Path::new("/mnt").join(part.name));
        places.extend(self.place(&planned).filter(|place| place.point == planned));
        places.into_iter().collect()
    }

    fn place(&self, path: &Path) -> Option<FileSystem> {
        let mount = mounts::covering(&self.mounts, path)?;
        let disk = disk::find(self.system, mount.device, Some(&mount.source));
        // btrfs may span several disks, and names one of them as its source.
        let disk = disk.filter(|_| mount.kind != "btrfs");
        Some(FileSystem {
            point: mount.point,
            kind: mount.kind,
            disk: disk.map(|disk| disk.name),
        })
    }
}

impl FileSystem {
    fn is_on_namespace(&self) -> bool {
        self.disk.as_deref().is_some_and(is_namespace)
    }
}

/// Returns all namespaces of the drives of `disks`.
fn namespaces(system: &System, disks: &BTreeSet<&str>) -> Vec<Namespace> {
    let mut found = BTreeMap::new();
    for disk in disks.iter().filter(|disk| is_namespace(disk)) {
        let folder = system.root().join("sys/class/block").join(disk);
        let folder = folder.canonicalize().unwrap_or_default();
        let Some(parent) = folder.parent() else {
            continue;
        };
        let drive = controller::drive(system, parent);
        for disk in names(parent, is_namespace) {
            let id = fs::read_to_string(parent.join(&disk).join("nsid"));
            if let Some(id) = id.ok().and_then(|id| id.trim().parse().ok()) {
                let drive = drive.clone();
                found.insert(disk.clone(), Namespace { disk, id, drive });
            }
        }
    }
    found.into_values().collect()
}
