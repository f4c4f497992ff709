//! The device: a link that comes and goes with its peer.
//!
//! Without a peer, frames that are sent are dropped and counted as `down`. A client tries to
//! connect again and again; a server waits. All of that happens inside the calls of the owner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use saiga_wire::ethernet::{HEADER_BYTES as LINK_BYTES, Mac};
use saiga_wire::offload::Fill;
use saiga_wire::virtio::{HEADER_BYTES, Header};

use super::MOST_SHIFT;
use super::client::Client;
use super::divide::Division;
use super::link::{Link, Put};
use super::peer::{Breach, Ending, Peer, Stage};
use super::server::Server;
use super::socket::Socket;
use super::wake::{News, Wake};
use crate::device::{
    Counters, Device, DeviceError, Frame, Info, LARGEST_FRAME_BYTES, Offload, Segmentation,
};
use crate::stored::close_checksum;

/// Room for a virtio header and the largest frame.
const BUFFER_BYTES: usize = HEADER_BYTES + LARGEST_FRAME_BYTES;
/// Most payload of a super-segment: with all headers, an IP packet is shorter than 64 KiB.
const MOST_SEGMENTED_BYTES: u32 = 65_000;
/// How often a client without a server tries to connect.
const RETRY: Duration = Duration::from_millis(200);
/// When a device that sleeps looks once more for frames of a foreign peer, which may lack the fence
/// between its frames and its look at our wish to be woken. The processor publishes much earlier.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Receptions after which an owner that never waits has the control socket looked at.
const RECEPTIONS: u32 = 256;
/// Connections that are accepted at a time, and when the next ones are.
const CONNECTIONS: usize = 16;
const NEXT_CONNECTIONS: Duration = Duration::from_millis(1);
/// When a new client connects: not in [`Memif::open`], whose caller may have another user then.
const FIRST_TRY: Duration = Duration::from_millis(1);
/// Reasons that are reported while there is no peer. Some of their texts come from peers.
const REASONS: usize = 8;

/// Which end of the link the device is.
pub enum End {
    /// It listens (SOCK_SEQPACKET, without waiting), and maps the memory of its client.
    Server(Box<dyn AsFd + Send>),
    /// It connects to the socket with this path, and owns the memory.
    Client(PathBuf),
}

/// How a device is opened.
#[expect(missing_debug_implementations, reason = "a listener may have none")]
pub struct Options {
    /// The name of the device, for reports.
    pub name: String,
    /// The end of the link.
    pub end: End,
    /// Number of the interface, which both ends must have.
    pub id: u32,
    /// Descriptors of each ring of a client: a power of two, of which at most 16,384 are used. A
    /// server has the client's.
    pub ring: u32,
    /// The address of this end.
    pub mac: Mac,
    /// Bytes of the largest IP packet.
    pub mtu: u16,
    /// Takes a line when a peer comes or goes.
    pub log: fn(&str),
}

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum MemifError {
    /// A system call failed.
    #[error("cannot make a descriptor for memif: {0}")]
    System(#[from] io::Error),
}

/// One end of a link.
#[expect(missing_debug_implementations, reason = "a listener may have none")]
pub struct Memif {
    info: Info,
    end: End,
    id: u32,
    shift: u8,
    log: fn(&str),
    wake: Wake,
    peer: Option<Peer>,
    incoming: Box<[u8]>,
    /// A frame behind the place of its virtio header.
    outgoing: Box<[u8]>,
    pending: Option<Pending>,
    segment: Vec<u8>,
    counters: Counters,
    /// Frames that were written since the last flush.
    written: usize,
    /// Whether the peer was asked for interrupts.
    is_waiting: bool,
    /// Whether frames came since the device looked again.
    was_busy: bool,
    receptions: u32,
    /// What was reported since there was a peer.
    reasons: Vec<String>,
}

/// A frame in `outgoing` that is not in the ring yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    bytes: usize,
    offload: Header,
    /// The next of its segments, if it is divided.
    segment: usize,
}

