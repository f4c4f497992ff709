//! The programs: which sockets are marked, which SYNs are held, and which listener gets them.
//!
//! Source: linux/bpf.h (`struct bpf_sock_addr`, `bpf_sock`, `__sk_buff`, `bpf_sk_lookup`),
//! Documentation/bpf/prog_sk_lookup.rst, bpf-helpers(7). Addresses of IPv4 are mapped into IPv6
//! (RFC 4291 §2.5.5.2) in all keys. A SYN with IP options or extension headers is not held, and
//! finds no listener.
//!
//! The adversary is a local user, whose marks would need CAP_NET_ADMIN. It reaches the listener by
//! connect(2) to a configured network only, and with an address of its own. Attempts beyond the
//! queue of the TUN device are lost, and the kernel repeats their SYNs.

use std::net::{IpAddr, SocketAddr};

use saiga_anchor::MARK;
use saiga_bpf::{Assembler, Condition, Helper, Instruction, Label, Reg, Width};

/// Bytes of an address in a key.
const ADDRESS_BYTES: usize = 16;
/// Bytes of a connection in its map: the program's address, the remote one, and both ports in
/// network byte order.
pub(crate) const FLOW_BYTES: usize = 2 * ADDRESS_BYTES + 4;
/// Bytes of a network in its map: the bits of the prefix, the namespace's number, the address.
pub(crate) const NETWORK_BYTES: usize = 4 + 8 + ADDRESS_BYTES;
/// The value of a connection or network that the gateway carries.
pub(crate) const ADMITTED: u8 = 1;
/// The value of addresses and connections that the gateway leaves to the kernel.
pub(crate) const EXCEPTED: u8 = 2;

/// Bits of the namespace's number.
const COOKIE_BITS: u32 = 64;
const ADDRESS_BITS: u32 = 128;
/// Bits in front of a mapped IPv4 address.
const MAPPED_BITS: u32 = 96;

/// The descriptors of the maps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maps {
    pub(crate) flows: i32,
    pub(crate) networks: i32,
    pub(crate) listeners: i32,
}

/// The key of a network; more bits than the address has stand for all of them.
pub(crate) fn network_key(cookie: u64, address: IpAddr, bits: u8) -> [u8; NETWORK_BYTES] {
    let bits = match address {
        IpAddr::V4(_) => (MAPPED_BITS + u32::from(bits)).min(ADDRESS_BITS),
        IpAddr::V6(_) => u32::from(bits).min(ADDRESS_BITS),
    };
    let mut key = [0; NETWORK_BYTES];
    key[..4].copy_from_slice(&(COOKIE_BITS + bits).to_ne_bytes());
    key[4..12].copy_from_slice(&cookie.to_ne_bytes());
    key[12..].copy_from_slice(&mapped(address));
    key
}

/// The key of a namespace, which has all networks.
pub(crate) fn namespace_key(cookie: u64) -> [u8; NETWORK_BYTES] {
    let mut key = [0; NETWORK_BYTES];
    key[..4].copy_from_slice(&COOKIE_BITS.to_ne_bytes());
    key[4..12].copy_from_slice(&cookie.to_ne_bytes());
    key
}

/// The key of a connection.
pub(crate) fn flow_key(local: SocketAddr, remote: SocketAddr) -> [u8; FLOW_BYTES] {
    let mut key = [0; FLOW_BYTES];
    key[..16].copy_from_slice(&mapped(local.ip()));
    key[16..32].copy_from_slice(&mapped(remote.ip()));
    key[32..34].copy_from_slice(&local.port().to_be_bytes());
    key[34..].copy_from_slice(&remote.port().to_be_bytes());
    key
}

fn mapped(address: IpAddr) -> [u8; ADDRESS_BYTES] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

const TCP: u32 = 6;
const STREAM: u32 = 1;
const FAMILY_V4: u32 = 2;
const FAMILY_V6: u32 = 10;

