//! Listeners: the ports at which connections are accepted.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use saiga_tcp::Instant;

use crate::limit::RateLimit;

/// Most listeners of a stack.
pub const MAX_LISTENERS: usize = 4096;

/// The number of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) u16);

/// Where and how a listener accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    /// The address; `None` for all addresses of the host.
    pub address: Option<IpAddr>,
    /// The port, at least 1.
    pub port: u16,
    /// Most connections in handshakes, undecided ones included (`tcp_max_syn_backlog`).
    pub backlog: u32,
    /// Whether SYNs beyond the backlog, and beyond a rate of a thousand in a second, are answered
    /// with cookies (RFC 4987 §3.6). The owner then decides when the peer has proven its address.
    pub has_cookies: bool,
    /// Size of the receive buffer that such an answer announces, in bytes.
    pub buffer: u32,
}

/// Why there is no listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// Another listener has the address and the port.
    #[error("port {0} has a listener already")]
    InUse(u16),
    /// There are [`MAX_LISTENERS`].
    #[error("more than {MAX_LISTENERS} listeners")]
    TooMany,
}

/// All listeners. A place is used again only when its last handshake has ended.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    slots: Vec<Slot>,
    /// Ports with the places of their listeners, in order.
    by_port: Vec<(u16, u16)>,
}

#[derive(Debug)]
struct Slot {
    listen: Option<Listen>,
    half_open: u32,
    /// Limits handshakes with peers that have not proven their addresses, if there are cookies.
    unproven: RateLimit,
}

/// SYNs about which the owner decides although their peers have not proven their addresses: in a
/// second, and at once. The backlog is not enough of a limit: a peer that resets each of its own
/// handshakes never fills it, and a decision can cost the owner a connection to a server.
const UNPROVEN_PER_SECOND: u64 = 1_000;
const UNPROVEN_AT_ONCE: u64 = 1_024;

impl Listeners {
    /// Adds a listener.
    pub(crate) fn add(&mut self, listen: Listen) -> Result<ListenerId, ListenError> {
        let is_taken = self
            .slots
            .iter()
            .filter_map(|slot| slot.listen)
            .any(|other| (other.port, other.address) == (listen.port, listen.address));
        if is_taken {
            return Err(ListenError::InUse(listen.port));
        }
        let free = |slot: &Slot| slot.listen.is_none() && slot.half_open == 0;
        let place = self.slots.iter().position(free).unwrap_or(self.slots.len());
        if place >= MAX_LISTENERS {
            return Err(ListenError::TooMany);
        }
        let slot = Slot {
            listen: Some(listen),
            half_open: 0,
            unproven: RateLimit::new(UNPROVEN_PER_SECOND, UNPROVEN_AT_ONCE),
        };
        if place == self.slots.len() {
            self.slots.push(slot);
        } else {
            self.slots[place] = slot;
        }
        let number = u16::try_from(place).map_err(|_| ListenError::TooMany)?;
        let entry = (listen.port, number);
        let at = self.by_port.partition_point(|other| *other < entry);
        self.by_port.insert(at, entry);
        Ok(ListenerId(number))
    }

    /// Ends a listener. Connections in handshakes go on.
    pub(crate) fn remove(&mut self, id: ListenerId) {
        if let Some(slot) = self.slots.get_mut(usize::from(id.0)) {
            slot.listen = None;
            self.by_port.retain(|(_, number)| *number != id.0);
        }
    }

    /// The listener for connections to an address: one of exactly this address before one of all.
    pub(crate) fn find(&self, local: SocketAddr) -> Option<ListenerId> {
        let from = self
            .by_port
            .partition_point(|(port, _)| *port < local.port());
        let of_port = self.by_port[from..]
            .iter()
            .take_while(|(port, _)| *port == local.port());
        let mut found = None;
        for (_, number) in of_port {
            let listen = self.slots[usize::from(*number)].listen?;
            match listen.address {
                Some(address) if address == local.ip() => return Some(ListenerId(*number)),
                Some(_) => {}
                None => found = Some(ListenerId(*number)),
            }
        }
        found
    }

