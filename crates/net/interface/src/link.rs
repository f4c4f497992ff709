//! Interfaces, as `RTM_NEWLINK` describes them.
//!
//! Source: rtnetlink(7), include/uapi/linux/if_link.h. A name is 1 to 15 bytes without `/`, `:` and
//! white space. It need not be UTF-8 and may hold control characters (net/core/dev.c,
//! `dev_valid_name`), so messages quote it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use saiga_wire::ethernet::{EtherType, Mac, Tag};

use crate::message::{attributes, number, string};

/// Attributes of a VLAN in `IFLA_INFO_DATA`.
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_PROTOCOL: u16 = 5;

/// The program in `IFLA_XDP`: where it runs by itself, in the driver, in the core, in the device.
const IFLA_XDP: u16 = 43;
const XDP_PROGRAMS: std::ops::RangeInclusive<u16> = 4..=7;

/// A network interface of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Index in the network namespace. It stays when the name changes.
    pub index: u32,
    /// Name, such as `eth0`.
    pub name: OsString,
    /// MAC address; `None` if this is not an Ethernet interface.
    pub mac: Option<Mac>,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Whether the interface is set up (`IFF_UP`).
    pub is_up: bool,
    /// Whether the link works (`IFF_LOWER_UP`).
    pub has_carrier: bool,
    /// Its kind in the words of `ip link add type`, such as `bond`; empty for a network card.
    pub kind: String,
    /// Number of the XDP program that is attached to it.
    pub xdp_program: Option<u32>,
    /// What makes the interface a VLAN; `None` if it is not one.
    pub vlan: Option<Vlan>,
}

/// The place of a VLAN interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// Index of the interface that carries the frames, in the same network namespace.
    pub parent: u32,
    /// Tag of the frames, of priority 0.
    pub tag: Tag,
}

impl Link {
    /// Reads a message (`struct ifinfomsg` and attributes). `None` if it is about something else,
    /// such as a port of a bridge (`AF_BRIDGE`).
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let (fields, rest) = message.split_first_chunk::<16>()?;
        let [family, _, t0, t1, i0, i1, i2, i3, f0, f1, f2, f3, ..] = *fields;
        if i32::from(family) != libc::AF_UNSPEC {
            return None;
        }
        let flags = u32::from_ne_bytes([f0, f1, f2, f3]);
        let has = |flag: libc::c_int| flags & flag.cast_unsigned() != 0;
        let is_ethernet = u16::from_ne_bytes([t0, t1]) == libc::ARPHRD_ETHER;
        let mut link = Self {
            index: u32::from_ne_bytes([i0, i1, i2, i3]),
            name: OsString::new(),
            mac: None,
            mtu: 0,
            is_up: has(libc::IFF_UP),
            has_carrier: has(libc::IFF_LOWER_UP),
            kind: String::new(),
            xdp_program: None,
            vlan: None,
        };
        let (mut parent, mut tag, mut is_elsewhere) = (None, None, false);
        for (kind, value) in attributes(rest) {
            match kind {
                libc::IFLA_IFNAME => OsStr::from_bytes(string(value)).clone_into(&mut link.name),
                libc::IFLA_MTU => link.mtu = number(value).unwrap_or(0),
                libc::IFLA_ADDRESS if is_ethernet => link.mac = value.try_into().ok().map(Mac),
                libc::IFLA_LINK => parent = number(value),
                libc::IFLA_LINKINFO => {
                    tag = vlan_tag(value);
                    let mut info = attributes(value);
                    let kind = info.find(|(kind, _)| *kind == libc::IFLA_INFO_KIND);
                    let kind = string(kind.map_or(&[], |(_, name)| name));
                    link.kind = String::from_utf8_lossy(kind).into_owned();
                }
                IFLA_XDP => {
                    let mut programs = attributes(value);
                    let program = programs.find(|(kind, _)| XDP_PROGRAMS.contains(kind));
                    link.xdp_program = program.and_then(|(_, id)| number(id));
                }
                // The index of the parent is one of another network namespace.
                libc::IFLA_LINK_NETNSID => is_elsewhere = true,
                _ => {}
            }
        }
        if !is_elsewhere {
            let vlan = parent.zip(tag);
            link.vlan = vlan.map(|(parent, tag)| Vlan { parent, tag });
        }
        Some(link)
    }
}