// The stack: the key of a connection, with its addresses and ports.
const FLOW: i16 = -36;
const REMOTE: i16 = FLOW + 16;
const PORTS: i16 = FLOW + 32;
const INDEX: i16 = -40;

/// The program of connect(2): marks sockets that connect to the networks, and takes the mark away
/// from those that now connect to others. Sockets that have another mark, or are bound to a
/// device, are the business of those who did that. Those of `user` are the gateway's own.
pub(crate) fn mark(maps: Maps, is_v6: bool, user: u32) -> Option<Vec<Instruction>> {
    // Offsets in `struct bpf_sock_addr` and `struct bpf_sock`.
    const V4: i16 = 4;
    const V6: i16 = 8;
    const TYPE: i16 = 32;
    const PROTOCOL: i16 = 36;
    const SOCKET: i16 = 64;
    const DEVICE: i16 = 0;
    const MARKED: i16 = 16;
    // The stack: the key of a network, whose number is aligned, and the new mark.
    const NETWORK: i16 = -28;
    const COOKIE: i16 = -24;
    const ADDRESS: i16 = -16;
    const NEW: i16 = -32;
    let mut code = Assembler::default();
    let [allow, own, others, set] = [(); 4].map(|()| code.label());
    code.copy(Reg::R6, Reg::R1);
    code.load(Width::Word, Reg::R3, Reg::R6, TYPE);
    code.jump_if(Reg::R3, Condition::NotEqual, STREAM, allow);
    code.load(Width::Word, Reg::R3, Reg::R6, PROTOCOL);
    code.jump_if(Reg::R3, Condition::NotEqual, TCP, allow);
    code.load(Width::Double, Reg::R7, Reg::R6, SOCKET);
    code.jump_if_null(Reg::R7, Condition::Equal, allow);
    code.load(Width::Word, Reg::R3, Reg::R7, DEVICE);
    code.jump_if(Reg::R3, Condition::NotEqual, 0, allow);
    code.load(Width::Word, Reg::R8, Reg::R7, MARKED);
    code.jump_if(Reg::R8, Condition::Equal, 0, own);
    code.jump_if(Reg::R8, Condition::NotEqual, MARK, allow);
    code.bind(own);
    code.call(Helper::CurrentUidGid);
    code.jump_if(Reg::R0, Condition::Equal, user, allow);

    code.copy(Reg::R1, Reg::R6);
    code.call(Helper::NetnsCookie);
    code.store(Width::Double, Reg::Stack, COOKIE, Reg::R0);
    let bits = (COOKIE_BITS + ADDRESS_BITS).cast_signed();
    code.store_number(Width::Word, Reg::Stack, NETWORK, bits);
    if is_v6 {
        copy_v6(&mut code, ADDRESS, Reg::R6, V6);
    } else {
        copy_v4(&mut code, ADDRESS, Reg::R6, V4);
    }
    look_up(&mut code, maps.networks, NETWORK);
    // Another namespace, which may have a gateway and its program.
    code.jump_if_null(Reg::R0, Condition::Equal, allow);
    code.load(Width::Byte, Reg::R3, Reg::R0, 0);
    code.jump_if(Reg::R3, Condition::NotEqual, ADMITTED.into(), others);
    code.jump_if(Reg::R8, Condition::Equal, MARK, allow);
    code.store_number(Width::Word, Reg::Stack, NEW, MARK.cast_signed());
    code.jump(set);
    code.bind(others);
    code.jump_if(Reg::R8, Condition::Equal, 0, allow);
    code.store_number(Width::Word, Reg::Stack, NEW, 0);

    code.bind(set);
    code.copy(Reg::R1, Reg::R6);
    code.set(Reg::R2, libc::SOL_SOCKET);
    code.set(Reg::R3, libc::SO_MARK);
    code.copy(Reg::R4, Reg::Stack);
    code.add(Reg::R4, NEW.into());
    code.set(Reg::R5, 4);
    // If it fails, the kernel carries the connection.
    code.call(Helper::SetSockOpt);
    code.bind(allow);
    code.set(Reg::R0, 1);
    code.exit();
    code.finish()
}

