//! The control socket in the file system.
//!
//! The socket has mode 0600 in a directory that only root and the gateway's own user may change. A
//! socket that a killed gateway has left is replaced, if nothing answers on it; any other file is
//! not touched. At the end, the socket is removed, unless another one has taken its place.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Who may write to a directory besides its owner.
const OTHERS_WRITE: u32 = 0o022;

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another gateway answers on the socket.
    #[error(
        "another gateway answers at {}: end it, or choose another `runtime.control`",
        path.display()
    )]
    InUse {
        /// Path of the socket.
        path: PathBuf,
    },
    /// Other users may change the directory.
    #[error(
        "users other than root may write to {}: choose another directory for `runtime.control`",
        path.display()
    )]
    Unsafe {
        /// Path of the directory.
        path: PathBuf,
    },
    /// A file that is not a socket has the name, or a socket of another user.
    #[error(
        "{} is not a socket of the gateway: remove it, or choose another `runtime.control`",
        path.display()
    )]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("cannot make the control socket {}", path.display())]
    System {
        /// Path of the socket.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// A listening control socket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(super) listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket.
    identity: (u64, u64),
}

impl Socket {
    /// Makes the socket, and its directory if that is missing. The listener does not wait.
    ///
    /// # Errors
    /// Each [`OpenError`] says when.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let system = |source| OpenError::System {
            path: path.to_owned(),
            source,
        };
        check_directory(path.parent().unwrap_or(Path::new("/")))?;
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_leftover(path)?;
                UnixListener::bind(path)
            }
            bound => bound,
        };
        let listener = listener.map_err(system)?;
        let metadata = fs::symlink_metadata(path).map_err(system)?;
        let socket = Self {
            listener,
            path: path.to_owned(),
            identity: identity(&metadata),
        };
        // Until here, the credentials of a client protect the socket, as they do later.
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(system)?;
        socket.listener.set_nonblocking(true).map_err(system)?;
        Ok(socket)
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

/// Whether a file belongs to root or to the user of this process.
fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || metadata.uid() == rustix::process::geteuid().as_raw()
}

/// Makes the directory if it is missing, with mode 0755.
fn check_directory(path: &Path) -> Result<(), OpenError> {
    let system = |source| OpenError::System {
        path: path.to_owned(),
        source,
    };
    match DirBuilder::new().mode(0o755).create(path) {
        // The mask of the process may have taken rights away.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(system)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(system(error)),
    }
    let metadata = fs::metadata(path).map_err(system)?;
    if metadata.mode() & OTHERS_WRITE != 0 || !is_own(&metadata) {
        return Err(OpenError::Unsafe {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// Removes the socket of a gateway that was killed.
fn remove_leftover(path: &Path) -> Result<(), OpenError> {
    let system = |source| OpenError::System {
        path: path.to_owned(),
        source,
    };
    let metadata = fs::symlink_metadata(path).map_err(system)?;
    if !metadata.file_type().is_socket() || !is_own(&metadata) {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
        });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(system)
        }
        Ok(_) | Err(_) => Err(OpenError::InUse {
            path: path.to_owned(),
        }),
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

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn the_socket_is_for_its_owner_and_goes_with_the_gateway() {
        let (_folder, path) = folder();
        let socket = Socket::open(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o755);
        let again = Socket::open(&path).unwrap_err();
        assert!(matches!(again, OpenError::InUse { .. }), "{again}");
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn the_socket_of_a_killed_gateway_is_replaced_and_other_files_are_not() {
        let (_folder, path) = folder();
        fs::create_dir(path.parent().unwrap()).unwrap();
        // A listener that is dropped leaves its socket behind, as a killed process does.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Socket::open(&path).unwrap());
        fs::write(&path, "mine").unwrap();
        let foreign = Socket::open(&path).unwrap_err();
        assert!(matches!(foreign, OpenError::Foreign { .. }), "{foreign}");
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn a_socket_in_the_place_of_ours_stays() {
        let (_folder, path) = folder();
        let ours = Socket::open(&path).unwrap();
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
        let refused = Socket::open(&path).unwrap_err();
        assert!(matches!(refused, OpenError::Unsafe { .. }), "{refused}");
        assert!(!path.exists());
    }
}
