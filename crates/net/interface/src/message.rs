//! Netlink messages and their attributes: the form of everything that is said to the kernel and by
//! the kernel.
//!
//! Spec: netlink(7), include/uapi/linux/netlink.h. Numbers are in the byte order of the host.
//! Unknown attributes are skipped, so that a newer kernel can add some. Bytes that are not a
//! message or an attribute end the list.

use std::net::IpAddr;

use netlink_packet_core::{
    DefaultNla, Emitable as _, NLA_HEADER_SIZE, NLM_F_REQUEST, NetlinkBuffer, NlasIterator,
};

/// Length of the header of a message (`struct nlmsghdr`).
const HEADER_BYTES: usize = 16;
/// Messages begin at multiples of this number (`NLMSG_ALIGNTO`).
const ALIGNMENT: usize = 4;

/// The messages of a datagram.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = NetlinkBuffer<&[u8]>> {
    std::iter::from_fn(move || {
        let message = NetlinkBuffer::new_checked(bytes).ok()?;
        let length = (message.length() as usize).next_multiple_of(ALIGNMENT);
        bytes = bytes.get(length..).unwrap_or_default();
        Some(message)
    })
}

/// The types and values of attributes.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes)
        .map_while(Result::ok)
        .filter_map(|attribute| {
            let (kind, length) = (attribute.kind(), usize::from(attribute.length()));
            let value = attribute.into_inner().get(NLA_HEADER_SIZE..length)?;
            Some((kind, value))
        })
}

/// The number in an attribute.
pub(crate) fn number(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(value.try_into().ok()?))
}

/// The IP address in an attribute.
pub(crate) fn ip(value: &[u8]) -> Option<IpAddr> {
    netlink_packet_core::parse_ip(value).ok()
}

/// The string in an attribute, without the byte 0 that may end it.
pub(crate) fn string(value: &[u8]) -> &[u8] {
    value.strip_suffix(&[0]).unwrap_or(value)
}

/// A request to the kernel.
#[derive(Debug)]
pub(crate) struct Request(Vec<u8>);

impl Request {
    /// A request with the flags beside `NLM_F_REQUEST` and the fixed fields of its type.
    pub(crate) fn new(message_type: u16, flags: u16, fields: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.extend_from_slice(fields);
        let mut header = NetlinkBuffer::new(&mut bytes);
        header.set_message_type(message_type);
        header.set_flags(NLM_F_REQUEST | flags);
        Self(bytes)
    }

    /// Adds an attribute.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        let attribute = DefaultNla::new(kind, value.to_vec());
        let start = self.0.len();
        self.0.resize(start + attribute.buffer_len(), 0);
        attribute.emit(&mut self.0[start..]);
        self
    }

    /// Adds an attribute that is an address.
    pub(crate) fn with_ip(self, kind: u16, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.with(kind, &address.octets()),
            IpAddr::V6(address) => self.with(kind, &address.octets()),
        }
    }

    /// The bytes of the request. Answers will have its sequence number.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let mut header = NetlinkBuffer::new(&mut self.0);
        header.set_length(length);
        header.set_sequence_number(sequence);
        self.0
    }
}

/// Types and values of attributes, for tests.
#[cfg(test)]
pub(crate) type Attributes<'a> = &'a [(u16, &'a [u8])];

/// A message without its netlink header, for tests.
#[cfg(test)]
pub(crate) fn body(fields: &[u8], attributes: Attributes<'_>) -> Vec<u8> {
    let add = |request: Request, (kind, value): &(u16, &[u8])| request.with(*kind, value);
    let request = attributes.iter().fold(Request::new(0, 0, fields), add);
    request.finish(0).split_off(HEADER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two attributes, one of them padded, as the kernel lays them out on a little-endian host.
    #[test]
    fn a_request_has_the_layout_of_netlink() {
        let request = Request::new(0x1c, 0x400, &[2, 0, 0, 0]).with(2, &[1, 2, 3, 4, 5, 6]);
        let bytes = request.with_ip(1, [10, 0, 0, 1].into()).finish(7);
        #[rustfmt::skip]
        let expected = [
            40, 0, 0, 0, 0x1c, 0, 0x01, 0x04, 7, 0, 0, 0, 0, 0, 0, 0,
            2, 0, 0, 0,
            10, 0, 2, 0, 1, 2, 3, 4, 5, 6, 0, 0,
            8, 0, 1, 0, 10, 0, 0, 1,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn messages_and_attributes_are_read_to_the_first_wrong_length() {
        let mut bytes = Request::new(1, 0, &[]).with(5, b"ab").finish(1);
        bytes.extend(Request::new(2, 0, &[]).finish(2));
        // Its length is greater than the rest, and less than a header.
        for wrong in [17_u32, 15] {
            let mut all = bytes.clone();
            all.extend(wrong.to_ne_bytes());
            all.extend([0; 12]);
            let types: Vec<u16> = messages(&all).map(|one| one.message_type()).collect();
            assert_eq!(types, [1, 2], "{wrong}");
        }
        let first = messages(&bytes).next().unwrap();
        let found: Vec<_> = attributes(first.payload()).collect();
        assert_eq!(found, [(5, &b"ab"[..])]);
        for wrong in [3_u8, 9] {
            let bytes = [8, 0, 1, 0, 1, 2, 3, 4, wrong, 0, 2, 0, 1, 2, 3, 4];
            let found: Vec<_> = attributes(&bytes).collect();
            assert_eq!(found, [(1, &[1, 2, 3, 4][..])], "{wrong}");
        }
    }

    /// The top bits of a type are flags: NLA_F_NESTED.
    #[test]
    fn flags_are_not_part_of_the_type() {
        let bytes = [4, 0, 18, 0x80];
        assert_eq!(attributes(&bytes).next(), Some((18, &[][..])));
    }

    #[test]
    fn values_of_another_length_are_not_read() {
        assert_eq!(number(&[1, 0, 0, 0]), Some(1));
        assert_eq!(number(&[1, 0]), None);
        assert_eq!(ip(&[1, 2, 3]), None);
        assert_eq!(string(b"eth0\0"), b"eth0");
        assert_eq!(string(b"eth0"), b"eth0");
        assert_eq!(string(b""), b"");
    }
}
