//! The client's part of the negotiation: it makes the memory, and names it to the server.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use saiga_wire::virtio::HEADER_BYTES;

use super::link::{Link, Offer};
use super::message::{AddRing, Direction, Hello, Init, Message};
use super::peer::{Answer, Breach, Ending};
use super::ring::Ring;
use super::socket::Socket;
use super::{NAME, VERSION};

const TOO_EARLY: Breach = Breach("a message of the server comes too early");

/// A client whose link is not up yet.
#[derive(Debug)]
pub(super) struct Client {
    /// Number of the interface.
    id: u32,
    /// Binary logarithm of the size of its rings.
    shift: u8,
    offer: Option<Offer>,
    /// Messages that wait for the acknowledgement of the one before.
    unsent: VecDeque<Message>,
}

impl Client {
    pub(super) const fn new(id: u32, shift: u8) -> Self {
        Self {
            id,
            shift,
            offer: None,
            unsent: VecDeque::new(),
        }
    }

    pub(super) fn on_message(
        &mut self,
        message: &Message,
        socket: &Socket,
    ) -> Result<Answer, Ending> {
        match message {
            Message::Hello(hello) if self.offer.is_none() => {
                self.prepare(hello)?;
                self.send_next(socket)?;
                Ok(Answer::Nothing)
            }
            Message::Ack if !self.unsent.is_empty() => {
                self.send_next(socket)?;
                Ok(Answer::Nothing)
            }
            Message::Connected if self.unsent.is_empty() => {
                let Some(offer) = self.offer.take() else {
                    return Err(TOO_EARLY.into());
                };
                offer.link.begin()?;
                Ok(Answer::Up(Box::new(offer.link), None))
            }
            Message::Ack
            | Message::Hello(_)
            | Message::Init(_)
            | Message::AddRegion { .. }
            | Message::AddRing(_)
            | Message::Connect
            | Message::Connected
            | Message::Disconnect(_) => Err(TOO_EARLY.into()),
        }
    }

    /// Makes the memory that this server can use.
    fn prepare(&mut self, hello: &Hello) -> Result<(), Ending> {
        let [least, most] = hello.versions;
        if !(least..=most).contains(&VERSION) {
            return Err(Breach("its version is not 2.0").into());
        }
        let shift = self.shift.min(hello.most_shift).max(1);
        let has_headers = hello.name == NAME;
        let bells = [bell()?, bell()?];
        let offer = Link::offer(shift, has_headers, bells)?;
        self.unsent = self.messages(&offer);
        self.offer = Some(offer);
        Ok(())
    }

    fn messages(&self, offer: &Offer) -> VecDeque<Message> {
        let Offer { link, bytes, .. } = offer;
        let header_bytes = if link.has_headers { HEADER_BYTES } else { 0 };
        let ring = |direction, ring: &Ring| {
            Message::AddRing(AddRing {
                direction,
                index: 0,
                region: 0,
                offset: u32::try_from(ring.at).unwrap_or(u32::MAX),
                shift: ring.shift,
                header_bytes: u16::try_from(header_bytes).unwrap_or(0),
            })
        };
        let init = Init {
            version: VERSION,
            id: self.id,
            mode: 0,
            name: NAME.to_owned(),
        };
        VecDeque::from([
            Message::Init(init),
            Message::AddRegion {
                index: 0,
                bytes: *bytes,
            },
            ring(Direction::ToServer, &link.outgoing),
            ring(Direction::ToClient, &link.incoming),
            Message::Connect,
        ])
    }

    /// Sends the next message with its descriptor.
    fn send_next(&mut self, socket: &Socket) -> io::Result<()> {
        let (Some(message), Some(offer)) = (self.unsent.pop_front(), &self.offer) else {
            return Ok(());
        };
        let beside = match &message {
            Message::AddRegion { .. } => Some(offer.file.as_fd()),
            Message::AddRing(ring) => Some(match ring.direction {
                Direction::ToServer => offer.link.outgoing.bell.as_fd(),
                Direction::ToClient => offer.link.incoming.bell.as_fd(),
            }),
            Message::Ack
            | Message::Hello(_)
            | Message::Init(_)
            | Message::Connect
            | Message::Connected
            | Message::Disconnect(_) => None,
        };
        socket.send(&message, beside)
    }
}

/// The eventfd of a ring.
fn bell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}
