//! `/proc/self/mountinfo`, proc_pid_mountinfo(5), and what `/proc/self/mountstats` says of zones.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::System;

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where.
    pub point: PathBuf,
    /// The kind of file system.
    pub kind: String,
    /// What is mounted, as the file system names it.
    pub source: String,
    /// The number of its device; that of btrfs and others is nobody else's.
    pub device: (u32, u32),
    /// Options of the mount and of the file system.
    pub options: Vec<String>,
}

impl Mount {
    /// The value of an option, if it has one.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut pairs = self
            .options
            .iter()
            .filter_map(|option| option.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Whether it has an option.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| option == name)
    }
}

/// A mount and what it is mounted on.
#[derive(Debug)]
pub(super) struct Placed {
    number: u64,
    below: u64,
    /// The directory of the file system that is seen there: `/` when all of it is.
    pub(super) root: PathBuf,
    pub(super) mount: Mount,
}

/// Reads mountinfo; lines that make no sense are no mounts.
pub(super) fn parse(text: &str) -> Vec<Placed> {
    text.lines().filter_map(line).collect()
}

/// The mount that `dir`, a path without links, leads to. It goes as the kernel does, from the root up: what is mounted
/// over a mount, or over a directory above it, hides it.
pub(super) fn covering(all: &[Placed], dir: &Path) -> Option<Mount> {
    let is_lowest = |it: &Placed| {
        let mut others = all.iter().filter(|other| other.number != it.number);
        others.all(|other| other.number != it.below)
    };
    // In a container what lies below is not in the list.
    let mut current = first(all, dir, is_lowest)?;
    // A list that was changed while it was read may lead in circles.
    for _ in all {
        let is_on = |it: &Placed| it.below == current.number && it.number != current.number;
        match first(all, dir, is_on) {
            Some(next) => current = next,
            None => break,
        }
    }
    Some(current.mount.clone())
}

/// The first of some mounts on the way to `dir`.
fn first<'a>(
    all: &'a [Placed],
    dir: &Path,
    is_one: impl Fn(&Placed) -> bool,
) -> Option<&'a Placed> {
    let ways = all
        .iter()
        .filter(|it| is_one(it) && dir.starts_with(&it.mount.point));
    ways.min_by_key(|it| it.mount.point.as_os_str().len())
}

fn line(line: &str) -> Option<Placed> {
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
    Some(Placed {
        number,
        below,
        root,
        mount,
    })
}

/// `\040` and its like are a byte in octal.
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

/// Whether an XFS allocates by zones: its statistics list them.
pub(super) fn is_zoned(system: &System, mount: &Mount) -> bool {
    let Ok(text) = system.read("proc/self/mountstats") else {
        return false;
    };
    let is_it = |line: &str| {
        let place = (line.split_once(" mounted on "))
            .and_then(|(_, rest)| rest.split_once(" with fstype xfs"));
        place.is_some_and(|(place, _)| mount.point.as_os_str() == unescape(place))
    };
    let after = text.lines().skip_while(|line| !is_it(line)).skip(1);
    let mut own = after.take_while(|line| !line.starts_with("device "));
    own.any(|line| line.contains("zone"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds_are_read() {
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