/// The program of packets that `lo` receives: redirects the SYN of a marked socket to the device
/// until its connection is admitted, and drops a reset of the listener from then until it is
/// forgotten.
///
/// Linux 6.18 (`inet_ehash_insert`, net/ipv4/inet_hashtables.c) takes a request out of its table
/// before it puts the connection in. A program whose first bytes are looked up in between, on
/// another CPU than its ACK, would be reset by the listener, which is marked for that. It repeats
/// its bytes instead.
pub(crate) fn hold(maps: Maps, device: u32) -> Option<Vec<Instruction>> {
    // Offsets in `struct __sk_buff`, and from the start of a frame.
    const MARKED: i16 = 8;
    const DATA: i16 = 76;
    const DATA_END: i16 = 80;
    const ETHER_TYPE: i16 = 12;
    const V4_VERSION: i16 = 14;
    const V4_PROTOCOL: i16 = 23;
    const V4_SOURCE: i16 = 26;
    const V4_TCP: i16 = 34;
    const V6_PROTOCOL: i16 = 20;
    const V6_SOURCE: i16 = 22;
    const V6_TCP: i16 = 54;
    /// `TCX_NEXT`: the next program decides, in the end the kernel.
    const NEXT: i32 = -1;
    let mut code = Assembler::default();
    /// `TCX_DROP`.
    const DROP: i32 = 2;
    let [next, v4, v6, look, back] = [(); 5].map(|()| code.label());
    code.load(Width::Word, Reg::R3, Reg::R1, MARKED);
    code.jump_if(Reg::R3, Condition::NotEqual, MARK, next);
    code.load(Width::Word, Reg::R7, Reg::R1, DATA);
    code.load(Width::Word, Reg::R8, Reg::R1, DATA_END);
    require(&mut code, V4_TCP + 20, next);
    code.load(Width::Half, Reg::R3, Reg::R7, ETHER_TYPE);
    code.jump_if(Reg::R3, Condition::Equal, be(0x0800), v4);
    code.jump_if(Reg::R3, Condition::Equal, be(0x86dd), v6);
    code.jump(next);

    code.bind(v4);
    code.load(Width::Byte, Reg::R3, Reg::R7, V4_VERSION);
    code.jump_if(Reg::R3, Condition::NotEqual, 0x45, next);
    code.load(Width::Byte, Reg::R3, Reg::R7, V4_PROTOCOL);
    code.jump_if(Reg::R3, Condition::NotEqual, TCP, next);
    let v4_reset = look_at_flags(&mut code, V4_TCP, next);
    copy_v4(&mut code, FLOW, Reg::R7, V4_SOURCE);
    copy_v4(&mut code, REMOTE, Reg::R7, V4_SOURCE + 4);
    copy_word(&mut code, PORTS, Reg::R7, V4_TCP);
    code.jump(look);
    code.bind(v4_reset);
    copy_v4(&mut code, FLOW, Reg::R7, V4_SOURCE + 4);
    copy_v4(&mut code, REMOTE, Reg::R7, V4_SOURCE);
    copy_ports_back(&mut code, V4_TCP);
    code.jump(back);

    code.bind(v6);
    require(&mut code, V6_TCP + 20, next);
    code.load(Width::Byte, Reg::R3, Reg::R7, V6_PROTOCOL);
    code.jump_if(Reg::R3, Condition::NotEqual, TCP, next);
    let v6_reset = look_at_flags(&mut code, V6_TCP, next);
    copy_v6(&mut code, FLOW, Reg::R7, V6_SOURCE);
    copy_v6(&mut code, REMOTE, Reg::R7, V6_SOURCE + 16);
    copy_word(&mut code, PORTS, Reg::R7, V6_TCP);
    code.jump(look);
    code.bind(v6_reset);
    copy_v6(&mut code, FLOW, Reg::R7, V6_SOURCE + 16);
    copy_v6(&mut code, REMOTE, Reg::R7, V6_SOURCE);
    copy_ports_back(&mut code, V6_TCP);

    code.bind(back);
    look_up(&mut code, maps.flows, FLOW);
    code.jump_if_null(Reg::R0, Condition::Equal, next);
    code.set(Reg::R0, DROP);
    code.exit();

    code.bind(look);
    look_up(&mut code, maps.flows, FLOW);
    code.jump_if_null(Reg::R0, Condition::NotEqual, next);
    code.set(Reg::R1, device.cast_signed());
    code.set(Reg::R2, 0);
    code.call(Helper::Redirect);
    code.exit();
    code.bind(next);
    code.set(Reg::R0, NEXT);
    code.exit();
    code.finish()
}