/// The tag of a VLAN interface, from `IFLA_LINKINFO`.
fn vlan_tag(info: &[u8]) -> Option<Tag> {
    let (mut is_vlan, mut data) = (false, None);
    for (kind, value) in attributes(info) {
        match kind {
            libc::IFLA_INFO_KIND => is_vlan = string(value) == b"vlan",
            libc::IFLA_INFO_DATA => data = Some(value),
            _ => {}
        }
    }
    let (mut id, mut protocol) = (None, None);
    for (kind, value) in attributes(data.filter(|_| is_vlan)?) {
        match kind {
            IFLA_VLAN_ID => id = value.try_into().ok().map(u16::from_ne_bytes),
            IFLA_VLAN_PROTOCOL => protocol = value.try_into().ok().map(u16::from_be_bytes),
            _ => {}
        }
    }
    Some(Tag {
        kind: EtherType(protocol?),
        ..Tag::vlan(id?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Attributes, body};

    /// Reads a message about interface 5.
    fn read(family: u8, hardware: u16, attributes: Attributes<'_>) -> Option<Link> {
        let mut fields = vec![family, 0];
        fields.extend(hardware.to_ne_bytes());
        fields.extend(5_u32.to_ne_bytes());
        fields.extend(0x1_0043_u32.to_ne_bytes());
        fields.extend([0; 4]);
        Link::read(&body(&fields, attributes))
    }

    /// `IFLA_LINKINFO` of VLAN 7 with the tag 0x88a8, as another kind if `kind` says so.
    fn info(kind: &[u8]) -> Vec<u8> {
        let data = body(&[], &[(1, &7_u16.to_ne_bytes()), (5, &[0x88, 0xa8])]);
        body(&[], &[(1, kind), (2, &data)])
    }

    #[test]
    fn a_vlan_interface_is_read() {
        let attributes: Attributes<'_> = &[
            (3, b"w\xff\x1b\0"),
            (1, &[2, 0, 0, 0, 0, 1]),
            (4, &1500_u32.to_ne_bytes()),
            (5, &3_u32.to_ne_bytes()),
            (18, &info(b"vlan\0")),
            (43, &body(&[], &[(2, &[2]), (4, &9_u32.to_ne_bytes())])),
        ];
        let vlan = Vlan {
            parent: 3,
            tag: Tag {
                kind: EtherType::PROVIDER_VLAN,
                control: 7,
            },
        };
        let expected = Link {
            index: 5,
            name: OsStr::from_bytes(b"w\xff\x1b").to_owned(),
            mac: Some(Mac([2, 0, 0, 0, 0, 1])),
            mtu: 1500,
            is_up: true,
            has_carrier: true,
            kind: "vlan".to_owned(),
            xdp_program: Some(9),
            vlan: Some(vlan),
        };
        assert_eq!(read(0, 1, attributes), Some(expected));
    }

    #[test]
    fn only_a_vlan_here_has_a_parent() {
        let (parent, vlan, vxlan) = (3_u32.to_ne_bytes(), info(b"vlan"), info(b"vxlan"));
        let cases: [(&str, Attributes<'_>); 4] = [
            ("a veth", &[(5, &parent)]),
            ("a VXLAN", &[(5, &parent), (18, &vxlan)]),
            (
                "a parent elsewhere",
                &[(5, &parent), (18, &vlan), (37, &[0; 4])],
            ),
            ("no parent", &[(18, &vlan)]),
        ];
        for (name, attributes) in cases {
            assert_eq!(read(0, 1, attributes).unwrap().vlan, None, "{name}");
        }
    }

    #[test]
    fn other_messages_and_other_hardware_are_told_apart() {
        // A port of a bridge.
        assert_eq!(read(7, 1, &[]), None);
        assert_eq!(Link::read(&[0; 15]), None);
        // ARPHRD_TUNNEL: an address of 6 bytes would be none of Ethernet.
        assert_eq!(read(0, 768, &[(1, &[1; 6])]).unwrap().mac, None);
    }
}