impl Memif {
    /// Opens the device. A client connects as soon as its owner receives or waits.
    ///
    /// # Errors
    /// If this process can have no more descriptors.
    pub fn open(options: Options) -> Result<Self, MemifError> {
        let Options {
            name,
            end,
            id,
            ring,
            mac,
            mtu,
            log,
        } = options;
        let shift = u8::try_from(ring.max(2).ilog2()).unwrap_or(MOST_SHIFT);
        let info = Info {
            name,
            queue: 0,
            mac: Some(mac),
            mtu,
            offload: Offload {
                checksum: Fill::PseudoHeader,
                segmentation: Some(Segmentation {
                    checksum: Fill::PseudoHeader,
                    most_bytes: MOST_SEGMENTED_BYTES,
                }),
            },
        };
        let device = Self {
            info,
            end,
            id,
            shift: shift.min(MOST_SHIFT),
            log,
            wake: Wake::new()?,
            peer: None,
            incoming: vec![0; BUFFER_BYTES].into(),
            outgoing: vec![0; BUFFER_BYTES].into(),
            pending: None,
            segment: Vec::new(),
            counters: Counters::default(),
            written: 0,
            is_waiting: false,
            was_busy: false,
            receptions: 0,
            reasons: Vec::new(),
        };
        match &device.end {
            End::Server(listener) => device.wake.add(listener.as_fd(), News::Connection)?,
            End::Client(_) => {
                device.wake.set_timer(FIRST_TRY, RETRY)?;
            }
        }
        Ok(device)
    }

