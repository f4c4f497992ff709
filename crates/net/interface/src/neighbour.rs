//! Neighbours, as `RTM_NEWNEIGH` describes them.
//!
//! Source: rtnetlink(7), include/uapi/linux/neighbour.h; RFC 4861 §7.3.2 for the states. Entries
//! for multicast addresses (`NUD_NOARP`) and for proxies are left out: they need no resolution.

use std::net::IpAddr;

use saiga_wire::ethernet::Mac;

use crate::family::Family;
use crate::message::{attributes, ip};

/// A neighbour of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Index of the interface.
    pub interface: u32,
    /// IP address.
    pub address: IpAddr,
    /// MAC address, if the kernel would send to it.
    pub mac: Option<Mac>,
    /// What the kernel knows.
    pub state: NeighbourState,
}

/// What the kernel knows about a neighbour (`NUD_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeighbourState {
    /// Nothing: the entry was removed, or is new.
    Absent,
    /// The neighbour was asked and has not answered yet.
    Incomplete,
    /// The neighbour was there not long ago.
    Reachable,
    /// The neighbour was there some time ago.
    Stale,
    /// Stale and in use; the kernel will ask soon.
    Delay,
    /// The kernel asks whether the neighbour is still there.
    Probe,
    /// The neighbour has not answered.
    Failed,
    /// The administrator has set the MAC address; the kernel never asks.
    Permanent,
}

impl Neighbour {
    /// Reads a message (`struct ndmsg` and attributes). `None` if it is about something else, such
    /// as the forwarding table of a bridge (`AF_BRIDGE`).
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let (fields, rest) = message.split_first_chunk::<12>()?;
        let [family, _, _, _, i0, i1, i2, i3, s0, s1, flags, _] = *fields;
        let family = Family::from_number(family)?;
        let state = NeighbourState::from_number(u16::from_ne_bytes([s0, s1]))?;
        let (mut address, mut mac) = (None, None);
        for (kind, value) in attributes(rest) {
            match kind {
                libc::NDA_DST => address = ip(value),
                libc::NDA_LLADDR => mac = value.try_into().ok().map(Mac),
                _ => {}
            }
        }
        let address = address.filter(|address| Family::of(*address) == family)?;
        if flags & libc::NTF_PROXY != 0 {
            return None;
        }
        Some(Self {
            interface: u32::from_ne_bytes([i0, i1, i2, i3]),
            address,
            mac: mac.filter(|_| state.has_mac()),
            state,
        })
    }

    /// The neighbour after its entry was removed.
    pub(crate) fn removed(self) -> Self {
        Self {
            mac: None,
            state: NeighbourState::Absent,
            ..self
        }
    }
}

impl NeighbourState {
    /// The fields of messages have one bit for each state.
    const fn from_number(number: u16) -> Option<Self> {
        match number {
            libc::NUD_NONE => Some(Self::Absent),
            libc::NUD_INCOMPLETE => Some(Self::Incomplete),
            libc::NUD_REACHABLE => Some(Self::Reachable),
            libc::NUD_STALE => Some(Self::Stale),
            libc::NUD_DELAY => Some(Self::Delay),
            libc::NUD_PROBE => Some(Self::Probe),
            libc::NUD_FAILED => Some(Self::Failed),
            libc::NUD_PERMANENT => Some(Self::Permanent),
            _ => None,
        }
    }

    /// Whether the kernel sends to the MAC address in this state (`NUD_VALID`).
    const fn has_mac(self) -> bool {
        match self {
            Self::Reachable | Self::Stale | Self::Delay | Self::Probe | Self::Permanent => true,
            Self::Absent | Self::Incomplete | Self::Failed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::body;

    fn read(family: u8, state: u16, flags: u8) -> Option<Neighbour> {
        let mut fields = vec![family, 0, 0, 0];
        fields.extend(3_u32.to_ne_bytes());
        fields.extend(state.to_ne_bytes());
        fields.extend([flags, 1]);
        let attributes: [(u16, &[u8]); 2] = [(1, &[10, 0, 0, 2]), (2, &[2, 0, 0, 0, 0, 2])];
        Neighbour::read(&body(&fields, &attributes))
    }

    /// Every state, with the number in include/uapi/linux/neighbour.h.
    #[test]
    fn states_say_whether_the_mac_address_is_used() {
        let mac = Some(Mac([2, 0, 0, 0, 0, 2]));
        for (number, state, mac) in [
            (0x00, NeighbourState::Absent, None),
            (0x01, NeighbourState::Incomplete, None),
            (0x02, NeighbourState::Reachable, mac),
            (0x04, NeighbourState::Stale, mac),
            (0x08, NeighbourState::Delay, mac),
            (0x10, NeighbourState::Probe, mac),
            (0x20, NeighbourState::Failed, None),
            (0x80, NeighbourState::Permanent, mac),
        ] {
            let expected = Neighbour {
                interface: 3,
                address: [10, 0, 0, 2].into(),
                mac,
                state,
            };
            assert_eq!(read(2, number, 0), Some(expected), "{number:#x}");
        }
    }

    #[test]
    fn other_entries_are_left_out() {
        // NUD_NOARP, a proxy, a bridge's table, and an address of the other family.
        for (family, state, flags) in [(2, 0x40, 0), (2, 0, 8), (7, 2, 0), (10, 2, 0)] {
            assert_eq!(read(family, state, flags), None, "{family} {state} {flags}");
        }
        assert_eq!(Neighbour::read(&[2; 11]), None);
    }

    #[test]
    fn a_removed_neighbour_has_no_mac_address() {
        let removed = read(2, 2, 0).unwrap().removed();
        assert_eq!((removed.mac, removed.state), (None, NeighbourState::Absent));
    }
}
