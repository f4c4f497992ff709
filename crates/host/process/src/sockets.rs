//! TCP sockets of processes, from `/proc/PID/net` and `/proc/PID/fd`. Source: `man 5 proc`.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::proc;

/// A TCP socket, which may be listening: one line of `/proc/PID/net/tcp` or `tcp6`.
#[derive(Debug, PartialEq, Eq)]
pub struct Connection {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub is_listening: bool,
}

/// `TCP_LISTEN` in the kernel's `tcp_states.h`.
const LISTEN: &str = "0A";

/// The process that listens on TCP port `port` of this host. Only root can see the sockets of other
/// users' processes.
#[must_use]
pub fn listener_at(port: u16) -> Option<u32> {
    let listening = listeners_on(std::process::id(), port);
    let holds = |pid: &u32| {
        let sockets = sockets_of(*pid).unwrap_or_default();
        sockets.iter().any(|(_, inode)| listening.contains(inode))
    };
    // A child that inherited the socket has a higher PID than the listener, as a rule.
    proc::pids().ok()?.into_iter().find(holds)
}

/// The descriptors of `pid` that are sockets, each with its inode, in ascending order.
///
/// # Errors
/// The process has ended, or belongs to another user.
pub fn sockets_of(pid: u32) -> io::Result<Vec<(u32, u64)>> {
    let mut sockets: Vec<(u32, u64)> = fs::read_dir(format!("/proc/{pid}/fd"))?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let fd = entry.file_name().to_str()?.parse().ok()?;
            let link = fs::read_link(entry.path()).ok()?;
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some((fd, inode.parse().ok()?))
        })
        .collect();
    sockets.sort_unstable();
    Ok(sockets)
}

/// The highest open descriptor of `pid`, of any kind; 0 without descriptors.
///
/// # Errors
/// The process has ended, or belongs to another user.
pub fn last_descriptor(pid: u32) -> io::Result<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))?;
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    Ok(entries.filter_map(number).max().unwrap_or(0))
}

/// The TCP sockets of the process's network namespace, by inode.
#[must_use]
pub fn connections_of(pid: u32) -> HashMap<u64, Connection> {
    ["tcp", "tcp6"]
        .into_iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).ok())
        .flat_map(|table| {
            table
                .lines()
                .skip(1)
                .filter_map(parse_line)
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The inodes of sockets that listen on `port` in the network namespace of `pid`.
fn listeners_on(pid: u32, port: u16) -> Vec<u64> {
    let all = connections_of(pid).into_iter();
    let listens = |one: &Connection| one.is_listening && one.local.port() == port;
    all.filter(|(_, one)| listens(one))
        .map(|(inode, _)| inode)
        .collect()
}

fn parse_line(line: &str) -> Option<(u64, Connection)> {
    let mut fields = line.split_whitespace().skip(1);
    let local = parse_address(fields.next()?)?;
    let remote = parse_address(fields.next()?)?;
    let is_listening = fields.next()? == LISTEN;
    let inode = fields.nth(5)?.parse().ok()?;
    Some((
        inode,
        Connection {
            local,
            remote,
            is_listening,
        },
    ))
}

/// Parses an address such as `0100007F:1F90`: 32-bit words in the host's byte order, then the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = [0; 16];
    let words = address.len() / 8;
    for (index, target) in (0..words).zip(bytes.chunks_exact_mut(4)) {
        let word = u32::from_str_radix(address.get(index * 8..index * 8 + 8)?, 16).ok()?;
        target.copy_from_slice(&word.to_ne_bytes());
    }
    let [a, b, c, d, ..] = bytes;
    let address = match words {
        1 => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        4 => IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listeners_on(std::process::id(), port).len(), 1);
        let found = listener_at(port);
        assert_eq!(found, Some(std::process::id()));
        // A connection is not a listener.
        let connection = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let begins = connection.local_addr().unwrap().port();
        assert!(listeners_on(std::process::id(), begins).is_empty());
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn lines_of_the_kernel_are_parsed() {
        for (line, expected) in [
            (
                "   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  \
                 1000        0 31337 1 0000000000000000 100 0 0 10 0",
                Some((31337, "127.0.0.1:6379", "0.0.0.0:0", true)),
            ),
            (
                "   9: 00000000000000000000000001000000:1F90 \
                 00000000000000000000000001000000:C350 01 00000000:00000000 00:00000000 00000000 \
                 0 0 77 1 0",
                Some((77, "[::1]:8080", "[::1]:50000", false)),
            ),
            (
                " 10: 0000000000000000FFFF00000100007F:1F90 \
                 0000000000000000FFFF00000200007F:0001 01 0:0 0:0 0 0 0 5 1",
                Some((5, "127.0.0.1:8080", "127.0.0.2:1", false)),
            ),
            ("   0: 0100007F:18EB 00000000", None),
            ("   0: 0100:18EB 0100:0001 01 0:0 0:0 0 0 0 5 1", None),
            ("", None),
        ] {
            let expected = expected.map(|(inode, local, remote, is_listening)| {
                let address = |text: &str| text.parse::<SocketAddr>().unwrap();
                let (local, remote) = (address(local), address(remote));
                (
                    inode,
                    Connection {
                        local,
                        remote,
                        is_listening,
                    },
                )
            });
            assert_eq!(parse_line(line), expected, "{line}");
        }
    }
}