    /// Counts a handshake; false if there are too many, or too many in a short time.
    pub(crate) fn begin(&mut self, id: ListenerId, now: Instant) -> bool {
        let Some(slot) = self.slots.get_mut(usize::from(id.0)) else {
            return false;
        };
        let has_room = slot.listen.is_some_and(|listen| {
            let has_room = slot.half_open < listen.backlog;
            has_room && (!listen.has_cookies || slot.unproven.allows(now))
        });
        slot.half_open += u32::from(has_room);
        has_room
    }

    /// The listener, if it answers SYNs beyond its backlog with cookies.
    pub(crate) fn with_cookies(&self, id: ListenerId) -> Option<Listen> {
        let slot = self.slots.get(usize::from(id.0))?;
        slot.listen.filter(|listen| listen.has_cookies)
    }

    /// A handshake has ended.
    pub(crate) fn end(&mut self, id: ListenerId) {
        if let Some(slot) = self.slots.get_mut(usize::from(id.0)) {
            slot.half_open = slot.half_open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    fn on(address: Option<&str>, port: u16) -> Listen {
        Listen {
            address: address.map(|one| one.parse().unwrap()),
            port,
            backlog: 2,
            has_cookies: false,
            buffer: 65_536,
        }
    }

    #[test]
    fn the_exact_address_goes_before_all_addresses() {
        let mut listeners = Listeners::default();
        let all = listeners.add(on(None, 80)).unwrap();
        let one = listeners.add(on(Some("192.0.2.1"), 80)).unwrap();
        let other = listeners.add(on(Some("2001:db8::1"), 81)).unwrap();
        for (local, expected) in [
            ("192.0.2.1:80", Some(one)),
            ("192.0.2.2:80", Some(all)),
            ("[2001:db8::1]:80", Some(all)),
            ("[2001:db8::1]:81", Some(other)),
            ("192.0.2.1:81", None),
            ("192.0.2.1:82", None),
        ] {
            assert_eq!(listeners.find(local.parse().unwrap()), expected, "{local}");
        }
        listeners.remove(one);
        assert_eq!(listeners.find("192.0.2.1:80".parse().unwrap()), Some(all));
    }

    #[test]
    fn two_listeners_do_not_share_a_port() {
        let mut listeners = Listeners::default();
        listeners.add(on(None, 80)).unwrap();
        assert_eq!(listeners.add(on(None, 80)), Err(ListenError::InUse(80)));
        for port in 1000..5095 {
            listeners.add(on(None, port)).unwrap();
        }
        assert_eq!(listeners.add(on(None, 9)), Err(ListenError::TooMany));
    }

    #[test]
    fn the_backlog_counts_handshakes() {
        let mut listeners = Listeners::default();
        let id = listeners.add(on(None, 80)).unwrap();
        assert!(listeners.begin(id, Instant(0)));
        assert!(listeners.begin(id, Instant(0)));
        assert!(!listeners.begin(id, Instant(0)));
        listeners.end(id);
        assert!(listeners.begin(id, Instant(0)));
        // The place of a listener that has ended is free when its handshakes have ended.
        listeners.remove(id);
        assert!(!listeners.begin(id, Instant(0)));
        assert_ne!(listeners.add(on(None, 80)), Ok(id));
        listeners.end(id);
        listeners.end(id);
        assert_eq!(listeners.add(on(None, 81)), Ok(id));
    }

    /// Handshakes that end at once do not fill the backlog.
    #[test]
    fn with_cookies_handshakes_have_a_rate() {
        let mut listeners = Listeners::default();
        let with = |has_cookies, port| Listen {
            has_cookies,
            ..on(None, port)
        };
        let limited = listeners.add(with(true, 80)).unwrap();
        let unlimited = listeners.add(with(false, 81)).unwrap();
        let mut begun = |id, now| {
            let begins = |_: &u32| {
                let has_begun = listeners.begin(id, Instant(now));
                if has_begun {
                    listeners.end(id);
                }
                has_begun
            };
            (0..5_000).filter(begins).count()
        };
        assert_eq!(begun(limited, 1_000_000), 1_024);
        assert_eq!(begun(limited, 1_500_000), 500);
        assert_eq!(begun(limited, 9_000_000), 1_024);
        assert_eq!(begun(unlimited, 1_000_000), 5_000);
    }
}
