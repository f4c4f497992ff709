//! The server's part of the negotiation: it checks and maps what the client names.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use saiga_wire::virtio::HEADER_BYTES;

use super::link::Link;
use super::memory::{MOST_REGIONS, Regions};
use super::message::{AddRing, Direction, Hello, Init, Message};
use super::peer::{Answer, Breach, Ending};
use super::ring::{Ring, Side};
use super::{MOST_SHIFT, NAME, VERSION};

/// What a client has named so far.
#[derive(Debug)]
pub(super) struct Server {
    /// Number of the interface.
    id: u32,
    is_begun: bool,
    regions: Regions,
    /// The ring to this server, and that to the client.
    rings: [Option<(AddRing, OwnedFd)>; 2],
}

impl Server {
    pub(super) fn new(id: u32) -> Self {
        Self {
            id,
            is_begun: false,
            regions: Regions::default(),
            rings: [None, None],
        }
    }

    /// The HELLO with which a server begins.
    pub(super) fn hello() -> Message {
        Message::Hello(Hello {
            name: NAME.to_owned(),
            versions: [VERSION, VERSION],
            last_region: u16::try_from(MOST_REGIONS - 1).unwrap_or(0),
            last_rings: [0, 0],
            most_shift: MOST_SHIFT,
        })
    }

    pub(super) fn on_message(
        &mut self,
        message: Message,
        beside: Option<OwnedFd>,
    ) -> Result<Answer, Ending> {
        match (message, beside) {
            (Message::Init(init), None) if !self.is_begun => self.init(&init)?,
            (Message::AddRegion { index, bytes }, Some(file)) if self.is_begun => {
                self.regions.add(index, bytes, &file)?;
            }
            (Message::AddRing(ring), Some(bell)) if self.is_begun => self.add(ring, bell)?,
            (Message::Connect, None) => {
                let link = Box::new(self.connect()?);
                return Ok(Answer::Up(link, Some(Message::Connected)));
            }
            // A client of DPDK confirms nothing.
            _ => return Err(Breach("a message comes too early, or lacks its descriptor").into()),
        }
        Ok(Answer::Send(Message::Ack))
    }

    fn init(&mut self, init: &Init) -> Result<(), Breach> {
        if init.version != VERSION {
            return Err(Breach("its version is not 2.0"));
        }
        if init.id != self.id {
            return Err(Breach("this server has another id"));
        }
        if init.mode != 0 {
            return Err(Breach("its mode is not Ethernet"));
        }
        self.is_begun = true;
        Ok(())
    }

    fn add(&mut self, ring: AddRing, bell: OwnedFd) -> Result<(), Breach> {
        let place = match ring.direction {
            Direction::ToServer => 0,
            Direction::ToClient => 1,
        };
        if ring.index != 0 || self.rings[place].is_some() {
            return Err(Breach("there is more than one ring in a direction"));
        }
        if !(1..=MOST_SHIFT).contains(&ring.shift) {
            return Err(Breach(
                "a ring has less than 2 descriptors, or more than 16384",
            ));
        }
        if ring.header_bytes != 0 && usize::from(ring.header_bytes) != HEADER_BYTES {
            return Err(Breach("its private headers are not those of virtio"));
        }
        self.rings[place] = Some((ring, checked(bell)?));
        Ok(())
    }

    fn connect(&mut self) -> Result<Link, Breach> {
        let [Some(incoming), Some(outgoing)] = std::mem::take(&mut self.rings) else {
            return Err(Breach("it connects without a ring in each direction"));
        };
        let header_bytes = incoming.0.header_bytes;
        if outgoing.0.header_bytes != header_bytes {
            return Err(Breach("one direction alone has headers"));
        }
        let rings = [incoming, outgoing].map(|(ring, bell)| Ring {
            side: Side::Server,
            region: usize::from(ring.region),
            at: ring.offset as usize,
            shift: ring.shift,
            position: 0,
            seen: 0,
            bell,
        });
        let regions = std::mem::take(&mut self.regions).mapped;
        Link::new(regions, rings, header_bytes != 0)
    }
}

/// An eventfd of the peer. It has no type of file, and of such descriptors it alone takes a number,
/// of which 0 has no effect.
fn checked(bell: OwnedFd) -> Result<OwnedFd, Breach> {
    let refused = Breach("the descriptor of a ring is not an eventfd");
    let found = fstat(&bell).map_err(|_| refused)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Unknown {
        return Err(refused);
    }
    let flags = fcntl_getfl(&bell).map_err(|_| refused)?;
    fcntl_setfl(&bell, flags | OFlags::NONBLOCK).map_err(|_| refused)?;
    match rustix::io::write(&bell, &0_u64.to_ne_bytes()) {
        // A counter at its limit does not take 0 either.
        Ok(_) | Err(Errno::AGAIN) => Ok(bell),
        Err(_) => Err(refused),
    }
}
