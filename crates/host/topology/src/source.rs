//! Reads files below a root and records them.
//!
//! Symbolic links are resolved inside the root, as after chroot(2), and recorded. [`Root`] then
//! reads the file, and stays inside the root even if the tree changes. With a [`Recording`], the
//! bytes of each file, each link that was followed and each listed name are kept: they are the
//! tree from which the same reads give the same answers.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use saiga_process::numbers::Numbers;
use saiga_process::root::{Root, is_absent};

use crate::read::ReadError;

/// Links in one path before it counts as a loop, as in the kernel.
const MAX_LINKS: usize = 40;

/// Everything that was read, by path below the root. No component of a path but the last is a link.
pub(crate) type Recording = BTreeMap<PathBuf, Entry>;

/// One recorded name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File(Vec<u8>),
    /// A symbolic link and its target.
    Link(PathBuf),
    /// A directory, or a name of which only the existence matters.
    Directory,
}

/// A root, and what was read below it.
pub(crate) struct Source {
    root: Root,
    recording: RefCell<Recording>,
}

impl Source {
    pub(crate) fn new(root: &Root) -> Self {
        Self {
            root: root.clone(),
            recording: RefCell::default(),
        }
    }

    pub(crate) fn into_recording(self) -> Recording {
        self.recording.into_inner()
    }

