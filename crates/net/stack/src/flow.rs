//! The identity of a connection, and the table that finds connections by it.
//!
//! The hash has a secret key: another host cannot choose addresses and ports that collide. The
//! table keeps 32 bits of the hash beside each number, so that a search seldom looks at a
//! connection that it does not want, and growth looks at none.

use core::net::SocketAddr;

use hashbrown::HashTable;
use saiga_wire::ip::{Addresses, Ports};
use siphasher::sip::SipHasher13;

/// Addresses and ports of a connection as this host's segments have them: the source is this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Address of this host, and of the peer.
    pub addresses: Addresses,
    /// Port of this host, and of the peer.
    pub ports: Ports,
}

impl Flow {
    /// The flow of a segment that has come.
    pub(crate) const fn of_arrival(addresses: Addresses, ports: Ports) -> Self {
        Self {
            addresses: addresses.reversed(),
            ports: ports.reversed(),
        }
    }

    /// Address and port of this host.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        SocketAddr::new(self.addresses.source(), self.ports.source)
    }

    /// Address and port of the peer.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.addresses.destination(), self.ports.destination)
    }

    /// Whether the flow is one of IPv6.
    pub(crate) const fn is_v6(&self) -> bool {
        matches!(self.addresses, Addresses::V6 { .. })
    }

    /// All fields, one after the other.
    #[inline]
    pub(crate) fn key(&self) -> Key {
        match self.addresses {
            Addresses::V4 {
                source,
                destination,
            } => Key::V4(joined(source.octets(), destination.octets(), self.ports)),
            Addresses::V6 {
                source,
                destination,
            } => Key::V6(joined(source.octets(), destination.octets(), self.ports)),
        }
    }
}

/// The bytes of a flow for a hash.
#[derive(Debug)]
pub(crate) enum Key {
    V4([u8; 12]),
    V6([u8; 36]),
}

impl Key {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
        }
    }
}

/// Two addresses of `N` bytes and the ports, in `M` bytes.
#[inline]
fn joined<const N: usize, const M: usize>(
    source: [u8; N],
    destination: [u8; N],
    ports: Ports,
) -> [u8; M] {
    let mut bytes = [0; M];
    bytes[..N].copy_from_slice(&source);
    bytes[N..2 * N].copy_from_slice(&destination);
    bytes[2 * N..2 * N + 2].copy_from_slice(&ports.source.to_be_bytes());
    bytes[2 * N + 2..].copy_from_slice(&ports.destination.to_be_bytes());
    bytes
}

/// Numbers of connections by flow.
pub(crate) struct FlowTable {
    entries: HashTable<Entry>,
    key: [u64; 2],
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u32,
    index: u32,
}

impl core::fmt::Debug for FlowTable {
    /// Does not show the key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FlowTable")
            .field("len", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl FlowTable {
    /// An empty table with room for `limit` flows. `key` holds 128 random bits.
    pub(crate) fn new(limit: u32, key: [u64; 2]) -> Self {
        Self {
            entries: HashTable::with_capacity(limit as usize),
            key,
        }
    }

    /// The number of `flow`. `is_same` compares the flow of a number.
    pub(crate) fn find(&self, flow: &Flow, is_same: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.hash(flow);
        let found = self.entries.find(spread(hash), |entry| {
            entry.hash == hash && is_same(entry.index)
        });
        found.map(|entry| entry.index)
    }

    /// Adds a flow that the table does not have.
    pub(crate) fn insert(&mut self, flow: &Flow, index: u32) {
        let hash = self.hash(flow);
        let entry = Entry { hash, index };
        self.entries
            .insert_unique(spread(hash), entry, |entry| spread(entry.hash));
    }

    /// Removes the flow with a number.
    pub(crate) fn remove(&mut self, flow: &Flow, index: u32) {
        let hash = spread(self.hash(flow));
        let found = self.entries.find_entry(hash, |entry| entry.index == index);
        if let Ok(entry) = found {
            entry.remove();
        }
    }

    /// A hash of a flow that no other host can predict.
    #[expect(clippy::cast_possible_truncation, reason = "the low half is enough")]
    pub(crate) fn hash(&self, flow: &Flow) -> u32 {
        let hasher = SipHasher13::new_with_keys(self.key[0], self.key[1]);
        // The compiler knows both lengths, and unrolls the rounds.
        let hash = match flow.key() {
            Key::V4(bytes) => hasher.hash(&bytes),
            Key::V6(bytes) => hasher.hash(&bytes),
        };
        hash as u32
    }
}

/// The table needs 64 bits: the low ones choose a place, and the high ones a tag.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::{Ipv4Addr, Ipv6Addr};

    fn v4(port: u16) -> Flow {
        Flow {
            addresses: Addresses::V4 {
                source: Ipv4Addr::new(192, 0, 2, 1),
                destination: Ipv4Addr::new(198, 51, 100, 2),
            },
            ports: Ports {
                source: 5432,
                destination: port,
            },
        }
    }

    #[test]
    fn the_key_holds_every_field() {
        assert_eq!(
            v4(0x1234).key().bytes(),
            [192, 0, 2, 1, 198, 51, 100, 2, 0x15, 0x38, 0x12, 0x34]
        );
        let v6 = Flow {
            addresses: Addresses::V6 {
                source: Ipv6Addr::LOCALHOST,
                destination: Ipv6Addr::UNSPECIFIED,
            },
            ..v4(1)
        };
        assert_eq!(v6.key().bytes().len(), 36);
        assert_eq!(v6.key().bytes()[15], 1);
    }

    #[test]
    fn flows_are_found_until_they_are_removed() {
        let mut table = FlowTable::new(10, [1, 2]);
        let flows: Vec<Flow> = (0..1000).map(v4).collect();
        for (index, flow) in (0..).zip(&flows) {
            table.insert(flow, index);
        }
        let find = |table: &FlowTable, flow: &Flow| {
            table.find(flow, |index| flows[index as usize] == *flow)
        };
        for (index, flow) in (0..).zip(&flows) {
            assert_eq!(find(&table, flow), Some(index));
        }
        for index in (0..1000).step_by(2) {
            table.remove(&flows[index], u32::try_from(index).unwrap());
        }
        for (index, flow) in (0..).zip(&flows) {
            assert_eq!(find(&table, flow), (index % 2 == 1).then_some(index));
        }
        assert_eq!(find(&table, &v4(2000)), None);
    }
}
