//! Mounts from `/proc/self/mountinfo` (proc_pid_mountinfo(5)), and zoned XFS from
//! `/proc/self/mountstats`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::System;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub point: PathBuf,
    /// The type of the file system, such as `xfs`.
    pub kind: String,
    /// The mount source, such as `/dev/sda1`.
    pub source: String,
    /// Major and minor number; for btrfs and others not the number of a block device.
    pub device: (u32, u32),
    /// Options of the mount, then those of the file system.
    pub options: Vec<String>,
}

impl Mount {
    /// Returns the value of an option `name=value`.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut pairs = self
            .options
            .iter()
            .filter_map(|option| option.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Whether it has the option `name`, without a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| option == name)
    }
}

/// A mount with its position in the tree of mounts.
#[derive(Debug)]
pub(super) struct MountEntry {
    number: u64,
    below: u64,
    /// The directory of the file system that is mounted: `/` for the whole file system.
    pub(super) root: PathBuf,
    pub(super) mount: Mount,
}

/// Parses mountinfo; invalid lines are skipped.
pub(super) fn parse(text: &str) -> Vec<MountEntry> {
    text.lines().filter_map(line).collect()
}

/// Returns the mount of `dir`, a path without links. Resolves it as the kernel does, from the root
/// on: a mount is hidden by a later mount on the same point or on a directory above.
pub(super) fn covering(all: &[MountEntry], dir: &Path) -> Option<Mount> {
    let is_lowest = |it: &MountEntry| {
        let mut others = all.iter().filter(|other| other.number != it.number);
        others.all(|other| other.number != it.below)
    };
    // In a container, the parent of the lowest mount is not in the list.
    let mut current = first(all, dir, is_lowest)?;
    // A list that was changed during the read may have a cycle.
    for _ in all {
        let is_on = |it: &MountEntry| it.below == current.number && it.number != current.number;
        match first(all, dir, is_on) {
            Some(next) => current = next,
            None => break,
        }
    }
    Some(current.mount.clone())
}

/// Of the mounts that `is_one` accepts, returns that with the shortest mount point above `dir`.
fn first<'a>(
    all: &'a [MountEntry],
    dir: &Path,
    is_one: impl Fn(&MountEntry) -> bool,
) -> Option<&'a MountEntry> {
    let above = all
        .iter()
        .filter(|it| is_one(it) && dir.starts_with(&it.mount.point));
    above.min_by_key(|it| it.mount.point.as_os_str().len())
}

fn line(line: &str) -> Option<MountEntry> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let number = before.next()?.parse().ok()?;
    let below = before.next()?.parse().ok()?;
    let (major, minor) = before.next()?.split_once(':')?;
    let root = PathBuf::from(unescape(before.next()?));
    let point = unescape(before.next()?);
    let options = before.next()?;
    let mut after = after.split(' ');
    let kind = after.next()?.to_owned();
    let source = unescape(after.next()?).into_string().ok()?;
    let own = after.next().unwrap_or_default();
    let options = options.split(',').chain(own.split(','));
    let mount = Mount {
        point: PathBuf::from(point),
        kind,
        source,
        device: (major.parse().ok()?, minor.parse().ok()?),
        options: options.map(str::to_owned).collect(),
    };
    Some(MountEntry {
        number,
        below,
        root,
        mount,
    })
}

/// Replaces escapes like `\040`, a byte in octal.
fn unescape(word: &str) -> OsString {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let value =
            octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match value {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

/// Whether a mounted XFS is zoned: its statistics then list zones.
pub(super) fn is_zoned(system: &System, mount: &Mount) -> bool {
    let Ok(text) = system.read("proc/self/mountstats") else {
        return false;
    };
    let is_own = |line: &str| {
        let point = (line.split_once(" mounted on "))
            .and_then(|(_, rest)| rest.split_once(" with fstype xfs"));
        point.is_some_and(|(point, _)| mount.point.as_os_str() == unescape(point))
    };
    let after = text.lines().skip_while(|line| !is_own(line)).skip(1);
    let mut own = after.take_while(|line| !line.starts_with("device "));
    own.any(|line| line.contains("zone"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_lines_are_parsed_and_invalid_ones_skipped() {
        let text = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
40 22 0:35 / /my\\040data rw master:2 propagate_from:1 - tmpfs none rw,size=4k\n\
nonsense\n\
41 22 0:36 / /c rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n";
        let mounts: Vec<Mount> = parse(text).into_iter().map(|it| it.mount).collect();
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[0].device, (254, 0));
        assert!(mounts[0].has("relatime") && mounts[0].has("discard"));
        assert_eq!(mounts[1].point, PathBuf::from("/my data"));
        assert_eq!(mounts[1].kind, "tmpfs");
        assert_eq!(mounts[2].option("upperdir"), Some("/u"));
        assert_eq!(mounts[2].option("nothing"), None);
    }
}
