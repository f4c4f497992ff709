//! The XDP program: frames of served endpoints go to the socket of their queue, all others to the
//! kernel.
//!
//! Source: Documentation/bpf/redirect.rst (`bpf_redirect_map`), linux/bpf.h (`struct xdp_md`). A
//! frame is redirected if it is of the VLAN and is TCP to a served endpoint, over IPv4 without
//! options and fragments, or over IPv6 without extension headers, and neither from a host that is
//! left to the kernel nor from a link-local address of IPv6. All headers then have fixed lengths:
//! every offset here is a constant, and the verifier sees each bound. Errors of routers about the
//! size of such packets to such hosts are redirected as well (RFC 1191, RFC 8201).
//!
//! Deliberately absent: checks of anything else in the headers, which are the stack's.

use std::net::{IpAddr, SocketAddr};

use saiga_bpf::{Assembler, Condition, Helper, Instruction, Label, Reg, Width};

/// Bytes of an endpoint in its map: an address as in [`address_key`], a port in network byte order,
/// and two zeros.
pub(super) const ENDPOINT_BYTES: usize = 20;
/// Bytes of an address in a map.
pub(super) const ADDRESS_BYTES: usize = 16;

/// Bytes of a connection in its map: the address of the other host, an address of this one, and
/// both ports in network byte order, this one's first.
pub(super) const FLOW_BYTES: usize = 36;

/// `XDP_PASS`: the kernel gets the frame.
pub(super) const PASS: u32 = 2;

/// The descriptors of the program's maps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maps {
    /// Served endpoints; the values have no meaning.
    pub(super) endpoints: i32,
    /// Hosts whose frames are left to the kernel; the values have no meaning.
    pub(super) hosts: i32,
    /// Connections beside those to endpoints, if there may be any; the values have no meaning.
    pub(super) flows: Option<i32>,
    /// The socket of each queue.
    pub(super) sockets: i32,
}

// Offsets in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE: i16 = 16;

// Offsets from the start of a frame without a tag.
const ETHER_TYPE: i16 = 12;
/// Priority and number of the VLAN, in a frame with a tag.
const TAG_CONTROL: i16 = 14;
const V4_VERSION: i16 = 14;
const V4_FRAGMENT: i16 = 20;
const V4_PROTOCOL: i16 = 23;
const V4_SOURCE: i16 = 26;
const V4_DESTINATION: i16 = 30;
const V4_PORTS: i16 = 34;
const V6_VERSION: i16 = 14;
const V6_NEXT_HEADER: i16 = 20;
const V6_SOURCE: i16 = 22;
const V6_DESTINATION: i16 = 38;
const V6_PORTS: i16 = 54;
/// The end of the TCP header without options.
const V4_HEADERS: i32 = 54;
const V6_HEADERS: i32 = 74;
const TAG_BYTES: i32 = 4;

// The stack: the key of the endpoint, and that of the host before it. With the other port behind
// the endpoint's, both are the key of the connection.
const ENDPOINT: i16 = -24;
const PORT: i16 = ENDPOINT + 16;
const HOST: i16 = -40;
const FLOW: i16 = HOST;

const TCP: u32 = 6;

/// Where a frame has the end that is served, or that of a connection of this host, and the other
/// one: offsets of their addresses and ports.
#[derive(Clone, Copy)]
struct Ends {
    own: (i16, i16),
    other: (i16, i16),
}

/// What differs between the versions of IP.
struct Version {
    ends: Ends,
    /// Loads the protocol into R3, or jumps.
    check: fn(&mut Assembler, Label),
    /// Stores the addresses, or jumps.
    load: fn(&mut Assembler, Ends, Label),
    /// Words of the address in the key of the endpoint that are zero for an unspecified one.
    unspecified: &'static [i16],
    /// The protocol of errors; type and code of that about the size of a packet.
    icmp: u32,
    too_big: u16,
    /// Bytes of the headers before the packet that an error quotes, and the end of its ports.
    quote: i32,
    quoted: i32,
}