/// The program that chooses a listener: connections that are admitted get that of the gateway, and
/// nobody else reaches it at its own `ports`.
pub(crate) fn lookup(maps: Maps, ports: [u16; 2]) -> Option<Vec<Instruction>> {
    // Offsets in `struct bpf_sk_lookup`.
    const FAMILY: i16 = 8;
    const PROTOCOL: i16 = 12;
    const REMOTE_V4: i16 = 16;
    const REMOTE_V6: i16 = 20;
    const REMOTE_PORT: i16 = 36;
    const LOCAL_V4: i16 = 40;
    const LOCAL_V6: i16 = 44;
    const LOCAL_PORT: i16 = 60;
    const PASS: i32 = 1;
    const DROP: i32 = 0;
    let mut code = Assembler::default();
    let [pass, v6, look, found, drop] = [(); 5].map(|()| code.label());
    code.copy(Reg::R6, Reg::R1);
    code.load(Width::Word, Reg::R3, Reg::R6, PROTOCOL);
    code.jump_if(Reg::R3, Condition::NotEqual, TCP, pass);
    // The ports, as `local` and `remote` are meant here: the program is the remote end.
    code.load(Width::Half, Reg::R3, Reg::R6, REMOTE_PORT);
    code.store(Width::Half, Reg::Stack, PORTS, Reg::R3);
    code.load(Width::Word, Reg::R7, Reg::R6, LOCAL_PORT);
    code.copy(Reg::R3, Reg::R7);
    code.port(Reg::R3);
    code.store(Width::Half, Reg::Stack, PORTS + 2, Reg::R3);
    code.load(Width::Word, Reg::R8, Reg::R6, FAMILY);
    code.jump_if(Reg::R8, Condition::Equal, FAMILY_V6, v6);
    code.jump_if(Reg::R8, Condition::NotEqual, FAMILY_V4, pass);
    copy_v4(&mut code, FLOW, Reg::R6, REMOTE_V4);
    copy_v4(&mut code, REMOTE, Reg::R6, LOCAL_V4);
    code.store_number(Width::Word, Reg::Stack, INDEX, 0);
    code.jump(look);
    code.bind(v6);
    copy_v6(&mut code, FLOW, Reg::R6, REMOTE_V6);
    copy_v6(&mut code, REMOTE, Reg::R6, LOCAL_V6);
    code.store_number(Width::Word, Reg::Stack, INDEX, 1);

    code.bind(look);
    look_up(&mut code, maps.flows, FLOW);
    code.jump_if_null(Reg::R0, Condition::NotEqual, found);
    // The listener's own address: 127.0.0.1 or ::1, of which the last word tells enough.
    code.load(Width::Word, Reg::R3, Reg::Stack, REMOTE + 12);
    for (loopback, port) in [[127, 0, 0, 1], [0, 0, 0, 1]].into_iter().zip(ports) {
        let other = code.label();
        code.jump_if(
            Reg::R3,
            Condition::NotEqual,
            u32::from_ne_bytes(loopback),
            other,
        );
        code.jump_if(Reg::R7, Condition::Equal, port.into(), drop);
        code.bind(other);
    }
    code.jump(pass);

    code.bind(found);
    code.load(Width::Byte, Reg::R3, Reg::R0, 0);
    code.jump_if(Reg::R3, Condition::NotEqual, ADMITTED.into(), pass);
    look_up(&mut code, maps.listeners, INDEX);
    code.jump_if_null(Reg::R0, Condition::Equal, pass);
    code.copy(Reg::R7, Reg::R0);
    code.copy(Reg::R1, Reg::R6);
    code.copy(Reg::R2, Reg::R7);
    code.set(Reg::R3, 0);
    code.call(Helper::SkAssign);
    code.copy(Reg::R1, Reg::R7);
    code.call(Helper::SkRelease);
    code.bind(pass);
    code.set(Reg::R0, PASS);
    code.exit();
    code.bind(drop);
    code.set(Reg::R0, DROP);
    code.exit();
    code.finish()
}