    /// The place of a file on this host, for messages.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path(name)
    }

    /// The path below the root without links; `None` if there is no such file.
    pub(crate) fn real(&self, name: &str) -> Result<Option<PathBuf>, ReadError> {
        self.resolve(name).map_err(|error| self.failed(name, error))
    }

    /// The bytes of a file; `None` if the file does not exist, or if the kernel has no value for
    /// it, such as the speed of a network device that is down.
    pub(crate) fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(real) = self.real(name)? else {
            return Ok(None);
        };
        match self.root.bytes(&real) {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => {
                self.keep(real, Entry::File(bytes.clone()));
                Ok(Some(bytes))
            }
            Err(error) if has_no_value(&error) => Ok(None),
            Err(error) => Err(self.failed(name, error)),
        }
    }

    /// The text of a file without white space and NUL at its end.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, ReadError> {
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8_lossy(&bytes);
            text.trim_end_matches(|letter: char| letter.is_whitespace() || letter == '\0')
                .to_owned()
        };
        Ok(self.bytes(name)?.map(text))
    }

    /// The text of a file that is not empty.
    pub(crate) fn word(&self, name: &str) -> Result<Option<String>, ReadError> {
        let word = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        Ok(self.text(name)?.and_then(word))
    }

    /// The number in a file; an empty file is like a missing one.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ReadError> {
        match self.word(name)? {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.damaged(name, &text, "a number")),
            },
        }
    }

    /// The identifier in a file. The kernel prints -1, 65535 or 4294967295 for an unknown one.
    pub(crate) fn id(&self, name: &str) -> Result<Option<u32>, ReadError> {
        let known = |id: i64| u32::try_from(id).ok();
        let id = self.number::<i64>(name)?.and_then(known);
        Ok(id.filter(|id| !matches!(*id, 65_535 | u32::MAX)))
    }

    /// The list of CPUs or nodes in a file, such as `0-3,8`.
    pub(crate) fn list(&self, name: &str) -> Result<Option<Vec<u32>>, ReadError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let list = numbers(&text);
        list.map(Some)
            .ok_or_else(|| self.damaged(name, &text, "a list such as 0-3,8"))
    }

    /// The CPUs in the file `list`, or in the file `mask` of older kernels, such as `00000202`.
    pub(crate) fn cpus(&self, list: &str, mask: &str) -> Result<Option<Vec<u32>>, ReadError> {
        if let Some(cpus) = self.list(list)? {
            return Ok(Some(cpus));
        }
        let Some(text) = self.text(mask)? else {
            return Ok(None);
        };
        let cpus = bits(&text);
        cpus.map(Some)
            .ok_or_else(|| self.damaged(mask, &text, "a mask such as 0000,00000202"))
    }

    /// All names in a directory, sorted; none without the directory.
    pub(crate) fn names(&self, dir: &str) -> Result<Vec<String>, ReadError> {
        self.names_that(dir, |_| true)
    }

    /// The names in a directory that `is_wanted`, sorted. Others are not recorded.
    pub(crate) fn names_that(
        &self,
        dir: &str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>, ReadError> {
        let Some(real) = self.real(dir)? else {
            return Ok(Vec::new());
        };
        let names = self.root.names(&real);
        let mut names = names.map_err(|error| self.failed(dir, error))?;
        names.retain(|name| is_wanted(name));
        for name in &names {
            self.keep(real.join(name), Entry::Directory);
        }
        self.keep(real, Entry::Directory);
        Ok(names)
    }

    /// The numbers N for which `dir` has a name `prefixN`, in ascending order.
    pub(crate) fn numbered(&self, dir: &str, prefix: &str) -> Result<Vec<u32>, ReadError> {
        let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
        let names = self.names_that(dir, |name| number(name).is_some())?;
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| number(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The last component of a link's target, such as the driver of a device.
    pub(crate) fn link(&self, name: &str) -> Result<Option<String>, ReadError> {
        let Some((parent, last)) = name.rsplit_once('/') else {
            return Ok(None);
        };
        let Some(parent) = self.real(parent)? else {
            return Ok(None);
        };
        let place = parent.join(last);
        let Ok(target) = self.root.link(&place) else {
            return Ok(None);
        };
        let word = |name: &std::ffi::OsStr| name.to_string_lossy().into_owned();
        let last = target.file_name().map(word);
        self.keep(place, Entry::Link(target));
        Ok(last)
    }

    pub(crate) fn exists(&self, name: &str) -> Result<bool, ReadError> {
        let real = self.real(name)?;
        if let Some(real) = &real {
            self.keep(real.clone(), Entry::Directory);
        }
        Ok(real.is_some())
    }

    pub(crate) fn damaged(&self, name: &str, text: &str, expected: &'static str) -> ReadError {
        let first = text.lines().next().unwrap_or_default();
        ReadError::Damaged {
            path: self.path(name),
            text: first.chars().take(80).collect(),
            expected,
        }
    }

    fn failed(&self, name: &str, error: io::Error) -> ReadError {
        ReadError::Unreadable {
            path: self.path(name),
            error,
        }
    }

    fn resolve(&self, name: &str) -> io::Result<Option<PathBuf>> {
        let mut real = PathBuf::new();
        let mut pending: VecDeque<OsString> = components(Path::new(name)).collect();
        let mut links = 0;
        while let Some(part) = pending.pop_front() {
            if part == ".." {
                real.pop();
                continue;
            }
            let place = real.join(&part);
            let metadata = match fs::symlink_metadata(self.root.path(&place)) {
                Ok(metadata) => metadata,
                Err(error) if is_absent(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            if !metadata.is_symlink() {
                real = place;
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            }
            let target = self.root.link(&place)?;
            if target.is_absolute() {
                real.clear();
            }
            for part in components(&target).collect::<Vec<_>>().into_iter().rev() {
                pending.push_front(part);
            }
            self.keep(place, Entry::Link(target));
        }
        Ok(Some(real))
    }

    /// Contents replace the mere existence of a name.
    fn keep(&self, real: PathBuf, entry: Entry) {
        let mut recording = self.recording.borrow_mut();
        if entry == Entry::Directory {
            recording.entry(real).or_insert(entry);
        } else {
            recording.insert(real, entry);
        }
    }
}

/// The parts of a path; a root and single dots are left out.
fn components(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}

/// Whether the kernel has a file for a value that the device does not have.
fn has_no_value(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENXIO)
    )
}

/// Numbers of a list such as `0-3,8`; an empty text is an empty list.
pub(crate) fn numbers(text: &str) -> Option<Vec<u32>> {
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    let Numbers(numbers) = text.parse().ok()?;
    numbers
        .into_iter()
        .map(|one| u32::try_from(one).ok())
        .collect()
}

/// Numbers of the bits in a mask of hexadecimal words, the highest first: `00000001,00000202`.
#[must_use]
pub fn bits(text: &str) -> Option<Vec<u32>> {
    let mut bits = Vec::new();
    let digits: Vec<char> = text.chars().filter(|letter| *letter != ',').collect();
    for (at, digit) in (0_u32..).zip(digits.iter().rev()) {
        let digit = digit.to_digit(16)?;
        bits.extend(
            (0..4)
                .filter(|bit| digit >> bit & 1 == 1)
                .map(|bit| at * 4 + bit),
        );
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, Source) {
        let dir = tempfile::tempdir().unwrap();
        let source = Source::new(&Root::at(dir.path()));
        fs::create_dir_all(dir.path().join("sys/devices/pci/virtio2/net/eth0")).unwrap();
        fs::create_dir_all(dir.path().join("sys/class/net")).unwrap();
        fs::write(dir.path().join("sys/devices/pci/numa_node"), "1\n\0").unwrap();
        let eth0 = dir.path().join("sys/class/net/eth0");
        symlink("../../devices/pci/virtio2/net/eth0", eth0).unwrap();
        let device = dir.path().join("sys/devices/pci/virtio2/net/eth0/device");
        symlink("../../../virtio2", device).unwrap();
        (dir, source)
    }

    #[test]
    fn links_are_followed_and_recorded() {
        let (_dir, source) = tree();
        let name = "/sys/class/net/eth0/device/../numa_node";
        assert_eq!(source.id(name).unwrap(), Some(1));
        assert_eq!(source.id("/sys/class/net/eth1/device").unwrap(), None);
        let recorded = source.into_recording();
        let expected = [
            (
                "sys/class/net/eth0",
                Entry::Link("../../devices/pci/virtio2/net/eth0".into()),
            ),
            ("sys/devices/pci/numa_node", Entry::File(b"1\n\0".to_vec())),
            (
                "sys/devices/pci/virtio2/net/eth0/device",
                Entry::Link("../../../virtio2".into()),
            ),
        ];
        let expected = expected.map(|(path, entry)| (PathBuf::from(path), entry));
        assert_eq!(recorded, BTreeMap::from(expected));
    }

    #[test]
    fn links_stay_inside_the_root() {
        let (dir, source) = tree();
        symlink("/etc/passwd", dir.path().join("sys/absolute")).unwrap();
        symlink("../../../../../../etc/passwd", dir.path().join("sys/above")).unwrap();
        symlink("loop", dir.path().join("sys/loop")).unwrap();
        for name in ["/sys/absolute", "/sys/above", "/../../../../etc/passwd"] {
            assert_eq!(source.text(name).unwrap(), None, "{name}");
        }
        let error = source.text("/sys/loop").unwrap_err().to_string();
        assert!(error.contains("sys/loop: Too many levels"), "{error}");
        fs::create_dir(dir.path().join("etc")).unwrap();
        fs::write(dir.path().join("etc/passwd"), "inside").unwrap();
        assert_eq!(
            source.text("/sys/above").unwrap().as_deref(),
            Some("inside")
        );
    }

    #[test]
    fn a_damaged_file_names_itself() {
        let (dir, source) = tree();
        fs::write(dir.path().join("sys/online"), "0-x\n").unwrap();
        let error = source.list("/sys/online").unwrap_err().to_string();
        let path = dir.path().join("sys/online");
        assert_eq!(
            error,
            format!(
                "{} is damaged: \"0-x\" is not a list such as 0-3,8",
                path.display()
            )
        );
        let error = source.number::<u32>("/sys/online").unwrap_err().to_string();
        assert!(error.ends_with("is not a number"), "{error}");
        assert!(source.text("/sys").is_err(), "a directory");
    }

    #[test]
    fn lists_and_masks_are_parsed() {
        assert_eq!(numbers("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(numbers(""), Some(vec![]));
        assert_eq!(bits("00000001,00000202"), Some(vec![1, 9, 32]));
        assert_eq!(bits("0000,00000000"), Some(vec![]));
        assert_eq!(bits("x"), None);
    }
}