const V4: Version = Version {
    ends: Ends {
        own: (V4_DESTINATION, V4_PORTS + 2),
        other: (V4_SOURCE, V4_PORTS),
    },
    check: check_v4,
    load: load_v4,
    unspecified: &[ENDPOINT + 12],
    icmp: 1,
    too_big: 0x0304,
    quote: 28,
    quoted: 38,
};

const V6: Version = Version {
    ends: Ends {
        own: (V6_DESTINATION, V6_PORTS + 2),
        other: (V6_SOURCE, V6_PORTS),
    },
    check: check_v6,
    load: load_v6,
    unspecified: &[ENDPOINT, ENDPOINT + 4, ENDPOINT + 8, ENDPOINT + 12],
    icmp: 58,
    too_big: 0x0200,
    quote: 48,
    quoted: 58,
};
/// The bits of a tag that are the number of the VLAN. 0 is none: the tag has a priority alone (IEEE
/// 802.1Q §9.6).
const VLAN_ID: u16 = 0x0fff;
/// Version 4, and a header of five words.
const V4_WITHOUT_OPTIONS: u32 = 0x45;
/// More fragments, or an offset: the frame holds a part of a packet.
const IS_FRAGMENT: u16 = 0x3fff;

/// A number of two bytes in a frame, as a load gives it.
fn be(number: u16) -> u32 {
    number.to_be().into()
}

/// The key of an address: IPv4 addresses are mapped into IPv6 (RFC 4291 §2.5.5.2), so the
/// unspecified addresses of both versions differ.
pub(super) fn address_key(address: IpAddr) -> [u8; ADDRESS_BYTES] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The key of an endpoint.
pub(super) fn endpoint_key(endpoint: SocketAddr) -> [u8; ENDPOINT_BYTES] {
    let mut key = [0; ENDPOINT_BYTES];
    let (address, port) = key.split_at_mut(ADDRESS_BYTES);
    address.copy_from_slice(&address_key(endpoint.ip()));
    for (to, from) in port.iter_mut().zip(endpoint.port().to_be_bytes()) {
        *to = from;
    }
    key
}

/// The key of a connection.
pub(super) fn flow_key(own: SocketAddr, other: SocketAddr) -> [u8; FLOW_BYTES] {
    let mut key = [0; FLOW_BYTES];
    let (host, endpoint) = key.split_at_mut(ADDRESS_BYTES);
    host.copy_from_slice(&address_key(other.ip()));
    endpoint.copy_from_slice(&endpoint_key(own));
    for (to, from) in endpoint.iter_mut().skip(18).zip(other.port().to_be_bytes()) {
        *to = from;
    }
    key
}

/// Returns the program for the frames of a VLAN, or for those without one; `None` would be an error
/// in this module.
pub(super) fn program(maps: Maps, vlan: Option<u16>) -> Option<Vec<Instruction>> {
    let mut code = Assembler::default();
    let [pass, untagged, v4, v6, served, redirect] = [(); 6].map(|()| code.label());
    code.load(Width::Word, Reg::R6, Reg::R1, RX_QUEUE);
    code.load(Width::Word, Reg::R7, Reg::R1, DATA);
    code.load(Width::Word, Reg::R8, Reg::R1, DATA_END);
    require(&mut code, V4_HEADERS, pass);
    code.load(Width::Half, Reg::R3, Reg::R7, ETHER_TYPE);
    let without_tag = if vlan.is_some() { pass } else { untagged };
    code.jump_if(Reg::R3, Condition::NotEqual, be(0x8100), without_tag);
    code.load(Width::Half, Reg::R3, Reg::R7, TAG_CONTROL);
    code.and(Reg::R3, be(VLAN_ID).cast_signed());
    code.jump_if(Reg::R3, Condition::NotEqual, be(vlan.unwrap_or(0)), pass);
    // From here on, R7 is where a frame without the tag would begin.
    code.add(Reg::R7, TAG_BYTES);
    require(&mut code, V4_HEADERS, pass);
    code.load(Width::Half, Reg::R3, Reg::R7, ETHER_TYPE);
    code.bind(untagged);
    code.jump_if(Reg::R3, Condition::Equal, be(0x0800), v4);
    code.jump_if(Reg::R3, Condition::Equal, be(0x86dd), v6);
    code.jump(pass);

    code.bind(v4);
    find(&mut code, maps, &V4, [pass, served, redirect]);
    code.bind(v6);
    require(&mut code, V6_HEADERS, pass);
    find(&mut code, maps, &V6, [pass, served, redirect]);

    code.bind(served);
    look_up(&mut code, maps.hosts, HOST);
    code.jump_if_null(Reg::R0, Condition::NotEqual, pass);
    code.bind(redirect);
    code.load_map(Reg::R1, maps.sockets);
    code.copy(Reg::R2, Reg::R6);
    // What the call returns if the queue has no socket.
    code.set(Reg::R3, PASS.cast_signed());
    code.call(Helper::RedirectMap);
    code.exit();

    code.bind(pass);
    code.set(Reg::R0, PASS.cast_signed());
    code.exit();
    code.finish()
}

