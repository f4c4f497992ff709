//! Who listens on a port of this machine.
//!
//! Source: `man 5 proc`. What belongs to other users can be seen by root only; a port that is
//! taken shows all the same.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// A process, as far as it can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Occupant {
    pid: Option<(u32, String)>,
}

/// `process 17 (mysqld)`.
impl fmt::Display for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pid {
            Some((pid, name)) => write!(f, "process {pid} ({name})"),
            None => f.write_str("a process that only root can see"),
        }
    }
}

/// Who listens on `port` of 127.0.0.1.
pub(crate) fn of_port(port: u16) -> Option<Occupant> {
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
    Some(Occupant {
        pid: pid.map(|pid| (pid, name_of(pid))),
    })
}

/// The inodes of sockets that listen on `port`.
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

/// Every process but this one, in the order of their numbers.
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
    fn a_taken_port_is_told() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        // It is ours, and we do not name ourselves.
        assert_eq!(of_port(port), Some(Occupant { pid: None }));
        // Nobody offers tcpmux. The port above cannot serve here again: a process that another test starts has
        // the listener, too, until it is executed.
        assert_eq!(of_port(1), None);
    }
}