/// A number of two bytes in a frame, as a load gives it.
fn be(number: u16) -> u32 {
    number.to_be().into()
}

/// Jumps to `next` unless the frame has `bytes` bytes from R7 on.
fn require(code: &mut Assembler, bytes: i16, next: Label) {
    code.copy(Reg::R2, Reg::R7);
    code.add(Reg::R2, bytes.into());
    code.jump_if_greater(Reg::R2, Reg::R8, next);
}

/// Goes on for a SYN without ACK in the TCP header at `at`, jumps to the returned label for a reset
/// without ACK, as a listener sends it, and to `next` for others.
fn look_at_flags(code: &mut Assembler, at: i16, next: Label) -> Label {
    const FLAGS: i16 = 13;
    const SYN: u32 = 0x02;
    const RST: u32 = 0x04;
    const ACK: u32 = 0x10;
    let reset = code.label();
    code.load(Width::Byte, Reg::R3, Reg::R7, at + FLAGS);
    code.and(Reg::R3, (SYN | RST | ACK).cast_signed());
    code.jump_if(Reg::R3, Condition::Equal, RST, reset);
    code.jump_if(Reg::R3, Condition::NotEqual, SYN, next);
    reset
}

/// Copies the ports of the TCP header at `at` to the stack, as those of a segment in the other
/// direction.
fn copy_ports_back(code: &mut Assembler, at: i16) {
    for (to, from) in [(PORTS, at + 2), (PORTS + 2, at)] {
        code.load(Width::Half, Reg::R3, Reg::R7, from);
        code.store(Width::Half, Reg::Stack, to, Reg::R3);
    }
}

/// Copies an IPv4 address to the stack, mapped.
fn copy_v4(code: &mut Assembler, to: i16, base: Reg, from: i16) {
    let mapped = i32::from_ne_bytes([0, 0, 0xff, 0xff]);
    for (word, number) in [(0, 0), (4, 0), (8, mapped)] {
        code.store_number(Width::Word, Reg::Stack, to + word, number);
    }
    copy_word(code, to + 12, base, from);
}

/// Copies an IPv6 address to the stack.
fn copy_v6(code: &mut Assembler, to: i16, base: Reg, from: i16) {
    for word in [0, 4, 8, 12] {
        copy_word(code, to + word, base, from + word);
    }
}

fn copy_word(code: &mut Assembler, to: i16, base: Reg, from: i16) {
    code.load(Width::Word, Reg::R3, base, from);
    code.store(Width::Word, Reg::Stack, to, Reg::R3);
}

/// `r0 = &map[key]`, or null. `key` is the offset of the key on the stack.
fn look_up(code: &mut Assembler, map: i32, key: i16) {
    code.load_map(Reg::R1, map);
    code.copy(Reg::R2, Reg::Stack);
    code.add(Reg::R2, key.into());
    code.call(Helper::MapLookup);
}