/// Jumps to `served` for a frame to a served endpoint, to `redirect` for one of a known connection,
/// and to `pass` for others. An error about the size of a packet counts as an answer to it.
fn find(code: &mut Assembler, maps: Maps, version: &Version, [pass, served, redirect]: [Label; 3]) {
    let [tcp, stored] = [(); 2].map(|()| code.label());
    let ends = version.ends;
    (version.check)(code, pass);
    code.jump_if(Reg::R3, Condition::Equal, TCP, tcp);
    code.jump_if(Reg::R3, Condition::NotEqual, version.icmp, pass);
    // The message begins where a segment has the port of the other end.
    code.load(Width::Half, Reg::R3, Reg::R7, ends.other.1);
    code.jump_if(Reg::R3, Condition::NotEqual, be(version.too_big), pass);
    // From here on, R7 is where a frame with the quoted packet alone would begin.
    code.add(Reg::R7, version.quote);
    require(code, version.quoted, pass);
    (version.check)(code, pass);
    code.jump_if(Reg::R3, Condition::NotEqual, TCP, pass);
    let sent = Ends {
        own: ends.other,
        other: ends.own,
    };
    (version.load)(code, sent, pass);
    copy_ports(code, maps, sent, redirect);
    code.jump(stored);
    code.bind(tcp);
    (version.load)(code, ends, pass);
    copy_ports(code, maps, ends, redirect);
    code.bind(stored);
    look_up(code, maps.endpoints, ENDPOINT);
    code.jump_if_null(Reg::R0, Condition::NotEqual, served);
    zero(code, version.unspecified);
    look_up(code, maps.endpoints, ENDPOINT);
    code.jump_if_null(Reg::R0, Condition::NotEqual, served);
    code.jump(pass);
}

/// Jumps to `pass` unless the frame has `bytes` bytes from R7 on.
fn require(code: &mut Assembler, bytes: i32, pass: Label) {
    code.copy(Reg::R2, Reg::R7);
    code.add(Reg::R2, bytes);
    code.jump_if_greater(Reg::R2, Reg::R8, pass);
}

/// Loads the protocol of a packet of IPv4 that is whole and has no options; jumps to `pass` for
/// others.
fn check_v4(code: &mut Assembler, pass: Label) {
    code.load(Width::Byte, Reg::R3, Reg::R7, V4_VERSION);
    code.jump_if(Reg::R3, Condition::NotEqual, V4_WITHOUT_OPTIONS, pass);
    code.load(Width::Half, Reg::R3, Reg::R7, V4_FRAGMENT);
    code.jump_if(Reg::R3, Condition::CommonBit, be(IS_FRAGMENT), pass);
    code.load(Width::Byte, Reg::R3, Reg::R7, V4_PROTOCOL);
}

