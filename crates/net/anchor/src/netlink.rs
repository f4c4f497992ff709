//! A conversation with the kernel by netlink: one request, then its answers.
//!
//! Spec: RFC 3549 §2.2 and §2.3.2, kernel Documentation/userspace-api/netlink/intro.rst. Every call
//! waits for the kernel's answer, which is there when the request has been sent. Deliberately
//! absent: notifications and requests in flight together.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer, NetlinkDeserializable,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};

/// Bytes of the answers that the kernel sends together, at most: `netlink_dump` in
/// net/netlink/af_netlink.c.
const ANSWER_BYTES: usize = 64 * 1024;
/// Attempts to dump a table that changes during each dump, at most.
const DUMPS: usize = 16;

/// A message of one netlink protocol.
pub(crate) trait Message:
    NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<Self>> + Clone
{
}

impl<M> Message for M where
    M: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<Self>> + Clone
{
}

/// A netlink socket.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens a socket of `protocol` in the network namespace of the calling thread.
    pub(crate) fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
            buffer: vec![0; ANSWER_BYTES],
        })
    }

    /// Lets the kernel filter dumps by the attributes of their request.
    pub(crate) fn filter_dumps(&self) -> io::Result<()> {
        self.socket.set_netlink_get_strict_chk(true)
    }

    /// Carries out `request`; an error is the kernel's answer.
    pub(crate) fn change<M: Message>(&mut self, request: M, flags: u16) -> io::Result<()> {
        self.send(request, NLM_F_ACK | flags)?;
        loop {
            for answer in self.receive::<M>()? {
                if let NetlinkPayload::Error(answer) = answer.payload {
                    return answer.code.map_or(Ok(()), |_| Err(answer.to_io()));
                }
            }
        }
    }

    /// The one answer to `request`.
    pub(crate) fn ask<M: Message>(&mut self, request: M) -> io::Result<M> {
        self.send(request, 0)?;
        loop {
            for answer in self.receive::<M>()? {
                if let NetlinkPayload::InnerMessage(found) = answer.payload {
                    return Ok(found);
                }
                if let NetlinkPayload::Error(error) = answer.payload {
                    return Err(error.to_io());
                }
            }
        }
    }

    /// All answers to `request`, of one state of the kernel's table.
    pub(crate) fn dump<M: Message>(&mut self, request: &M) -> io::Result<Vec<M>> {
        for _ in 0..DUMPS {
            self.send(request.clone(), NLM_F_DUMP)?;
            if let Some(found) = self.collect()? {
                return Ok(found);
            }
        }
        Err(io::Error::other("the kernel's table changes all the time"))
    }

    /// The answers to a dump; `None` if the table changed during the dump.
    fn collect<M: Message>(&mut self) -> io::Result<Option<Vec<M>>> {
        let mut found = Vec::new();
        let mut is_whole = true;
        loop {
            for answer in self.receive::<M>()? {
                is_whole &= answer.header.flags & NLM_F_DUMP_INTR == 0;
                if let NetlinkPayload::Done(done) = &answer.payload {
                    if done.code < 0 {
                        return Err(io::Error::from_raw_os_error(-done.code));
                    }
                    return Ok(is_whole.then_some(found));
                }
                if let NetlinkPayload::Error(error) = &answer.payload {
                    return Err(error.to_io());
                }
                if let NetlinkPayload::InnerMessage(message) = answer.payload {
                    found.push(message);
                }
            }
        }
    }

    fn send<M: Message>(&mut self, request: M, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }

    /// Some answers to the last request.
    fn receive<M: Message>(&mut self) -> io::Result<Vec<NetlinkMessage<M>>> {
        let length = self.socket.recv(&mut &mut self.buffer[..], 0)?;
        let mut rest = self.buffer.get(..length).unwrap_or_default();
        let mut answers = Vec::new();
        while let Ok(frame) = NetlinkBuffer::new_checked(rest) {
            // A request that failed may have left answers behind.
            if frame.sequence_number() == self.sequence {
                answers.push(NetlinkMessage::deserialize(rest).map_err(io::Error::other)?);
            }
            // The lengths of messages are multiples of four bytes.
            let length = (frame.length() as usize).next_multiple_of(4);
            rest = rest.get(length.max(4)..).unwrap_or_default();
        }
        Ok(answers)
    }
}