    /// Whether frames can move.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(&self.peer, Some(peer) if matches!(peer.stage, Stage::Up(_)))
    }

    fn link(&mut self) -> Option<&mut Link> {
        self.peer.as_mut().and_then(Peer::link)
    }

    /// Does what is to be done besides frames.
    fn on_news(&mut self) -> io::Result<()> {
        for news in self.wake.take()? {
            match news {
                News::Connection => self.accept()?,
                News::Message => self.on_message()?,
                News::Time => match self.end {
                    End::Server(_) => self.accept()?,
                    End::Client(_) if self.peer.is_none() => self.connect()?,
                    End::Client(_) => {}
                },
                News::Frames => {}
            }
        }
        Ok(())
    }

    fn connect(&mut self) -> io::Result<()> {
        let End::Client(path) = &self.end else {
            return Ok(());
        };
        match Socket::connect(path) {
            Ok(socket) => {
                let client = Client::new(self.id, self.shift);
                self.begin(socket, Stage::Asking(client))
            }
            Err(error) => {
                let shown = path.display();
                self.report_once(&format!("waits for a server at {shown}: {error}"));
                Ok(())
            }
        }
    }

    /// Accepts connections. One replaces another whose handshake is not complete, so that a silent
    /// peer does not block others.
    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..CONNECTIONS {
            let End::Server(listener) = &self.end else {
                return Ok(());
            };
            let socket = match Socket::accept(listener.as_fd()) {
                Ok(Some(socket)) => socket,
                Ok(None) => return Ok(()),
                // The peer has closed the socket already, or no descriptor is free.
                Err(_) => break,
            };
            if self.is_up() {
                let busy = Peer {
                    socket,
                    stage: Stage::Serving(Server::new(self.id)),
                };
                busy.tell(&Ending::Told("another peer is connected".to_owned()));
                continue;
            }
            self.begin(socket, Stage::Serving(Server::new(self.id)))?;
        }
        // The owner's wait may report each connection only once.
        self.wake.set_timer(NEXT_CONNECTIONS, Duration::ZERO)
    }

    /// Begins to negotiate with a peer of the right user.
    fn begin(&mut self, socket: Socket, stage: Stage) -> io::Result<()> {
        if !socket.is_of_own_user()? {
            self.report_once("has refused a peer: its user is neither root nor the gateway's");
            return Ok(());
        }
        self.wake.add(socket.as_fd(), News::Message)?;
        if let Stage::Serving(_) = stage {
            // A peer that has closed the socket is noticed by its message.
            let _gone = socket.send(&Server::hello(), None);
        }
        self.peer = Some(Peer { socket, stage });
        Ok(())
    }

    fn on_message(&mut self) -> io::Result<()> {
        let Some(peer) = &mut self.peer else {
            return Ok(());
        };
        match peer.on_readable() {
            Ok(false) => Ok(()),
            Ok(true) => self.on_up(),
            Err(ending) => self.end(&ending),
        }
    }

    fn on_up(&mut self) -> io::Result<()> {
        self.wake.stop_timer()?;
        let Some(link) = self.peer.as_mut().and_then(Peer::link) else {
            return Ok(());
        };
        if self.wake.add(link.bell(), News::Frames).is_err() {
            return self.end(&Breach("its eventfd cannot be waited for").into());
        }
        let kind = if link.has_headers {
            "another Saiga, with offloads"
        } else {
            "a foreign peer, without offloads"
        };
        self.reasons.clear();
        // The client's rings ask for interrupts at first.
        self.is_waiting = true;
        self.report(&format!("is connected to {kind}"));
        Ok(())
    }

    /// Ends the connection.
    fn end(&mut self, ending: &Ending) -> io::Result<()> {
        let Some(mut peer) = self.peer.take() else {
            return Ok(());
        };
        let was_up = peer.link().map(|link| self.wake.remove(link.bell()));
        match ending {
            Ending::Breach(_) => {
                self.counters.drops.malformed += 1;
                peer.tell(ending);
            }
            Ending::System(_) => peer.tell(ending),
            Ending::Closed | Ending::Told(_) => {}
        }
        // A peer that fails again and again is named once.
        match was_up {
            Some(()) => self.report(&ending.to_string()),
            None => self.report_once(&ending.to_string()),
        }
        if let End::Client(_) = self.end {
            self.wake.set_timer(RETRY, RETRY)?;
        }
        Ok(())
    }

    /// The result of an operation on the link, which ends with a breach.
    fn checked<T>(&mut self, done: Result<T, Breach>) -> Result<Option<T>, DeviceError> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(breach) => {
                let ended = self.end(&breach.into());
                ended.map_err(|error| self.failed(error)).map(|()| None)
            }
        }
    }

    /// Passes up to `most` frames that wait.
    fn pass(&mut self, most: usize, each: &mut dyn FnMut(Frame<'_>)) -> Result<usize, Breach> {
        let Some(link) = self.peer.as_mut().and_then(Peer::link) else {
            return Ok(0);
        };
        let mut taken = 0;
        while taken < most
            && let Some(length) = link.take(&mut self.incoming)?
        {
            taken += 1;
            let frame = parse(&self.incoming[..length], link.has_headers);
            let Some(frame) = frame else {
                self.counters.drops.malformed += 1;
                continue;
            };
            self.counters.received.add_frame(frame.bytes.len());
            each(frame);
        }
        link.release()?;
        Ok(taken)
    }

    /// Writes the pending frame to the ring. Returns whether that is done.
    fn place(&mut self) -> Result<bool, Breach> {
        let Some(pending) = &mut self.pending else {
            return Ok(true);
        };
        let put = match self.peer.as_mut().and_then(Peer::link) {
            None => None,
            Some(link) if link.has_headers => {
                // There is room for the header in front of the frame.
                let _emitted = pending.offload.emit(&mut self.outgoing);
                Some(link.put(&self.outgoing[..HEADER_BYTES + pending.bytes])?)
            }
            Some(link) => {
                let frame = &mut self.outgoing[HEADER_BYTES..HEADER_BYTES + pending.bytes];
                Some(put_plain(link, frame, pending, &mut self.segment)?)
            }
        };
        let bytes = pending.bytes;
        match put {
            Some(Put::Full) => return Ok(false),
            Some(Put::Done) => {
                self.counters.sent.add_frame(bytes);
                self.written += 1;
            }
            Some(Put::TooLong) => self.counters.drops.refused += 1,
            None => self.counters.drops.down += 1,
        }
        self.pending = None;
        Ok(true)
    }

    fn report(&self, what: &str) {
        (self.log)(&format!("{} {what}", self.info.name));
    }

    /// Reports why there is no peer, each reason once.
    fn report_once(&mut self, reason: &str) {
        let is_new = self.reasons.iter().all(|old| old != reason);
        if is_new && self.reasons.len() < REASONS {
            self.report(reason);
            self.reasons.push(reason.to_owned());
        }
    }

    fn failed(&self, source: io::Error) -> DeviceError {
        DeviceError::System {
            name: self.info.name.clone(),
            call: "epoll_wait or timerfd_settime",
            source,
        }
    }
}

