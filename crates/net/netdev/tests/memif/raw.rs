//! A peer without rules: it writes messages and shared memory byte by byte.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, connect,
    recvmsg, sendmsg, socket_with,
};
use saiga_netdev::memif::Memif;

use crate::world::{World, step};

/// Bytes of a message.
pub(crate) const BYTES: usize = 128;
/// Bytes of the shared memory of a raw client.
pub(crate) const REGION: u64 = 16_384;
/// Places of its rings, with 8 descriptors each, and of the buffers.
pub(crate) const RINGS: [u64; 2] = [0, 4096];
const BUFFERS: [u64; 2] = [8192, 12_288];
/// Bytes of its buffers: less than a frame.
pub(crate) const BUFFER: u32 = 256;

/// One message, and the descriptor beside it.
#[derive(Clone)]
pub(crate) struct Said(
    pub(crate) Vec<u8>,
    pub(crate) Option<std::sync::Arc<OwnedFd>>,
);

/// The control socket of a raw peer.
pub(crate) struct Raw(OwnedFd);

impl Raw {
    pub(crate) fn connect(path: &Path) -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        Self(socket)
    }

    pub(crate) fn accept(listener: &OwnedFd) -> Self {
        Self(accept(listener).unwrap())
    }

    pub(crate) fn say(&self, said: &Said) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let beside: Vec<BorrowedFd<'_>> = said.1.iter().map(|one| one.as_fd()).collect();
        if !beside.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&beside)));
        }
        let parts = [IoSlice::new(&said.0)];
        // The device may have ended the connection already.
        let _sent = sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL);
    }

    /// The next message, if one waits.
    pub(crate) fn hear(&self) -> Option<Said> {
        let mut bytes = vec![0; BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let got = recvmsg(&self.0, &mut parts, &mut control, RecvFlags::DONTWAIT).ok()?;
        let mut beside = None;
        for one in control.drain() {
            if let RecvAncillaryMessage::ScmRights(mut more) = one {
                beside = more.next();
            }
        }
        (got.bytes > 0).then(|| Said(bytes, beside.map(std::sync::Arc::new)))
    }

    /// The text of the disconnection, if the last message that waits is one.
    pub(crate) fn told(&self) -> Option<String> {
        let mut last = None;
        while let Some(said) = self.hear() {
            last = Some(said);
        }
        let Said(bytes, _) = last.filter(|said| said.0[0] == 8)?;
        let text: Vec<u8> = bytes[6..].iter().copied().take_while(|b| *b != 0).collect();
        Some(String::from_utf8(text).unwrap())
    }

    /// A client of the server of `world` whose link is up.
    pub(crate) fn up(world: &World, server: &mut Memif, shared: &Shared) -> Self {
        let peer = Self::connect(&world.socket());
        step(server);
        peer.negotiate(server, &shared.messages());
        assert!(server.is_up());
        peer
    }

    /// Says everything, and lets the device answer after each.
    pub(crate) fn negotiate(&self, device: &mut Memif, all: &[Said]) {
        for said in all {
            self.say(said);
            step(device);
        }
    }
}

/// A message with fields at places.
pub(crate) fn message(fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    for (at, field) in fields {
        bytes[*at..at + field.len()].copy_from_slice(field);
    }
    bytes
}

pub(crate) fn init(version: u16, id: u32, mode: u8) -> Said {
    let [id, version] = [id.to_ne_bytes().to_vec(), version.to_ne_bytes().to_vec()];
    Said(
        message(&[(0, &[3]), (2, &version), (4, &id), (8, &[mode])]),
        None,
    )
}

pub(crate) fn region(index: u8, bytes: u64, file: impl Into<OwnedFd>) -> Said {
    let bytes = message(&[(0, &[4]), (2, &[index]), (4, &bytes.to_ne_bytes())]);
    Said(bytes, Some(std::sync::Arc::new(file.into())))
}

/// A ring: whether it is to the server, number, region, place, logarithm of its size, header bytes.
pub(crate) fn ring(to_server: u8, numbers: [u8; 2], at: u64, shift: u8, header: u8) -> Said {
    let at = u32::try_from(at).unwrap().to_ne_bytes();
    let bytes = message(&[
        (0, &[5, 0, to_server, 0, numbers[0], 0, numbers[1], 0]),
        (8, &at),
        (12, &[shift, header]),
    ]);
    Said(bytes, Some(std::sync::Arc::new(bell())))
}

pub(crate) fn connected() -> Said {
    Said(message(&[(0, &[6])]), None)
}

pub(crate) fn bell() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

/// Shared memory of a raw client, with both rings; all buffers are lent to the server.
pub(crate) struct Shared(pub(crate) File);

impl Shared {
    pub(crate) fn new() -> Self {
        let shared = Self::unsealed();
        fcntl_add_seals(&shared.0, SealFlags::SHRINK).unwrap();
        shared
    }

    pub(crate) fn unsealed() -> Self {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("raw", flags).unwrap();
        ftruncate(&file, REGION).unwrap();
        let shared = Self(file.into());
        for (direction, ring) in RINGS.into_iter().enumerate() {
            shared.put(ring, &0x03e3_1f20_u32.to_ne_bytes());
            for slot in 0..8 {
                shared.describe(direction, slot, [0, 0], BUFFER, buffer(direction, slot));
            }
        }
        shared.publish(1, 8);
        shared
    }

    pub(crate) fn put(&self, at: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, at).unwrap();
    }

    pub(crate) fn get<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    /// Writes a descriptor: flags and region, length, place.
    pub(crate) fn describe(
        &self,
        direction: usize,
        slot: u64,
        [flags, region]: [u16; 2],
        length: u32,
        at: u64,
    ) {
        let mut bytes = Vec::new();
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(region.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
        bytes.extend(u32::try_from(at).unwrap().to_ne_bytes());
        self.put(RINGS[direction] + 128 + slot * 16, &bytes);
    }

    /// Moves the head of a ring.
    pub(crate) fn publish(&self, direction: usize, head: u16) {
        self.put(RINGS[direction] + 6, &head.to_ne_bytes());
    }

    /// The tail of a ring.
    pub(crate) fn tail(&self, direction: usize) -> u16 {
        u16::from_ne_bytes(self.get(RINGS[direction] + 64))
    }

    /// All messages of a client with this memory.
    pub(crate) fn messages(&self) -> Vec<Said> {
        vec![
            init(0x200, 3, 0),
            region(0, REGION, self.0.try_clone().unwrap()),
            ring(1, [0, 0], RINGS[0], 3, 0),
            ring(0, [0, 0], RINGS[1], 3, 0),
            connected(),
        ]
    }
}

/// The place of a buffer.
pub(crate) fn buffer(direction: usize, slot: u64) -> u64 {
    BUFFERS[direction] + slot * u64::from(BUFFER)
}
