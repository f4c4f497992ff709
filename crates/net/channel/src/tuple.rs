//! The two addresses of a TCP connection, as seen by one of its ends.

use crate::sys::{self, Fd};

/// Address and port. IPv4 is kept as v4-mapped IPv6, so that both families compare alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// IPv6 address, or IPv4 behind `::ffff:`.
    pub address: [u8; 16],
    /// Port in host order.
    pub port: u16,
}

/// Both addresses of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuple {
    /// Address of this end.
    pub local: Endpoint,
    /// Address of the other end.
    pub remote: Endpoint,
}

const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

impl Endpoint {
    /// Parses a sockaddr of family AF_INET or AF_INET6.
    #[must_use]
    pub fn parse(addr: &[u8]) -> Option<Endpoint> {
        let family = u16::from_ne_bytes([*addr.first()?, *addr.get(1)?]);
        let port = u16::from_be_bytes([*addr.get(2)?, *addr.get(3)?]);
        let mut address = [0; 16];
        match i32::from(family) {
            libc::AF_INET => {
                address[..12].copy_from_slice(&MAPPED);
                address[12..].copy_from_slice(addr.get(4..8)?);
            }
            libc::AF_INET6 => address.copy_from_slice(addr.get(8..24)?),
            _ => return None,
        }
        Some(Endpoint { address, port })
    }

    /// The IPv4 address, if this is one.
    #[must_use]
    pub fn v4(&self) -> Option<[u8; 4]> {
        let [.., a, b, c, d] = self.address;
        (self.address[..12] == MAPPED).then_some([a, b, c, d])
    }

    fn is_loopback(&self) -> bool {
        const LOOPBACK: [u8; 16] = core::net::Ipv6Addr::LOCALHOST.octets();
        self.address == LOOPBACK || self.v4().is_some_and(|v4| v4[0] == 127)
    }
}

impl Tuple {
    /// The addresses of a connected socket; `None` if it is not a connected TCP/IP socket.
    #[must_use]
    pub fn of(fd: Fd) -> Option<Tuple> {
        let one = |peer| {
            let mut buffer = [0; 128];
            let len = sys::name(fd, peer, &mut buffer).ok()?;
            Endpoint::parse(buffer.get(..len)?)
        };
        Some(Tuple {
            local: one(false)?,
            remote: one(true)?,
        })
    }

    /// The same connection seen from the other end.
    #[must_use]
    pub fn reversed(self) -> Tuple {
        Tuple {
            local: self.remote,
            remote: self.local,
        }
    }

    /// Whether both ends are addresses of this host: the same address, or loopback.
    #[must_use]
    pub fn is_within_host(&self) -> bool {
        self.local.address == self.remote.address || self.remote.is_loopback()
    }

    /// Whether this end makes the offer: it has the lower address and port.
    #[must_use]
    pub fn offers(&self) -> bool {
        self.local < self.remote
    }

    /// The tuple as bytes, the offering end first, so that both ends get the same bytes.
    #[must_use]
    pub fn key(&self) -> [u8; 36] {
        let (a, b) = if self.offers() {
            (self.local, self.remote)
        } else {
            (self.remote, self.local)
        };
        let mut out = [0; 36];
        out[..16].copy_from_slice(&a.address);
        out[16..18].copy_from_slice(&a.port.to_be_bytes());
        out[18..34].copy_from_slice(&b.address);
        out[34..].copy_from_slice(&b.port.to_be_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_one_address_are_within_the_host() {
        let end = |text: &str| Endpoint {
            address: match text.parse() {
                Ok(core::net::IpAddr::V4(v4)) => v4.to_ipv6_mapped().octets(),
                Ok(core::net::IpAddr::V6(v6)) => v6.octets(),
                Err(_) => [0; 16],
            },
            port: 1,
        };
        for (local, remote, within) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("10.0.0.5", "127.9.9.9", true),
            ("::1", "::1", true),
            ("10.0.0.5", "10.0.0.5", true),
            ("10.0.0.5", "10.0.0.6", false),
            ("127.0.0.1", "10.0.0.6", false),
            ("2001:db8::1", "2001:db8::2", false),
            ("::1", "::2", false),
        ] {
            let tuple = Tuple {
                local: end(local),
                remote: end(remote),
            };
            assert_eq!(tuple.is_within_host(), within, "{local} {remote}");
        }
    }
}
