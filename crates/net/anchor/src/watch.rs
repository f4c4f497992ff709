//! Notices that other programs change rules, routes, addresses or the TUN device.
//!
//! Spec: rtnetlink(7), kernel net/core/fib_rules.c (`notify_rule_change`) and net/ipv4/fib_trie.c
//! (`fib_table_flush`). The kernel does not announce each route that vanishes with its device or
//! its address, so changes of both count, too. What has changed, only a comparison tells:
//! [`Routes::repair`](crate::Routes::repair). Own changes are announced as well.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process;

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Most datagrams of one call of [`Watch::read`].
const MOST_DATAGRAMS: usize = 1024;
const GROUPS: [libc::c_uint; 7] = [
    libc::RTNLGRP_LINK,
    libc::RTNLGRP_IPV4_IFADDR,
    libc::RTNLGRP_IPV4_ROUTE,
    libc::RTNLGRP_IPV4_RULE,
    libc::RTNLGRP_IPV6_IFADDR,
    libc::RTNLGRP_IPV6_ROUTE,
    libc::RTNLGRP_IPV6_RULE,
];

/// Tells when rules and routes of a gateway must be compared with the kernel's.
///
/// The descriptor is readable when [`Self::read`] has something to read.
pub struct Watch {
    socket: Socket,
    /// Number of the routing table, as the first fields of a message have it.
    table: u8,
    /// Index of the TUN device.
    device: u32,
    /// Netlink port of the program that has last removed a rule or a route.
    remover: Option<u32>,
}

/// What [`Watch::read`] has found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct News {
    /// Something has changed that may be the gateway's.
    pub is_concerned: bool,
    /// There may be more to read.
    pub has_more: bool,
}

impl Watch {
    pub(crate) fn open(table: u32, device: u32) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        // The kernel refuses what other processes send to this socket alone.
        socket.connect(&SocketAddr::new(0, 0))?;
        for group in GROUPS {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Self {
            socket,
            // A number without room stands in an attribute.
            table: u8::try_from(table).unwrap_or(libc::RT_TABLE_COMPAT),
            device,
            remover: None,
        })
    }

    /// Reads what was announced, without waiting.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn read(&mut self) -> io::Result<News> {
        let mut news = News::default();
        // The rest of a message does not matter.
        let mut buffer = [0; 24];
        for _ in 0..MOST_DATAGRAMS {
            match self.socket.recv_from(&mut &mut buffer[..], 0) {
                Ok((length, sender)) => {
                    let message = buffer.get(..length).unwrap_or_default();
                    // Other programs may send to the groups, too.
                    news.is_concerned |= sender.port_number() == 0 && self.concerns(message);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(news),
                // Announcements were lost.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    news.is_concerned = true;
                }
                Err(error) => return Err(error),
            }
        }
        news.has_more = true;
        Ok(news)
    }

    /// The program that has last removed a rule or a route, if it runs and can be seen. Forgets it.
    ///
    /// The kernel gives the first netlink socket of a process its PID as port. A process in another
    /// PID namespace has another PID here, so this is likely, not certain.
    pub fn remover(&mut self) -> Option<String> {
        let process = self.remover.take().filter(|one| *one != process::id())?;
        let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
        Some(format!("{:?}, process {process}", name.trim_end()))
    }

    fn concerns(&mut self, message: &[u8]) -> bool {
        let Some(news) = Announcement::read(message) else {
            return false;
        };
        let is_concerned = match news.kind {
            libc::RTM_NEWLINK | libc::RTM_DELLINK => news.index == self.device,
            libc::RTM_NEWROUTE | libc::RTM_DELROUTE => news.table == self.table,
            _ => true,
        };
        if is_concerned && matches!(news.kind, libc::RTM_DELROUTE | libc::RTM_DELRULE) {
            self.remover = Some(news.port).filter(|port| *port != 0);
        }
        is_concerned
    }
}

/// What counts of a message.
struct Announcement {
    kind: u16,
    /// Netlink port of the program that has caused it; 0 for the kernel.
    port: u32,
    /// `rtm_table` of a route, and `ifi_index` of a link.
    table: u8,
    index: u32,
}

impl Announcement {
    /// Reads a `struct nlmsghdr`, and the first fields behind it.
    fn read(message: &[u8]) -> Option<Self> {
        let word = |at: usize| message.get(at..)?.first_chunk().copied();
        Some(Self {
            kind: u16::from_ne_bytes(*message.get(4..)?.first_chunk()?),
            port: u32::from_ne_bytes(word(12)?),
            table: *message.get(20)?,
            index: u32::from_ne_bytes(word(20)?),
        })
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
