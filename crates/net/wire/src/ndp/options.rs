//! The options of neighbour discovery messages.
//!
//! Spec: RFC 4861 §4.6. Each option says its length in units of 8 bytes. Unknown options are
//! skipped.

use crate::Malformed;
use crate::bytes::{get_ipv6, get_u32, put};
use crate::ethernet::Mac;
use core::net::Ipv6Addr;

pub(super) const SOURCE_LINK: u8 = 1;
pub(super) const TARGET_LINK: u8 = 2;
const PREFIX: u8 = 3;
const MTU: u8 = 5;
const UNIT_BYTES: usize = 8;
const PREFIX_BYTES: usize = 32;

/// The options of a message; their lengths are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options<'a>(&'a [u8]);

/// A prefix of the link (RFC 4861 §4.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// The prefix; bits after its length have no meaning.
    pub address: Ipv6Addr,
    /// Length of the prefix, 0 to 128.
    pub length_bits: u8,
    /// Addresses with this prefix are on the link.
    pub on_link: bool,
    /// Hosts may form addresses with this prefix (RFC 4862).
    pub autonomous: bool,
    /// Time for which the prefix is valid; `u32::MAX` is infinite.
    pub valid_s: u32,
    /// Time for which addresses with this prefix are preferred; `u32::MAX` is infinite.
    pub preferred_s: u32,
}

impl<'a> Options<'a> {
    /// Checks the length of each option, and the contents of those that this crate reads.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (option, behind) = split_option(rest).ok_or(Malformed::NdpOption)?;
            let valid = match option[0] {
                SOURCE_LINK | TARGET_LINK | MTU => option.len() == UNIT_BYTES,
                PREFIX => option.len() == PREFIX_BYTES && option[2] <= 128,
                _ => true,
            };
            if !valid {
                return Err(Malformed::NdpOption);
            }
            rest = behind;
        }
        Ok(Self(bytes))
    }

    /// MAC address of the sender.
    #[must_use]
    pub fn source_mac(&self) -> Option<Mac> {
        self.units(SOURCE_LINK).next().map(mac)
    }

    /// MAC address of the target.
    #[must_use]
    pub fn target_mac(&self) -> Option<Mac> {
        self.units(TARGET_LINK).next().map(mac)
    }

    /// MTU of the link.
    #[must_use]
    pub fn mtu(&self) -> Option<u32> {
        self.units(MTU)
            .next()
            .map(|option: &[u8; 8]| get_u32(option, 4))
    }

    /// The prefixes of the link.
    pub fn prefixes(&self) -> impl Iterator<Item = Prefix> + use<'a> {
        self.units(PREFIX)
            .map(|option: &[u8; PREFIX_BYTES]| Prefix {
                address: get_ipv6(option, 16),
                length_bits: option[2],
                on_link: option[3] & 0x80 != 0,
                autonomous: option[3] & 0x40 != 0,
                valid_s: get_u32(option, 4),
                preferred_s: get_u32(option, 8),
            })
    }

    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The options of type `kind`, whose length is `N`.
    fn units<const N: usize>(&self, kind: u8) -> impl Iterator<Item = &'a [u8; N]> + use<'a, N> {
        let mut rest = self.0;
        let options = core::iter::from_fn(move || {
            let (option, behind) = split_option(rest)?;
            rest = behind;
            Some(option)
        });
        options
            .filter(move |option| option[0] == kind)
            .filter_map(|option| option.first_chunk())
    }
}

/// The first option and the bytes after it. `None` if its length is 0 or exceeds `bytes`.
fn split_option(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let units = usize::from(*bytes.get(1)?);
    bytes
        .split_at_checked(units * UNIT_BYTES)
        .filter(|_| units > 0)
}

fn mac(option: &[u8; UNIT_BYTES]) -> Mac {
    let [_, _, a, b, c, d, e, f] = *option;
    Mac([a, b, c, d, e, f])
}

/// An option with a MAC address.
pub(super) fn link_option(kind: u8, mac: Mac) -> [u8; UNIT_BYTES] {
    let mut option = [kind, 1, 0, 0, 0, 0, 0, 0];
    put(&mut option, 2, mac.0);
    option
}
