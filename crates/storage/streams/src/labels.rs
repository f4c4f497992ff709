//! Stores the hints that the labeller has set, in a file beside the lock of the directory, and in
//! an open file that the service manager keeps over a restart of the service.
//!
//! A labeller may change hints that an earlier run has set, but not those of another program. Files
//! are identified by device, inode number and time of birth. A line counts only while its file
//! still has the stored hint, so that a wrong line causes at worst an overwritten hint. Hints are
//! lost at a reboot: the file names its boot, and labels of another boot are not read.

use saiga_process::{proc, replace::replace_in_cache};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::hint::Hint;
use crate::lock;
use crate::tree::Identity;

/// Most files that are stored. Hints of other files stay, but count as another program's after a
/// restart.
const FILES: usize = 1 << 18;
/// Most bytes of a line.
const LINE: u64 = 96;

/// The hint of a file, and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) hint: Hint,
    /// Whether the labeller has set the hint, in this run or in an earlier one.
    pub(crate) is_ours: bool,
}

impl Label {
    pub(crate) fn ours(hint: Hint) -> Self {
        Self {
            hint,
            is_ours: true,
        }
    }
}

/// Returns the path of the labels for the lock at `lock`.
pub(crate) fn beside(lock: &Path) -> PathBuf {
    lock.with_extension("labels")
}

/// Replaces the file at `path` atomically, with mode 0600.
///
/// # Errors
/// The file cannot be written, or the boot ID cannot be read. The old file stays.
pub(crate) fn save(path: &Path, labels: &HashMap<Identity, Label>) -> io::Result<()> {
    replace_in_cache(path, to_text(labels)?.as_bytes(), 0o600)
}

/// Replaces the content of an open file. Not atomic: a process killed in between leaves a truncated
/// file, which is still valid.
///
/// # Errors
/// The file cannot be written, or the boot ID cannot be read.
pub(crate) fn save_into(file: &File, labels: &HashMap<Identity, Label>) -> io::Result<()> {
    let text = to_text(labels)?;
    file.set_len(0)?;
    file.write_all_at(text.as_bytes(), 0)
}

fn to_text(labels: &HashMap<Identity, Label>) -> io::Result<String> {
    let mut text = header()?;
    let ours = labels.iter().filter(|(identity, label)| {
        // Without a birth, a later file with its inode number would be taken for it.
        identity.is_certain() && label.is_ours
    });
    for (identity, label) in ours.take(FILES) {
        let ((major, minor), inode) = (identity.device(), identity.inode());
        let (seconds, nanoseconds) = identity.born();
        let hint = label.hint;
        let _ = writeln!(
            text,
            "{major} {minor} {inode} {seconds} {nanoseconds} {hint}"
        );
    }
    Ok(text)
}

/// Returns the hints that labellers have set in the directory at `dir`, from the files in `place`
/// and in the directories there. Skips files that cannot be read or that other users could have
/// written.
#[must_use]
pub fn of(place: &Path, dir: &Path) -> HashMap<Identity, Hint> {
    let Some(name) = lock::name_of(dir) else {
        return HashMap::new();
    };
    let locks = lock::files(place).unwrap_or_default();
    let own = locks
        .iter()
        .filter(|lock| lock.file_name() == Some(name.as_os_str()));
    own.flat_map(|lock| read(&beside(lock))).collect()
}

/// Returns the hints in the file at `path`; none if it is missing or cannot be trusted.
pub(crate) fn read(path: &Path) -> HashMap<Identity, Hint> {
    trusted(path).map_or_else(HashMap::new, |file| read_from(&file))
}

/// Returns the hints in an open file; none if [`save_into`] did not write it.
pub(crate) fn read_from(file: &File) -> HashMap<Identity, Hint> {
    text_of(file)
        .and_then(|text| parse(&text, &header().ok()?))
        .unwrap_or_default()
}

