//! Frames byte by byte.

extern crate std;

use super::*;
use std::string::ToString;

const TO: Mac = Mac([0x02, 0, 0, 0, 0, 0x0b]);
const FROM: Mac = Mac([0x02, 0, 0, 0, 0, 0x0a]);
const MACS: [u8; 12] = [0x02, 0, 0, 0, 0, 0x0b, 0x02, 0, 0, 0, 0, 0x0a];

/// VLAN 7 of a provider, priority 5; VLAN 9 of its customer.
const OUTER: Tag = Tag {
    kind: EtherType::PROVIDER_VLAN,
    control: 0xa007,
};
const INNER: Tag = Tag::vlan(9);

const fn header(tags: Tags, ether_type: EtherType) -> Header {
    Header {
        destination: TO,
        source: FROM,
        tags,
        ether_type,
    }
}

const TWO: Tags = Tags::Two {
    outer: OUTER,
    inner: INNER,
};

#[test]
fn frames_with_up_to_two_tags() {
    for (name, behind_macs, expected) in [
        (
            "plain",
            &[0x08, 0x00][..],
            header(Tags::None, EtherType::IPV4),
        ),
        (
            "802.3 length",
            &[0x00, 0x26],
            header(Tags::None, EtherType(38)),
        ),
        (
            "one tag",
            &[0x81, 0x00, 0x00, 0x09, 0x86, 0xdd],
            header(Tags::One(INNER), EtherType::IPV6),
        ),
        (
            "two tags",
            &[0x88, 0xa8, 0xa0, 0x07, 0x81, 0x00, 0x00, 0x09, 0x08, 0x06],
            header(TWO, EtherType::ARP),
        ),
    ] {
        let bytes = [&MACS, behind_macs, b"payload"].concat();
        let (header, payload) = Header::parse(&bytes).expect(name);
        assert_eq!(header, expected, "{name}");
        assert_eq!(payload, b"payload", "{name}");
        let mut buffer = [0xee; 32];
        let length = header.emit(&mut buffer).expect(name);
        assert_eq!(&buffer[..length], &bytes[..bytes.len() - 7], "{name}");
        assert_eq!(buffer[length], 0xee, "{name}");
        assert_eq!(header.len_bytes(), length, "{name}");
        let small = header.emit(&mut buffer[..length - 1]);
        assert_eq!(small, Err(EmitError::BufferTooSmall { needed: length }));
    }
}

#[test]
fn bad_frames_have_reasons() {
    use Malformed::{EthernetSource, EthernetTags, EthernetTruncated};
    let three = [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 8, 0];
    for (name, behind_macs, reason) in [
        ("nothing behind the addresses", &[][..], EthernetTruncated),
        ("half a type", &[8], EthernetTruncated),
        ("cut in a tag", &[0x81, 0, 0, 1, 8], EthernetTruncated),
        ("cut in the inner tag", &three[..6], EthernetTruncated),
        ("three tags", &three, EthernetTags),
    ] {
        let bytes = [&MACS, behind_macs].concat();
        assert_eq!(Header::parse(&bytes), Err(reason), "{name}");
    }
    let mut bytes = [&MACS[..], &[8, 0]].concat();
    bytes[6] = 0x03;
    assert_eq!(Header::parse(&bytes), Err(EthernetSource));
}

#[test]
fn tags_are_taken_apart() {
    assert_eq!((OUTER.vlan_id(), OUTER.priority()), (7, 5));
    assert_eq!((INNER.vlan_id(), INNER.priority()), (9, 0));
    assert_eq!(Tag::vlan(0xffff).control, 0x0fff);
    assert_eq!(Tags::default().len_bytes(), 0);
}

#[test]
fn groups_of_stations() {
    assert!(Mac::BROADCAST.is_group());
    assert!(!FROM.is_group());
    let all_hosts = Mac::of_ipv4_multicast(Ipv4Addr::new(224, 129, 2, 3));
    assert_eq!(all_hosts.to_string(), "01:00:5e:01:02:03");
    let solicited = "ff02::1:ff28:9c5a".parse().unwrap();
    let solicited = Mac::of_ipv6_multicast(solicited);
    assert_eq!(solicited.to_string(), "33:33:ff:28:9c:5a");
    assert!(all_hosts.is_group() && solicited.is_group());
}
