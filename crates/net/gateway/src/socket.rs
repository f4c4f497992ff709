//! Listening sockets in the file system: the control socket, and those of memif.
//!
//! The socket has mode 0600 in a directory that only root and the gateway's own user may change. A
//! socket that a killed gateway has left is replaced, if nothing answers on it; any other file is
//! not touched. At the end, the socket is removed, unless another one has taken its place.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, chownat, fstat, open};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Who may write to a directory besides its owner.
const OTHERS_WRITE: u32 = 0o022;

/// Connections that wait for the gateway.
const BACKLOG: i32 = 128;

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another gateway answers on the socket.
    #[error(
        "another gateway answers at {}: end it, or choose another `{key}`",
        path.display()
    )]
    InUse {
        /// The key of the path.
        key: &'static str,
        /// Path of the socket.
        path: PathBuf,
    },
    /// Other users may change the directory.
    #[error(
        "{} belongs to another user, or other users may write to it: remove it, or choose another \
         directory for `{key}`",
        path.display()
    )]
    Unsafe {
        /// The key of the path.
        key: &'static str,
        /// Path of the directory.
        path: PathBuf,
    },
    /// A file that is not a socket has the name, or a socket of another user.
    #[error(
        "{} is not a socket of the gateway: remove it, or choose another `{key}`",
        path.display()
    )]
    Foreign {
        /// The key of the path.
        key: &'static str,
        /// Path of the file.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("cannot make the socket {} of `{key}`", path.display())]
    System {
        /// The key of the path.
        key: &'static str,
        /// Path of the socket.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// The user and group that the gateway becomes; `None` if it keeps its own. The directory that it
/// makes and the socket belong to them, so that it can remove the socket.
pub(crate) type Owner = Option<(u32, u32)>;

/// A socket of the settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The key of its path.
    pub(crate) key: &'static str,
    pub(crate) path: &'a Path,
    pub(crate) kind: SocketType,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket.
    identity: (u64, u64),
}

impl Socket {
    /// Makes the socket, and its directory if that is missing. The listener does not wait.
    ///
    /// # Errors
    /// Each [`OpenError`] says when.
    pub(crate) fn open(place: &Place<'_>, owner: Owner) -> Result<Self, OpenError> {
        let path = place.path;
        place.check_directory(owner)?;
        let listener = match place.listen() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                place.remove_leftover(owner)?;
                place.listen()
            }
            bound => bound,
        };
        let listener = listener.map_err(|error| place.failed(error))?;
        // Until here, the credentials of a client protect the socket, as they do later.
        protect(path, 0o600, owner).map_err(|error| place.failed(error))?;
        let metadata = fs::symlink_metadata(path).map_err(|error| place.failed(error))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            identity: identity(&metadata),
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| identity(&found) == self.identity) {
            // If this fails, the next gateway replaces the socket.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Sets the mode and the owner of a socket or directory. A symbolic link that has taken its place
/// since is not followed.
fn protect(path: &Path, mode: u32, owner: Owner) -> io::Result<()> {
    let place = open(
        path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let kind = FileType::from_raw_mode(fstat(&place)?.st_mode);
    if kind != FileType::Socket && kind != FileType::Directory {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let shown = format!("/proc/self/fd/{}", place.as_raw_fd());
    fs::set_permissions(shown, Permissions::from_mode(mode))?;
    if let Some((user, group)) = owner {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        chownat(&place, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

/// Whether a file belongs to root, to the user of this process, or to the owner.
fn is_own(metadata: &Metadata, owner: Owner) -> bool {
    let user = metadata.uid();
    user == 0
        || user == rustix::process::geteuid().as_raw()
        || owner.is_some_and(|(own, _)| own == user)
}

impl Place<'_> {
    fn listen(&self) -> io::Result<UnixListener> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, self.kind, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(self.path)?)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(socket.into())
    }

    fn failed(&self, source: io::Error) -> OpenError {
        OpenError::System {
            key: self.key,
            path: self.path.to_owned(),
            source,
        }
    }

    /// Makes the directory if it is missing, with mode 0755, for the owner.
    fn check_directory(&self, owner: Owner) -> Result<(), OpenError> {
        let path = self.path.parent().unwrap_or(Path::new("/"));
        let system = |source| OpenError::System {
            key: self.key,
            path: path.to_owned(),
            source,
        };
        match DirBuilder::new().mode(0o755).create(path) {
            // The mask of the process may have taken rights away.
            Ok(()) => protect(path, 0o755, owner).map_err(system)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(system(error)),
        }
        let metadata = fs::metadata(path).map_err(system)?;
        if metadata.mode() & OTHERS_WRITE != 0 || !is_own(&metadata, owner) {
            return Err(OpenError::Unsafe {
                key: self.key,
                path: path.to_owned(),
            });
        }
        Ok(())
    }

    /// Removes the socket of a gateway that was killed.
    fn remove_leftover(&self, owner: Owner) -> Result<(), OpenError> {
        let Self { key, path, kind } = *self;
        let metadata = fs::symlink_metadata(path).map_err(|error| self.failed(error))?;
        if !metadata.file_type().is_socket() || !is_own(&metadata, owner) {
            return Err(OpenError::Foreign {
                key,
                path: path.to_owned(),
            });
        }
        let address = SocketAddrUnix::new(path).map_err(|error| self.failed(error.into()))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let probe = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None);
        let probe = probe.map_err(|error| self.failed(error.into()))?;
        match rustix::net::connect(&probe, &address) {
            Err(rustix::io::Errno::CONNREFUSED) => {
                fs::remove_file(path).map_err(|error| self.failed(error))
            }
            Ok(()) | Err(_) => Err(OpenError::InUse {
                key,
                path: path.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below").join("gateway.sock");
        (folder, path)
    }

    fn open_at(path: &Path, owner: Owner) -> Result<Socket, OpenError> {
        let place = Place {
            key: "runtime.control",
            path,
            kind: SocketType::STREAM,
        };
        Socket::open(&place, owner)
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn the_socket_is_for_its_owner_and_goes_with_the_gateway() {
        let (_folder, path) = folder();
        let socket = open_at(&path, None).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o755);
        let again = open_at(&path, None).unwrap_err();
        assert!(matches!(again, OpenError::InUse { .. }), "{again}");
        drop(socket);
        assert!(!path.exists());
    }

    /// Tests run as root; the user need not exist.
    #[test]
    fn the_owner_gets_socket_and_directory() {
        let (_folder, path) = folder();
        let owner = Some((4711, 4712));
        for _ in 0..2 {
            let _socket = open_at(&path, owner).unwrap();
            for one in [&path, path.parent().unwrap()] {
                let metadata = fs::symlink_metadata(one).unwrap();
                assert_eq!(Some((metadata.uid(), metadata.gid())), owner);
            }
            assert_eq!(mode(&path), 0o600);
        }
        let other = open_at(&path, Some((4713, 4712))).unwrap_err();
        assert!(matches!(other, OpenError::Unsafe { .. }), "{other}");
    }

    #[test]
    fn the_socket_of_a_killed_gateway_is_replaced_and_other_files_are_not() {
        let (_folder, path) = folder();
        fs::create_dir(path.parent().unwrap()).unwrap();
        // A listener that is dropped leaves its socket behind, as a killed process does.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(open_at(&path, None).unwrap());
        fs::write(&path, "mine").unwrap();
        let foreign = open_at(&path, None).unwrap_err();
        assert!(matches!(foreign, OpenError::Foreign { .. }), "{foreign}");
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn a_socket_in_the_place_of_ours_stays() {
        let (_folder, path) = folder();
        let ours = open_at(&path, None).unwrap();
        fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(ours);
        assert!(path.exists());
    }

    #[test]
    fn a_directory_that_others_may_change_is_refused() {
        let (folder, _) = folder();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        let path = folder.path().join("gateway.sock");
        let refused = open_at(&path, None).unwrap_err();
        assert!(matches!(refused, OpenError::Unsafe { .. }), "{refused}");
        assert!(!path.exists());
    }
}
