//! The process that listens on a port of this machine.
//!
//! Only root can see the sockets of other users' processes; binding the port shows without root
//! whether it is in use.

use std::fmt;
use std::net::{Ipv4Addr, TcpListener};

use saiga_process::{proc, sockets};

/// The process that listens on a port; displayed as `process 17 (mysqld)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortOwner {
    /// PID and name; `None` if only root can see the process.
    process: Option<(u32, String)>,
}

impl fmt::Display for PortOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some((pid, name)) => write!(f, "process {pid} ({name})"),
            None => f.write_str("a process that only root can see"),
        }
    }
}

/// The process that listens on `port` of 127.0.0.1; `None` if the port is free.
pub(crate) fn find(port: u16) -> Option<PortOwner> {
    if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
        return None;
    }
    let pid = sockets::listener_at(port).filter(|pid| *pid != std::process::id());
    Some(PortOwner {
        process: pid.map(|pid| (pid, proc::name(pid))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_has_an_owner_and_a_free_one_has_none() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        // The listener belongs to this process, which the search leaves out.
        assert_eq!(find(port), Some(PortOwner { process: None }));
        // Port 1 is tcpmux, which no service uses. The port above cannot be closed and tested
        // again: a process that another test forks keeps the listener open until it calls exec.
        assert_eq!(find(1), None);
    }
}
