//! Reads files of `/proc` and `/sys` below a root directory.
//!
//! With another root than `/`, a recorded tree of another machine is read like this machine. Such a
//! tree is not trusted: symbolic links are resolved below the root (openat2(2) with
//! `RESOLVE_IN_ROOT`, Linux 5.6), only regular files are opened, and their size is limited.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Maximum size of a file below a root other than `/`.
const MAX_BYTES: u64 = 16 << 20;
/// openat2(2) reports EAGAIN if a directory is renamed during the resolution of `..`.
const MAX_RESOLUTIONS: usize = 100;

/// A directory that holds `proc` and `sys`. Paths are given as on a host, such as
/// `/proc/cpuinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// This machine.
    #[must_use]
    pub fn host() -> Self {
        Self(PathBuf::from("/"))
    }

    /// The tree of a machine below `dir`.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self(dir.into())
    }

    #[must_use]
    pub fn is_host(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The place of a file below the root.
    #[must_use]
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        let name = name.as_ref();
        self.0.join(name.strip_prefix("/").unwrap_or(name))
    }

    /// The bytes of a file; `None` if the file does not exist.
    ///
    /// # Errors
    /// The file exists and cannot be read. Below a root other than `/`, the file is not a regular
    /// file, or is larger than 16 MiB.
    pub fn bytes(&self, name: impl AsRef<Path>) -> io::Result<Option<Vec<u8>>> {
        let bytes = if self.is_host() {
            fs::read(self.path(name))
        } else {
            self.resolve(name.as_ref(), OFlags::PATH)
                .and_then(|place| read_limited(place.as_fd()))
        };
        present(bytes)
    }

    /// The text of a file without white space at its end; `None` if the file does not exist.
    ///
    /// # Errors
    /// As [`Root::bytes`].
    pub fn text(&self, name: impl AsRef<Path>) -> io::Result<Option<String>> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
        Ok(self.bytes(name)?.map(text))
    }

    /// The value of a file that holds one number or word; `None` if the file does not exist or
    /// holds something else.
    ///
    /// # Errors
    /// As [`Root::bytes`].
    pub fn value<T: std::str::FromStr>(&self, name: impl AsRef<Path>) -> io::Result<Option<T>> {
        Ok(self.text(name)?.and_then(|text| text.trim().parse().ok()))
    }

    /// The names in a directory, sorted; none if the directory does not exist.
    ///
    /// # Errors
    /// The directory exists and cannot be read.
    pub fn names(&self, dir: impl AsRef<Path>) -> io::Result<Vec<String>> {
        Ok(present(self.entries(dir.as_ref()))?.unwrap_or_default())
    }

    fn entries(&self, dir: &Path) -> io::Result<Vec<String>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = if self.is_host() {
            rustix::fs::open(self.path(dir), flags | OFlags::CLOEXEC, Mode::empty())?
        } else {
            self.resolve(dir, flags)?
        };
        let mut names = Vec::new();
        for entry in Dir::new(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy();
            if name != "." && name != ".." {
                names.push(name.into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// The target of a symbolic link, as it is written in the link.
    ///
    /// # Errors
    /// There is no such link, or it cannot be read.
    pub fn link(&self, name: impl AsRef<Path>) -> io::Result<PathBuf> {
        if self.is_host() {
            return fs::read_link(self.path(name));
        }
        let place = self.resolve(name.as_ref(), OFlags::PATH | OFlags::NOFOLLOW)?;
        let target = rustix::fs::readlinkat(place, c"", Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// The last component of the target of a symbolic link, such as the driver of a device; `None`
    /// if there is no such link.
    #[must_use]
    pub fn link_name(&self, name: impl AsRef<Path>) -> Option<String> {
        let target = self.link(name).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    #[must_use]
    pub fn exists(&self, name: impl AsRef<Path>) -> bool {
        if self.is_host() {
            self.path(name).exists()
        } else {
            self.resolve(name.as_ref(), OFlags::PATH).is_ok()
        }
    }

    /// Opens a name below the root. Neither an absolute link nor `..` leads out of the root.
    fn resolve(&self, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let here = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.0, here, Mode::empty())?;
        let name = name.strip_prefix("/").unwrap_or(name);
        let name = Some(name).filter(|name| !name.as_os_str().is_empty());
        let name = name.unwrap_or(Path::new("."));
        let flags = flags | OFlags::CLOEXEC;
        let mut result = Err(Errno::AGAIN);
        for _ in 0..MAX_RESOLUTIONS {
            let inside = ResolveFlags::IN_ROOT;
            result = rustix::fs::openat2(&root, name, flags, Mode::empty(), inside);
            if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        Ok(result?)
    }
}

/// Opens the regular file of an `O_PATH` descriptor for reading.
///
/// Other files are not opened: opening a FIFO waits for a writer, and opening a device may act on
/// the device.
///
/// # Errors
/// The file is not a regular file, or it cannot be opened.
pub fn open_regular(place: impl AsFd) -> io::Result<File> {
    let place = place.as_fd();
    let mode = rustix::fs::fstat(place)?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::RegularFile {
        return Err(io::Error::other("not a regular file"));
    }
    let again = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, again, flags, Mode::empty())?;
    Ok(file.into())
}

fn read_limited(place: impl AsFd) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular(place)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        let text = format!("larger than {} MiB", MAX_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a file does not exist. A process that has ended reports ESRCH, and an attribute without
/// its device ENODEV.
#[must_use]
pub fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::ENOTDIR | libc::ESRCH | libc::ENODEV)
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_is_read_like_a_host() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        fs::create_dir_all(root.path("/sys/class/net/eth0")).unwrap();
        fs::write(root.path("/sys/class/net/eth0/mtu"), "1500\n").unwrap();
        symlink(
            "../../../bus/virtio_net",
            root.path("/sys/class/net/eth0/driver"),
        )
        .unwrap();
        assert_eq!(
            root.text("/sys/class/net/eth0/mtu").unwrap().as_deref(),
            Some("1500")
        );
        assert_eq!(
            root.value::<u32>("sys/class/net/eth0/mtu").unwrap(),
            Some(1500)
        );
        assert_eq!(root.value::<u32>("/sys/class/net/eth1/mtu").unwrap(), None);
        assert_eq!(root.text("/sys/class/net/eth0/mtu/none").unwrap(), None);
        assert_eq!(
            root.names("/sys/class/net/eth0").unwrap(),
            ["driver", "mtu"]
        );
        assert!(root.names("/sys/class/block").unwrap().is_empty());
        let driver = root.link_name("/sys/class/net/eth0/driver");
        assert_eq!(driver.as_deref(), Some("virtio_net"));
        assert!(root.text("/sys/class/net/eth0").is_err(), "a directory");
        assert!(!root.is_host() && Root::host().is_host());
    }
    /// A root in a directory beside a file that is not part of the root.
    fn beside_a_secret() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("root/sys")).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        let root = Root::at(dir.path().join("root"));
        (dir, root)
    }

    #[test]
    fn links_do_not_lead_out_of_the_root() {
        let (dir, root) = beside_a_secret();
        symlink(dir.path().join("secret"), root.path("/sys/absolute")).unwrap();
        symlink("../../secret", root.path("/sys/above")).unwrap();
        symlink(dir.path(), root.path("/sys/dir")).unwrap();
        for name in [
            "/sys/absolute",
            "/sys/above",
            "/sys/dir/secret",
            "/../secret",
        ] {
            assert_eq!(root.text(name).unwrap(), None, "{name}");
            assert!(!root.exists(name), "{name}");
        }
        assert!(root.names("/sys/dir").unwrap().is_empty());
        assert!(root.link("/sys/dir/root").is_err());
        fs::write(root.path("/secret"), "inside").unwrap();
        let inside = root.text("/sys/above").unwrap();
        assert_eq!(inside.as_deref(), Some("inside"));
        assert_eq!(root.names("/").unwrap(), ["secret", "sys"]);
    }

    #[test]
    fn only_regular_files_of_a_limited_size_are_read() {
        let (_dir, root) = beside_a_secret();
        let fifo = root.path("/sys/fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let error = root.text("/sys/fifo").unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
        let large = File::create(root.path("/sys/large")).unwrap();
        large.set_len(MAX_BYTES).unwrap();
        let bytes = root.bytes("/sys/large").unwrap().unwrap();
        assert_eq!(bytes.len(), 16 << 20);
        large.set_len(MAX_BYTES + 1).unwrap();
        let error = root.bytes("/sys/large").unwrap_err();
        assert_eq!(error.to_string(), "larger than 16 MiB");
    }

    #[test]
    fn a_file_is_absent_without_its_name_process_or_device() {
        for code in [libc::ENOENT, libc::ENOTDIR, libc::ESRCH, libc::ENODEV] {
            assert!(is_absent(&io::Error::from_raw_os_error(code)), "{code}");
        }
        assert!(!is_absent(&io::Error::from_raw_os_error(libc::EACCES)));
    }
}
