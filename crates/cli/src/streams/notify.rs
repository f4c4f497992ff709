//! Messages to and from the service manager (`man 3 sd_notify`, `man 3 sd_listen_fds`).
//!
//! Reports that the service is ready, so that units ordered after it can start, and stores a memfd
//! with the labels in the service manager across restarts.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;

use rustix::fs::MemfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::exit;

/// The first descriptor that a service manager passes (SD_LISTEN_FDS_START).
const FIRST: usize = 3;

/// Reports that the service is ready.
pub(crate) fn ready() {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    // Not reported: systemd ends a service that does not become ready.
    let _ = send(&place, b"READY=1", &[]);
}

/// The memfd that the service manager keeps across restarts: the one of the previous run, or a new
/// one. `None` without a service manager, or with a warning if the memfd cannot be made.
pub(super) fn kept() -> Option<Arc<File>> {
    let place = std::env::var_os("NOTIFY_SOCKET")?;
    let file = passed_on_or_new(&place);
    let warn = |error| {
        exit::say(&format!(
            "warning: systemd cannot store the labels across a restart: {error}"
        ));
    };
    file.map_err(warn).ok().map(Arc::new)
}

fn passed_on_or_new(place: &OsStr) -> io::Result<File> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    if let Some(number) = passed_on(&variable("LISTEN_PID"), &variable("LISTEN_FDNAMES")) {
        let path = format!("/proc/self/fd/{number}");
        return File::options().read(true).write(true).open(path);
    }
    let file = File::from(rustix::fs::memfd_create("labels", MemfdFlags::CLOEXEC)?);
    send(place, b"FDSTORE=1\nFDNAME=labels", &[file.as_fd()])?;
    Ok(file)
}

/// The descriptor number of the stored memfd, if the service manager passed it to this process.
fn passed_on(pid: &str, names: &str) -> Option<usize> {
    let is_ours = pid == std::process::id().to_string();
    let at = names.split(':').position(|name| name == "labels")?;
    is_ours.then_some(FIRST + at)
}

fn send(place: &OsStr, text: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let address = match place.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    let text = IoSlice::new(text);
    rustix::net::sendmsg(&socket, &[text], &mut control, SendFlags::empty())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_reach_path_and_abstract_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let name = format!("saiga-notify-{}", std::process::id());
        let abstract_one = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, place) in [
            (
                UnixDatagram::bind(&path).unwrap(),
                path.clone().into_os_string(),
            ),
            (
                UnixDatagram::bind_addr(&abstract_one).unwrap(),
                format!("@{name}").into(),
            ),
        ] {
            send(&place, b"READY=1", &[]).unwrap();
            let mut heard = [0; 16];
            let len = socket.recv(&mut heard).unwrap();
            assert_eq!(&heard[..len], b"READY=1");
        }
        assert!(send(OsStr::new("/no/such"), b"READY=1", &[]).is_err());
    }

    #[test]
    fn the_stored_file_is_found_by_name_and_pid() {
        let own = std::process::id().to_string();
        assert_eq!(passed_on(&own, "labels"), Some(3));
        assert_eq!(passed_on(&own, "other:labels"), Some(4));
        assert_eq!(passed_on(&own, "other"), None);
        assert_eq!(passed_on("1", "labels"), None);
        assert_eq!(passed_on("", ""), None);
    }
}
