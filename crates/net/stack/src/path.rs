//! MTUs of paths to other hosts that are smaller than that of the interface, as routers or the
//! kernel report them.
//!
//! Spec: RFC 1191 §6.3 and RFC 8201 §5.2: an MTU that one connection learns holds for all
//! connections to the host, so that the next ones do not wait for the same error.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use saiga_tcp::{Instant, Micros};

/// How long an MTU holds (`net.ipv4.route.mtu_expires`).
const LIFETIME: Micros = Micros::from_secs(600);
/// Most hosts. Others find out again.
const MOST: usize = 1024;
/// Bytes of the IP and TCP headers.
const HEADERS_V4: u32 = 40;
const HEADERS_V6: u32 = 60;

/// What is known of paths.
#[derive(Debug, Default)]
pub(crate) struct Paths(BTreeMap<IpAddr, (u16, Instant)>);

impl Paths {
    /// Segments of `size` bytes without their headers reach a host, and larger ones do not.
    pub(crate) fn learn(&mut self, host: IpAddr, size: u16, now: Instant) {
        if self.0.len() >= MOST {
            self.0.retain(|_, (_, until)| *until > now);
        }
        if size > 0 && (self.0.len() < MOST || self.0.contains_key(&host)) {
            self.0.insert(host, (size, now + LIFETIME));
        }
    }

    /// The size of segments to a host, if the path is known.
    pub(crate) fn to(&self, host: IpAddr, now: Instant) -> Option<u16> {
        let (size, until) = self.0.get(&host)?;
        (*until > now).then_some(*size)
    }
}

/// The segment size of an MTU; 0 if the MTU is none.
pub(crate) fn segment_size(mtu: u32, is_v6: bool) -> u16 {
    let headers = if is_v6 { HEADERS_V6 } else { HEADERS_V4 };
    u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn a_path_is_known_for_ten_minutes_and_not_for_every_host() {
        let host = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(number));
        let at = |seconds| Instant(0) + Micros::from_secs(seconds);
        let mut paths = Paths::default();
        for number in 0..2_000 {
            paths.learn(host(number), 1_360, at(0));
        }
        paths.learn(host(7), 1_260, at(1));
        assert_eq!(paths.to(host(7), at(1)), Some(1_260));
        assert_eq!(paths.to(host(8), at(599)), Some(1_360));
        assert_eq!(paths.to(host(8), at(600)), None);
        assert_eq!(paths.to(host(1_999), at(1)), None);
        paths.learn(host(1_999), 1_360, at(600));
        assert_eq!(paths.to(host(1_999), at(601)), Some(1_360));
    }
}
