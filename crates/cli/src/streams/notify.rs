//! Messages to and from the service manager that started this process (`man 3 sd_notify`, `man 3 sd_listen_fds`): that
//! the service is at work, so that units ordered after it wait for it, and a file to keep for the next start.

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

/// The first descriptor that a service manager passes on (SD_LISTEN_FDS_START).
const FIRST: usize = 3;

/// Says that the service is at work.
pub(super) fn ready() {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    // systemd ends a service that it has not heard of; there is nobody else to tell.
    let _ = send(&place, b"READY=1", &[]);
}

/// A file in memory that the service manager keeps while the service restarts: that of the run before, or a new one.
/// `None` when no service manager has started this process, or with a warning when it could not be made.
pub(super) fn kept() -> Option<Arc<File>> {
    let place = std::env::var_os("NOTIFY_SOCKET")?;
    let file = passed_on_or_new(&place);
    let warn = |error| {
        exit::say(&format!(
            "warning: systemd cannot keep the labels for a restart: {error}"
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

/// The number of the kept file, if the service manager has passed it on to this process.
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
    fn both_kinds_of_addresses_are_heard() {
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
    fn the_kept_file_is_found_by_its_name_among_those_of_this_process() {
        let own = std::process::id().to_string();
        assert_eq!(passed_on(&own, "labels"), Some(3));
        assert_eq!(passed_on(&own, "other:labels"), Some(4));
        assert_eq!(passed_on(&own, "other"), None);
        assert_eq!(passed_on("1", "labels"), None);
        assert_eq!(passed_on("", ""), None);
    }
}
