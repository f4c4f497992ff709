//! Addresses of interfaces, as `RTM_NEWADDR` describes them.
//!
//! Source: rtnetlink(7), include/uapi/linux/if_addr.h.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::family::Family;
use crate::message::{attributes, ip, number};

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// Its network. If the address has a peer, the network is the peer's and need not contain the
    /// address.
    pub network: IpNet,
    /// Where the address is valid.
    pub scope: Scope,
    /// State and properties.
    pub flags: AddressFlags,
}

/// Where an address is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everywhere.
    Global,
    /// In the site (`fec0::/10`).
    Site,
    /// On the link.
    Link,
    /// Inside the host.
    Host,
    /// A scope that the administrator has numbered.
    Other(u8),
}

/// Flags of an address (`IFA_F_*`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddressFlags(pub(crate) u32);

impl AddressFlags {
    /// Whether the host may not use the address yet, because the detection of duplicates runs.
    #[must_use]
    pub const fn is_tentative(self) -> bool {
        // An optimistic address is used during the detection (RFC 4429).
        self.has(libc::IFA_F_TENTATIVE) && !self.has(libc::IFA_F_OPTIMISTIC)
    }

    /// Whether another host has the address, so that this one may not use it.
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        self.has(libc::IFA_F_DADFAILED)
    }

    /// Whether new connections should have another source address. The address remains usable.
    #[must_use]
    pub const fn is_deprecated(self) -> bool {
        self.has(libc::IFA_F_DEPRECATED)
    }

    const fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }
}

impl Address {
    /// Reads a message (`struct ifaddrmsg` and attributes): the index of the interface, and the
    /// address. `None` if it is of another family.
    pub(crate) fn read(message: &[u8]) -> Option<(u32, Self)> {
        let (fields, rest) = message.split_first_chunk::<8>()?;
        let [family, prefix_len, flags, scope, i0, i1, i2, i3] = *fields;
        let family = Family::from_number(family)?;
        let mut flags = u32::from(flags);
        // IFA_ADDRESS is the peer's if there is a peer, and IFA_LOCAL is always the own one.
        let (mut own, mut peer) = (None, None);
        for (kind, value) in attributes(rest) {
            match kind {
                libc::IFA_LOCAL => own = ip(value),
                libc::IFA_ADDRESS => peer = ip(value),
                libc::IFA_FLAGS => flags = number(value).unwrap_or(flags),
                _ => {}
            }
        }
        let address = own.or(peer)?;
        let network = IpNet::new(peer.unwrap_or(address), prefix_len).ok()?;
        if Family::of(address) != family {
            return None;
        }
        let address = Self {
            address,
            network: network.trunc(),
            scope: Scope::from_number(scope),
            flags: AddressFlags(flags),
        };
        Some((u32::from_ne_bytes([i0, i1, i2, i3]), address))
    }
}

impl Scope {
    const fn from_number(number: u8) -> Self {
        match number {
            libc::RT_SCOPE_UNIVERSE => Self::Global,
            libc::RT_SCOPE_SITE => Self::Site,
            libc::RT_SCOPE_LINK => Self::Link,
            libc::RT_SCOPE_HOST => Self::Host,
            other => Self::Other(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Attributes, body};

    /// Reads a message for interface 3 with a prefix of 24, flag 0x80 and a scope.
    fn read(family: u8, scope: u8, attributes: Attributes<'_>) -> Option<(u32, Address)> {
        let mut fields = vec![family, 24, 0x80, scope];
        fields.extend(3_u32.to_ne_bytes());
        Address::read(&body(&fields, attributes))
    }

    #[test]
    fn an_address_with_a_peer_is_in_the_network_of_the_peer() {
        let (index, found) = read(2, 253, &[(1, &[10, 9, 0, 2]), (2, &[10, 0, 0, 1])]).unwrap();
        assert_eq!(index, 3);
        let expected = Address {
            address: [10, 0, 0, 1].into(),
            network: "10.9.0.0/24".parse().unwrap(),
            scope: Scope::Link,
            flags: AddressFlags(0x80),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_longer_flags_replace_the_short_ones() {
        let address = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let flags = 0x260_u32.to_ne_bytes();
        let (_, found) = read(10, 0, &[(1, &address), (8, &flags)]).unwrap();
        assert_eq!(found.address, "fd00::1".parse::<IpAddr>().unwrap());
        assert_eq!(found.network, "fd00::/24".parse().unwrap());
        assert_eq!(found.flags, AddressFlags(0x260));
        assert!(found.flags.is_tentative() && found.flags.is_deprecated());
        assert!(!AddressFlags(0x44).is_tentative() && AddressFlags(0x48).is_duplicate());
    }

    #[test]
    fn messages_that_do_not_fit_their_family_are_not_read() {
        assert_eq!(read(2, 0, &[]), None);
        assert_eq!(read(10, 0, &[(1, &[10, 0, 0, 1])]), None);
        assert_eq!(read(7, 0, &[(1, &[10, 0, 0, 1])]), None);
        assert_eq!(Address::read(&[2; 7]), None);
    }
}
