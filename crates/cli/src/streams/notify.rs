//! Tells systemd that a service of `Type=notify` is at work (`man 3 sd_notify`), so that units ordered after it wait for it.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says so to whoever started this process and wants to know.
pub(super) fn ready() {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    // systemd ends a service that it has not heard of; there is nobody else to tell.
    let _ = send(&place, b"READY=1");
}

fn send(place: &OsStr, text: &[u8]) -> io::Result<()> {
    let address = match place.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(text, &address)?;
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
            send(&place, b"READY=1").unwrap();
            let mut heard = [0; 16];
            let len = socket.recv(&mut heard).unwrap();
            assert_eq!(&heard[..len], b"READY=1");
        }
        assert!(send(OsStr::new("/no/such"), b"READY=1").is_err());
    }
}
