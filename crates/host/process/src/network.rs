//! Network namespaces: further hosts on this machine, without names.
//!
//! A namespace exists as long as a process, a socket or a descriptor refers to it. [`Namespace`]
//! holds a descriptor, so nothing is left when this process ends, even by SIGKILL. A socket stays
//! in the namespace in which it was made, and a process begins in the namespace of the thread that
//! starts it. [`within`] therefore moves the calling thread for one call only.
//!
//! Spec: man 7 network_namespaces, man 2 setns. Deliberately absent: names in /run/netns, and
//! devices.
#![expect(unsafe_code, reason = "unshare(2) has no safe wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The network namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace, which ends with this value and the processes and sockets in it.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Creates a namespace. Its only device is loopback, which is down.
    ///
    /// # Errors
    /// Fails without the capability `CAP_SYS_ADMIN`.
    pub fn new() -> io::Result<Self> {
        // unshare(2) moves the thread that calls it, and the caller must stay.
        let created = thread::spawn(|| {
            // SAFETY: a network namespace concerns neither memory nor open descriptors.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            File::open(OWN)
        });
        let created = created.join();
        let panicked = |_| Err(io::Error::other("the thread panicked"));
        created.unwrap_or_else(panicked).map(Self)
    }

    /// The file by which nsenter(1), ip(8) and [`within`] find the namespace; valid as long as this
    /// value exists.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let Self(file) = self;
        format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
    }
}

/// Calls `work` in the namespace with the file `place`, or for `None` in that of the calling
/// thread. Sockets and processes that `work` creates stay in the namespace.
///
/// # Errors
/// Returns the error of `work`, or the reason why the namespace cannot be entered.
pub fn within<R>(place: Option<&Path>, work: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    let Some(place) = place else {
        return work();
    };
    let own = File::open(OWN)?;
    File::open(place)
        .and_then(|there| enter(&there))
        .map_err(|error| cannot_enter(place, &error))?;
    let done = work();
    enter(&own).map_err(|error| cannot_enter(Path::new(OWN), &error))?;
    done
}

fn enter(namespace: &File) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::Network);
    Ok(move_into_link_name_space(namespace.as_fd(), kind)?)
}

/// Not the kind of `error`: a missing namespace is not a missing program.
fn cannot_enter(place: &Path, error: &io::Error) -> io::Error {
    let place = place.display();
    io::Error::other(format!(
        "cannot enter the network namespace {place}: {error}"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;

    use super::*;

    /// The identity of a namespace, such as `net:[4026531840]`. Needs root.
    fn own() -> PathBuf {
        fs::read_link(OWN).unwrap()
    }

    #[test]
    fn a_socket_stays_in_its_namespace_and_the_thread_does_not() {
        let (namespace, before) = (Namespace::new().unwrap(), own());
        let place = namespace.path();
        let there = within(Some(&place), || Ok(own())).unwrap();
        assert_ne!(there, before);
        assert_eq!(own(), before);
        let bind = || TcpListener::bind("0.0.0.0:0");
        let listener = within(Some(&place), bind).unwrap();
        let address = listener.local_addr().unwrap();
        // The port is taken in that namespace and free in another.
        let other = Namespace::new().unwrap();
        let again = |place: &Path| within(Some(place), || TcpListener::bind(address));
        let taken = again(&place).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        again(&other.path()).unwrap();
    }

    #[test]
    fn the_thread_returns_after_an_error() {
        let (namespace, before) = (Namespace::new().unwrap(), own());
        let failed = within(Some(&namespace.path()), || {
            Err::<(), _>(io::ErrorKind::NotFound.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(own(), before);
    }

    #[test]
    fn a_missing_namespace_is_named() {
        let place = Path::new("/proc/self/ns/nothing");
        let error = within(Some(place), || Ok(())).unwrap_err();
        let wanted = "cannot enter the network namespace /proc/self/ns/nothing: ";
        assert!(error.to_string().starts_with(wanted), "{error}");
        assert_eq!(error.kind(), io::ErrorKind::Other);
        within(None, || Ok(())).unwrap();
    }
}
