//! A packet filter for TCP ports (`Documentation/networking/filter.rst`), for sockets without link
//! headers: offset 0 is that of the IP header.

#![expect(
    clippy::cast_possible_truncation,
    reason = "codes of instructions have 16 bits"
)]

use std::collections::BTreeSet;

use libc::{
    BPF_ABS, BPF_ALU, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LDX,
    BPF_MSH, BPF_RET, BPF_RSH, BPF_W, sock_filter,
};

/// Bytes of a packet that are kept: all headers, and the start of the payload, by which messages
/// are told apart.
const SNAP_LENGTH: u32 = 384;
/// `ARPHRD_LOOPBACK` of `include/uapi/linux/if_arp.h`.
const LOOPBACK: u32 = 772;
/// `PACKET_OUTGOING` of `include/uapi/linux/if_packet.h`.
const OUTGOING: u32 = 4;
/// Protocol number of TCP.
const TCP: u32 = 6;
/// Most ports of a filter: the jumps of a filter are shorter than 256 instructions.
pub(super) const MOST_PORTS: usize = 16;

/// The destination of a jump.
#[derive(Clone, Copy)]
enum To {
    Next,
    /// The start of the part for IPv6.
    Six,
    Accept,
    Drop,
}

struct Program {
    instructions: Vec<(sock_filter, To, To)>,
    six: usize,
}

impl Program {
    fn plain(&mut self, code: u32, k: u32) {
        self.jump(code, k, To::Next, To::Next);
    }

    fn jump(&mut self, code: u32, k: u32, yes: To, no: To) {
        let instruction = sock_filter {
            code: code as u16,
            jt: 0,
            jf: 0,
            k,
        };
        self.instructions.push((instruction, yes, no));
    }

    /// Accepts one of the ports at two places.
    fn ports(&mut self, ports: &BTreeSet<u16>, load: u32, offset: u32) {
        for offset in [offset, offset + 2] {
            self.plain(BPF_LD | BPF_H | load, offset);
            for port in ports.iter().take(MOST_PORTS) {
                let is_port = BPF_JMP | BPF_JEQ | BPF_K;
                self.jump(is_port, u32::from(*port), To::Accept, To::Next);
            }
        }
        self.plain(BPF_RET | BPF_K, 0);
    }

    fn resolved(self) -> Vec<sock_filter> {
        let (drop, six) = (self.instructions.len(), self.six);
        let distance = |at: usize, to: To| {
            let target = match to {
                To::Next => at + 1,
                To::Six => six,
                To::Drop => drop,
                To::Accept => drop + 1,
            };
            // At most 2 * (5 + 2 * MOST_PORTS) + 12 instructions follow each other.
            u8::try_from(target - at - 1).unwrap_or(u8::MAX)
        };
        let ends = [0, SNAP_LENGTH].map(|k| sock_filter {
            code: (BPF_RET | BPF_K) as u16,
            jt: 0,
            jf: 0,
            k,
        });
        let instructions = self.instructions.into_iter().enumerate();
        instructions
            .map(|(at, (instruction, yes, no))| sock_filter {
                jt: distance(at, yes),
                jf: distance(at, no),
                ..instruction
            })
            .chain(ends)
            .collect()
    }
}

/// Accepts segments from and to the ports, once on the loopback device, which shows each packet
/// twice.
pub(super) fn program(ports: &BTreeSet<u16>) -> Vec<sock_filter> {
    let mut it = Program {
        instructions: Vec::new(),
        six: 0,
    };
    let ancillary = |number: i32| (libc::SKF_AD_OFF + number).cast_unsigned();
    let equals = BPF_JMP | BPF_JEQ | BPF_K;
    it.plain(BPF_LD | BPF_W | BPF_ABS, ancillary(libc::SKF_AD_HATYPE));
    // The next two are skipped on other devices.
    let is_loopback = it.instructions.len();
    it.jump(equals, LOOPBACK, To::Next, To::Next);
    it.plain(BPF_LD | BPF_W | BPF_ABS, ancillary(libc::SKF_AD_PKTTYPE));
    it.jump(equals, OUTGOING, To::Drop, To::Next);
    it.plain(BPF_LD | BPF_B | BPF_ABS, 0);
    it.plain(BPF_ALU | BPF_RSH | BPF_K, 4);
    it.jump(equals, 4, To::Next, To::Six);
    it.plain(BPF_LD | BPF_B | BPF_ABS, 9);
    it.jump(equals, TCP, To::Next, To::Drop);
    // Only the first fragment has ports.
    it.plain(BPF_LD | BPF_H | BPF_ABS, 6);
    it.jump(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, To::Drop, To::Next);
    it.plain(BPF_LDX | BPF_B | BPF_MSH, 0);
    it.ports(ports, BPF_IND, 0);
    it.six = it.instructions.len();
    it.jump(equals, 6, To::Next, To::Drop);
    it.plain(BPF_LD | BPF_B | BPF_ABS, 6);
    it.jump(equals, TCP, To::Next, To::Drop);
    it.ports(ports, BPF_ABS, 40);
    let mut program = it.resolved();
    program[is_loopback].jf = 2;
    program
}