/// As [`check_v4`], of IPv6 without extension headers.
fn check_v6(code: &mut Assembler, pass: Label) {
    code.load(Width::Byte, Reg::R3, Reg::R7, V6_VERSION);
    code.and(Reg::R3, 0xf0);
    code.jump_if(Reg::R3, Condition::NotEqual, 0x60, pass);
    code.load(Width::Byte, Reg::R3, Reg::R7, V6_NEXT_HEADER);
}

/// Stores the addresses of a packet of IPv4.
fn load_v4(code: &mut Assembler, ends: Ends, _pass: Label) {
    for (key, address) in [(ENDPOINT, ends.own.0), (HOST, ends.other.0)] {
        let mapped = i32::from_ne_bytes([0, 0, 0xff, 0xff]);
        code.store_number(Width::Double, Reg::Stack, key, 0);
        code.store_number(Width::Word, Reg::Stack, key + 8, mapped);
        copy_word(code, key + 12, address);
    }
}

/// As [`load_v4`], of IPv6; jumps to `pass` if the other host has a link-local address: the
/// gateway's own connection to the server cannot have such a source.
fn load_v6(code: &mut Assembler, ends: Ends, pass: Label) {
    code.load(Width::Half, Reg::R3, Reg::R7, ends.other.0);
    code.and(Reg::R3, be(0xffc0).cast_signed());
    code.jump_if(Reg::R3, Condition::Equal, be(0xfe80), pass);
    // In words, because that is how the addresses are aligned.
    for word in [0, 4, 8, 12] {
        copy_word(code, ENDPOINT + word, ends.own.0 + word);
        copy_word(code, HOST + word, ends.other.0 + word);
    }
}

/// Copies four bytes of the frame to the stack.
fn copy_word(code: &mut Assembler, to: i16, from: i16) {
    code.load(Width::Word, Reg::R3, Reg::R7, from);
    code.store(Width::Word, Reg::Stack, to, Reg::R3);
}

/// Copies the port to the key of the endpoint, with two zeros behind it; jumps to `redirect` for a
/// connection beside those to endpoints.
fn copy_ports(code: &mut Assembler, maps: Maps, ends: Ends, redirect: Label) {
    zero(code, &[PORT]);
    code.load(Width::Half, Reg::R3, Reg::R7, ends.own.1);
    code.store(Width::Half, Reg::Stack, PORT, Reg::R3);
    let Some(flows) = maps.flows else {
        return;
    };
    code.load(Width::Half, Reg::R3, Reg::R7, ends.other.1);
    code.store(Width::Half, Reg::Stack, PORT + 2, Reg::R3);
    look_up(code, flows, FLOW);
    code.jump_if_null(Reg::R0, Condition::NotEqual, redirect);
    code.store_number(Width::Half, Reg::Stack, PORT + 2, 0);
}

/// Sets words of the stack to zero.
fn zero(code: &mut Assembler, words: &[i16]) {
    for word in words {
        code.store_number(Width::Word, Reg::Stack, *word, 0);
    }
}

/// `r0 = &map[key]`, or null. `key` is the offset of the key on the stack.
fn look_up(code: &mut Assembler, map: i32, key: i16) {
    code.load_map(Reg::R1, map);
    code.copy(Reg::R2, Reg::Stack);
    code.add(Reg::R2, key.into());
    code.call(Helper::MapLookup);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_addresses_and_ports_as_frames_do() {
        let key = endpoint_key("10.0.0.2:258".parse().unwrap());
        assert_eq!(
            key,
            [
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2, 1, 2, 0, 0
            ]
        );
        let key = endpoint_key("[fd00::3]:80".parse().unwrap());
        assert_eq!(
            key,
            [
                0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 80, 0, 0
            ]
        );
        let any = ["0.0.0.0:1", "[::]:1"].map(|text| endpoint_key(text.parse().unwrap()));
        assert_ne!(any[0], any[1]);
    }
}
