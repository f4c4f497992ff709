//! The process that listens on a port of this machine.
//!
//! Source: `man 5 proc`. Only root can see the sockets of other users' processes; binding the
//! port shows without root whether it is in use.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

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
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .flat_map(|table| listeners(&fs::read_to_string(table).unwrap_or_default(), port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let holds = |pid: &u32| {
        links(&format!("/proc/{pid}/fd")).any(|target| {
            sockets
                .iter()
                .any(|socket| target.as_os_str() == socket.as_str())
        })
    };
    let pid = pids().into_iter().find(holds);
    Some(PortOwner {
        process: pid.map(|pid| (pid, name_of(pid))),
    })
}

/// Inodes of the sockets in `table` that listen on `port`.
fn listeners(table: &str, port: u16) -> Vec<String> {
    let wanted = format!(":{port:04X}");
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(1)?.ends_with(&wanted) && *fields.get(3)? == LISTENING;
        listens.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    };
    table.lines().skip(1).filter_map(inode).collect()
}

fn links(folder: &str) -> impl Iterator<Item = std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok())
}

/// The PIDs of all processes but this one, ascending.
fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let mut pids: Vec<u32> = entries.filter_map(number).collect();
    pids.retain(|pid| *pid != std::process::id());
    pids.sort_unstable();
    pids
}

fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_by_its_port_and_state() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1CD3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n\
            1: 0100007F:1CD3 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0\n";
        assert_eq!(listeners(table, 7379), ["4711"]);
        assert_eq!(listeners(table, 7380), [""; 0]);
    }

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