impl Device for Memif {
    fn info(&self) -> &Info {
        &self.info
    }

    fn receive(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(Frame<'_>),
    ) -> Result<usize, DeviceError> {
        self.receptions += 1;
        if self.receptions == RECEPTIONS {
            self.receptions = 0;
            self.on_news().map_err(|error| self.failed(error))?;
        }
        let passed = self.pass(most, each);
        let taken = self.checked(passed)?.unwrap_or(0);
        // Not before there are frames: `before_wait` looks again for a foreign peer only then.
        if taken > 0 && std::mem::take(&mut self.is_waiting) {
            let masked = self.link().map_or(Ok(()), |link| link.mask());
            self.checked(masked)?;
        }
        self.was_busy |= taken > 0;
        self.counters.received.batches += u64::from(taken > 0);
        Ok(taken)
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        let placed = self.place();
        // A broken link drops its frames, so there is room again.
        let is_free = self.checked(placed).ok()?.unwrap_or(true);
        is_free.then(|| &mut self.outgoing[HEADER_BYTES..])
    }

    fn send(&mut self, length: usize, offload: &Header) {
        if !(LINK_BYTES..=LARGEST_FRAME_BYTES).contains(&length) || self.pending.is_some() {
            self.counters.drops.refused += 1;
            return;
        }
        self.pending = Some(Pending {
            bytes: length,
            offload: *offload,
            segment: 0,
        });
        let placed = self.place();
        // `receive` and `flush` tell of a failure that lasts.
        let _failed = self.checked(placed);
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        let placed = self.place();
        self.checked(placed)?;
        let published = self.link().map_or(Ok(false), Link::publish);
        let has_sent = self.checked(published)?.unwrap_or(false);
        self.counters.sent.batches += u64::from(has_sent && self.written > 0);
        self.written = 0;
        Ok(())
    }

    /// Readable when a peer comes or goes, too.
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.descriptor()
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn before_wait(&mut self) -> Result<bool, DeviceError> {
        self.on_news().map_err(|error| self.failed(error))?;
        let Some(link) = self.link() else {
            return Ok(false);
        };
        let is_foreign = !link.has_headers;
        let unmasked = link.unmask();
        self.is_waiting = true;
        let has_frames = self.checked(unmasked)?.unwrap_or(false);
        if is_foreign && !has_frames && std::mem::take(&mut self.was_busy) && self.is_up() {
            let set = self.wake.set_timer(LOOK_AGAIN, Duration::ZERO);
            set.map_err(|error| self.failed(error))?;
        }
        Ok(has_frames)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// The frame in what was received; `None` if it contradicts its header.
fn parse(bytes: &[u8], has_header: bool) -> Option<Frame<'_>> {
    let (header, bytes) = bytes.split_at_checked(if has_header { HEADER_BYTES } else { 0 })?;
    let offload = match has_header {
        true => Header::parse(header).ok()?,
        false => Header::NONE,
    };
    let frame = Frame { bytes, offload };
    frame.is_consistent(crate::Link::Ethernet).then_some(frame)
}

/// Writes a frame for a peer that takes whole segments with their checksums.
fn put_plain(
    link: &mut Link,
    frame: &mut [u8],
    pending: &mut Pending,
    segment: &mut Vec<u8>,
) -> Result<Put, Breach> {
    if pending.offload.segmentation.is_none() {
        close_checksum(frame, &pending.offload);
        // It must not be formed again when there is room.
        pending.offload = Header::NONE;
        return link.put(frame);
    }
    let Some(division) = Division::of(frame, &pending.offload) else {
        return Ok(Put::TooLong);
    };
    while pending.segment < division.count() {
        division.segment(frame, pending.segment, segment);
        match link.put(segment)? {
            Put::Done => pending.segment += 1,
            full @ (Put::Full | Put::TooLong) => return Ok(full),
        }
    }
    Ok(Put::Done)
}