/// Opens the file if only its owner can have written it.
fn trusted(path: &Path) -> Option<File> {
    let folder = path.parent()?.symlink_metadata().ok()?;
    let file = lock::open(path).ok()?;
    let stat = file.metadata().ok()?;
    let is_closed = folder.mode() & 0o022 == 0 && stat.permissions().mode() & 0o7777 == 0o600;
    let is_own = folder.is_dir() && stat.is_file() && folder.uid() == stat.uid();
    (is_closed && is_own).then_some(file)
}

fn text_of(mut file: &File) -> Option<String> {
    let limit = LINE.saturating_mul(u64::try_from(FILES).ok()?);
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(limit).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns `None` if the labels are of another boot, or a line is not valid.
fn parse(text: &str, header: &str) -> Option<HashMap<Identity, Hint>> {
    let lines = text.strip_prefix(header)?.lines();
    lines.take(FILES).map(line).collect()
}

fn line(text: &str) -> Option<(Identity, Hint)> {
    let mut words = text.split(' ');
    let device = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let inode = words.next()?.parse().ok()?;
    let born = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let hint = words.next()?.parse().ok()?;
    let identity = Identity::new(device, inode, born);
    (identity.is_certain() && words.next().is_none()).then_some((identity, hint))
}

fn header() -> io::Result<String> {
    Ok(format!(
        "saiga streams labels 1, boot {}\n",
        proc::boot_id()?
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    fn identity(inode: u64) -> Identity {
        Identity::new((8, 1), inode, (1_700_000_000, 42))
    }

    fn saved(folder: &Path) -> PathBuf {
        let path = folder.join("streams-x.labels");
        let theirs = Label {
            hint: Hint::Long,
            is_ours: false,
        };
        let labels = HashMap::from([
            (identity(5), Label::ours(Hint::Short)),
            (identity(6), theirs),
            (Identity::new((8, 1), 7, (0, 0)), Label::ours(Hint::Extreme)),
        ]);
        save(&path, &labels).unwrap();
        path
    }

    #[test]
    fn our_hints_on_files_with_a_birth_are_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = saved(folder.path());
        let expected = HashMap::from([(identity(5), Hint::Short)]);
        assert_eq!(read(&path), expected);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_open_file_holds_only_the_last_labels() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(read_from(&file), HashMap::new());
        let labels = |inodes: &[u64]| {
            let of = |inode: &u64| (identity(*inode), Label::ours(Hint::Short));
            inodes.iter().map(of).collect()
        };
        save_into(&file, &labels(&[5, 6])).unwrap();
        save_into(&file, &labels(&[7])).unwrap();
        let expected = HashMap::from([(identity(7), Hint::Short)]);
        assert_eq!(read_from(&file), expected);
        assert_eq!(read_from(&file), expected, "the second read");
    }

    #[test]
    fn files_that_others_could_have_written_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = saved(folder.path());
        let is_read = || !read(&path).is_empty();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o620, 0o602, 0o644, 0o4600] {
            set(&path, mode);
            assert!(!is_read(), "{mode:o}");
        }
        set(&path, 0o600);
        assert!(is_read());
        for mode in [0o770, 0o707, 0o1777] {
            set(folder.path(), mode);
            assert!(!is_read(), "{mode:o}");
        }
        set(folder.path(), 0o755);
        assert!(is_read());
        let other = folder.path().join("other");
        fs::rename(&path, &other).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(!is_read(), "a link");
    }

    #[test]
    fn labels_of_another_boot_and_invalid_files_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = saved(folder.path());
        let text = fs::read_to_string(&path).unwrap();
        for broken in [
            text.replace("boot ", "boot 0"),
            text.clone() + "8 1 9 1700000000 42\n",
            text.clone() + "8 1 9 1700000000 42 shrt\n",
            text.clone() + "8 1 9 1700000000 42 short more\n",
            text.clone() + "8 1 9 0 0 short\n",
            String::new(),
        ] {
            fs::write(&path, &broken).unwrap();
            assert_eq!(read(&path), HashMap::new(), "{broken}");
        }
        fs::write(&path, text + "8 1 9 1700000000 42 long\n").unwrap();
        assert_eq!(read(&path).get(&identity(9)), Some(&Hint::Long));
    }
}
