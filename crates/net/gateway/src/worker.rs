//! A worker: one thread that joins a stack, a queue of a packet device, and the anchors of its
//! connections.
//!
//! Before a client's SYN is answered, the worker opens an anchor, and follows what the kernel says:
//! acceptance, refusal, or silence while the server's backlog is full. Then bytes move between the
//! rings of a conversation and its anchor. The worker is an ordinary program to the library: where
//! both ends run under it, an anchor is upgraded to a channel, as that of any local client is.
//!
//! Under load, the worker looks at its device without waiting. After `spin` without work it sleeps
//! until a frame, an anchor or a time-out wakes it.

mod budget;
mod buffer;
mod bypass;
mod clock;
mod conversation;
mod conversations;
mod half;
mod latency;
mod opener;
mod report;
mod request;
mod table;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::thread;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use saiga_netdev::capture::Captured;
use saiga_netdev::{Device, DeviceError};
use saiga_stack::{Instant, Micros, Settings, Stack, Verdict};

pub use budget::Memory;
use bypass::Bypass;
pub use clock::Clock;
use half::Halves;
pub use latency::{Latency, Times};
pub use opener::Opener;
use report::{Load, since_epoch};
pub use report::{Page, Report, Rings, Shown};
pub(crate) use request::Change;
use request::Inbox;
pub use request::{AskError, Handle};
use table::Table;

use crate::random;
use crate::seats::Seat;

/// Frames that are taken at a time, so that none waits long for its answer.
const BATCH: usize = 64;
/// Time without work after which a worker sleeps that never does.
const ALWAYS: Micros = Micros(u64::MAX);
/// A yield of the CPU that takes longer has let another thread run. One to nobody takes less than a
/// microsecond.
const OTHERS_TURN: Micros = Micros(5);
/// How long a CPU that others want is taken to be wanted.
const CONTENDED: Micros = Micros::from_millis(10);
/// How long a worker polls a device that has no room, and how long it sleeps between two looks
/// afterwards.
const FULL: Micros = Micros::from_millis(1);
/// Events of anchors that are taken at a time.
const EVENTS: usize = 1024;
/// The tokens of the devices, of a [`Handle`], of the kernel's device and of an [`Opener`]; keys of
/// conversations are smaller.
const DEVICE: Token = Token(usize::MAX);
const HANDLE: Token = Token(usize::MAX - 1);
const KERNEL: Token = Token(usize::MAX - 2);
const OPENER: Token = Token(usize::MAX - 3);

/// Where anchors come from.
pub trait Anchors {
    /// Opens a kernel connection from the client's address and port to the server, without waiting.
    fn open(&mut self, client: SocketAddr, server: SocketAddr) -> Opened;
}

/// A kernel connection to the server.
#[derive(Debug)]
pub struct Anchor {
    /// The gateway's end.
    pub stream: TcpStream,
    /// Its place among the connections of its port, if these are limited.
    pub seat: Option<Seat>,
    /// The MTU of the path to the client, if the kernel knows it.
    pub path_mtu: Option<u32>,
}

/// What became of an anchor.
#[derive(Debug)]
pub enum Opened {
    /// The server's kernel has accepted the connection.
    Established(Anchor),
    /// The server's backlog is full. The socket is writable when there is room.
    Waiting(Anchor),
    /// Nothing listens.
    Refused,
    /// The client gets no answer, and tries again.
    Ignored,
}

/// Is told of neighbours that the worker's owner must resolve: number of the interface, address.
pub type OnUnresolved = Box<dyn FnMut(usize, IpAddr) + Send>;

/// What a worker is made of.
#[expect(missing_debug_implementations, reason = "a closure has none")]
pub struct Parts<D, A> {
    /// The queues, which this worker alone uses; at least one. Frames are sent on the first one, so
    /// that those of a connection stay in order.
    pub devices: Vec<D>,
    /// A device that leads to the kernel, if the devices do not: frames that the stack hands back
    /// go there, and the kernel's frames come from there.
    pub kernel: Option<D>,
    /// A stack with its network and its listeners, made with times of `clock`.
    pub stack: Stack,
    /// The clock of the stack.
    pub clock: Clock,
    /// The source of anchors.
    pub anchors: A,
    /// Settings of each connection towards its client.
    pub settings: Settings,
    /// Bytes of a conversation in each direction: the largest receive window.
    pub ring_bytes: u32,
    /// The memory of all rings, which all workers share.
    pub memory: Memory,
    /// How long to look for work before the worker sleeps.
    pub spin: Duration,
    /// Resolves neighbours, if that is not the task of the stack.
    pub on_unresolved: OnUnresolved,
    /// Connections of local programs, if this worker carries them.
    pub opener: Option<Opener>,
}

/// A worker.
#[expect(missing_debug_implementations, reason = "a closure has none")]
pub struct Worker<D, A> {
    devices: Vec<Captured<D, fn() -> Duration>>,
    bypass: Option<Bypass<D>>,
    stack: Stack,
    anchors: A,
    table: Table,
    poll: Poll,
    events: Events,
    clock: Clock,
    settings: Settings,
    ring_bytes: u32,
    spin: Micros,
    /// Until when the worker sleeps at once, because others want its CPU.
    contended_until: Instant,
    /// Whether a device may have frames: it tells of those that come after it was empty.
    has_frames: bool,
    /// Whether a device tells late of its frames, and is asked in each turn.
    is_polled: bool,
    on_unresolved: OnUnresolved,
    opener: Option<Opener>,
    halves: Halves,
    /// The other workers of the device.
    others: Vec<Handle>,
    inbox: Inbox,
    load: Load,
    latency: Latency,
}

/// What a turn has done.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Whether there was anything to do.
    has_worked: bool,
    /// Whether there is more, of which no event would tell.
    has_more: bool,
    /// Whether the device has no room for what is to be sent.
    is_full: bool,
}

/// Why a worker has ended.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The device does not work any more.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The kernel gives no events.
    #[error("cannot wait for events: {0}")]
    Poll(#[source] io::Error),
}

impl<D: Device, A: Anchors> Worker<D, A> {
    /// Joins the parts.
    ///
    /// # Errors
    /// If the kernel has no descriptors left for events.
    pub fn new(parts: Parts<D, A>) -> Result<Self, WorkerError> {
        let poll = Poll::new().map_err(WorkerError::Poll)?;
        let of_devices = parts.devices.iter().map(|device| (device, DEVICE));
        for (device, token) in of_devices.chain(parts.kernel.iter().map(|one| (one, KERNEL))) {
            let device = device.descriptor().as_raw_fd();
            poll.registry()
                .register(&mut SourceFd(&device), token, Interest::READABLE)
                .map_err(WorkerError::Poll)?;
        }
        for descriptor in parts.opener.iter().flat_map(Opener::descriptors) {
            poll.registry()
                .register(&mut SourceFd(&descriptor), OPENER, Interest::READABLE)
                .map_err(WorkerError::Poll)?;
        }
        let waker = Waker::new(poll.registry(), HANDLE).map_err(WorkerError::Poll)?;
        let clock: fn() -> Duration = since_epoch;
        let is_polled = parts.devices.iter().any(Device::is_polled);
        let devices = parts.devices.into_iter();
        let devices = devices.map(|device| Captured::new(device, clock));
        let inbox = Inbox::new(waker);
        let handle = inbox.handle();
        let wake = move || handle.wake();
        let mut table = Table::new(parts.ring_bytes, parts.memory, wake);
        table.tells_of_ends = parts.opener.is_some();
        Ok(Self {
            devices: devices.collect(),
            bypass: parts.kernel.map(Bypass::new),
            stack: parts.stack,
            anchors: parts.anchors,
            table,
            poll,
            events: Events::with_capacity(EVENTS),
            clock: parts.clock,
            settings: parts.settings,
            ring_bytes: parts.ring_bytes,
            spin: u64::try_from(parts.spin.as_micros()).map_or(ALWAYS, Micros),
            contended_until: Instant(0),
            has_frames: true,
            is_polled,
            on_unresolved: parts.on_unresolved,
            opener: parts.opener,
            halves: Halves::new(),
            others: Vec::new(),
            inbox,
            load: Load::new(parts.clock.now()),
            latency: Latency::new(),
        })
    }

    /// What reaches the worker from other threads.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.inbox.handle()
    }

    /// Lets other workers with the same addresses learn of neighbours from the frames of this one:
    /// answers to their requests can come on any queue of the device.
    pub fn share_with(&mut self, others: Vec<Handle>) {
        self.others = others;
    }

    /// Works until it is stopped.
    ///
    /// # Errors
    /// If the device or the kernel's events fail.
    pub fn run(&mut self) -> Result<(), WorkerError> {
        let mut worked_at = self.clock.now();
        let mut has_worked = false;
        while !self.inbox.is_stopped() {
            let now = self.clock.now();
            self.load.on_turn(has_worked, now);
            for request in self.inbox.take() {
                self.answer(request, now);
            }
            let turn = self.turn(now)?;
            has_worked = turn.has_worked;
            if has_worked {
                worked_at = now;
            }
            if turn.is_full && self.is_polled && self.spin != ALWAYS {
                // The process at the other end of the device may need this CPU to make room.
                thread::yield_now();
            }
            // A peer that makes no room must not keep this CPU busy.
            let is_stuck = turn.is_full && now.since(worked_at) >= FULL;
            let has_more = turn.has_more || turn.is_full && !is_stuck;
            let is_spinning = now.since(worked_at) < self.spin && !has_more;
            let looks = has_more || is_spinning && self.may_spin();
            let timeout = if looks || self.has_late_frames()? {
                Some(Duration::ZERO)
            } else {
                let usual = self.next_timeout().map(|at| self.clock.until(at));
                let pause = is_stuck.then(|| self.clock.until(now + FULL));
                [usual, pause].into_iter().flatten().min()
            };
            self.wait(timeout)?;
        }
        Ok(())
    }

    /// Prepares the devices for a wait. Returns whether one has frames already.
    fn has_late_frames(&mut self) -> Result<bool, WorkerError> {
        for device in &mut self.devices {
            self.has_frames |= device.before_wait()?;
        }
        Ok(self.has_frames)
    }

    /// Lets other threads run that wait for this CPU. Returns whether to look for work again.
    ///
    /// A worker sleeps if there was such a thread: otherwise, a server would lack the time that
    /// this one spends without work. On a polled device, a look costs less than a sleep, and finds
    /// what came while the other thread ran: frames are handled in larger batches. A worker that
    /// must never sleep does not ask.
    fn may_spin(&mut self) -> bool {
        if self.spin == ALWAYS {
            return true;
        }
        if self.is_polled {
            thread::yield_now();
            return true;
        }
        let before = self.clock.now();
        if before < self.contended_until {
            return false;
        }
        thread::yield_now();
        let after = self.clock.now();
        let is_alone = after.since(before) < OTHERS_TURN;
        if !is_alone {
            self.contended_until = after + CONTENDED;
        }
        is_alone
    }

    /// Does everything that can be done now.
    fn turn(&mut self, now: Instant) -> Result<Turn, WorkerError> {
        self.table.watch.turned = now;
        let received = if self.has_frames || self.is_polled {
            self.receive(now)?
        } else {
            0
        };
        let forwarded = self.forward()?;
        if received > 0 {
            let taken = self.clock.now();
            self.latency.on_received(received, &self.table.watch, taken);
        }
        self.on_timeout(now);
        // Before the new ones: the anchor of a flow must be gone when the flow begins again.
        for key in std::mem::take(&mut self.table.lost) {
            self.lose(key);
        }
        for (id, incoming) in std::mem::take(&mut self.table.incoming) {
            self.decide(id, &incoming, now);
        }
        let has_opened = self.open(now);
        for key in std::mem::take(&mut self.table.short) {
            self.limit(key, now);
        }
        // Just before their use: what happens to an empty ring gives its memory back.
        self.table.take_grants();
        let due = std::mem::take(&mut self.table.due);
        let has_moved = !due.is_empty();
        for key in due {
            self.advance(key, now);
        }
        if self.table.watch.has_moved() {
            let moved = self.clock.now();
            self.latency.on_moved(&mut self.table.watch, moved);
            self.table.settle(moved);
        }
        let (has_sent, is_full) = self.transmit(now)?;
        if !self.table.watch.sent.is_empty() {
            let sent = self.clock.now();
            self.latency.on_sent(&mut self.table.watch, sent);
        }
        while let Some((interface, address)) = self.stack.poll_unresolved(now) {
            (self.on_unresolved)(interface, address);
        }
        let kernel_waits = self.bypass.as_ref().is_some_and(|one| one.has_frames);
        let has_more = self.has_frames || kernel_waits || has_opened || self.table.has_work();
        Ok(Turn {
            has_worked: received > 0 || forwarded > 0 || has_moved || has_sent || has_more,
            has_more,
            is_full,
        })
    }

    fn next_timeout(&self) -> Option<Instant> {
        let opener = self.opener.as_ref().and_then(Opener::next_timeout);
        let half = self.halves.peek().map(|half| half.0.0);
        [self.stack.next_timeout(), opener, half]
            .into_iter()
            .flatten()
            .min()
    }

    fn on_timeout(&mut self, now: Instant) {
        if self.stack.next_timeout().is_some_and(|at| at <= now) {
            self.stack.on_timeout(now, &mut self.table);
        }
        self.end_halves(now);
        // Without random numbers, the old key holds until the next turn.
        if self.stack.cookie_key_ends() <= now
            && let Ok(key) = random::key()
        {
            self.stack.rotate_cookie_key(key, now);
        }
    }

    fn receive(&mut self, now: Instant) -> Result<usize, WorkerError> {
        let Self {
            devices,
            bypass,
            stack,
            table,
            has_frames,
            others,
            ..
        } = self;
        let mut received = 0;
        *has_frames = false;
        for device in devices {
            let count = device.receive_with_comments(BATCH, &mut |frame| {
                let state = frame.offload.checksum_state();
                let verdict = stack.on_frame(frame.bytes, state, now, table);
                if verdict == Verdict::Shared {
                    others.iter().for_each(|other| other.overhear(frame.bytes));
                }
                if verdict != Verdict::Taken
                    && let Some(bypass) = bypass
                {
                    bypass.deliver(&frame);
                }
                Some(comment(verdict))
            })?;
            *has_frames |= count == BATCH;
            received += count;
        }
        if let Some(bypass) = bypass {
            bypass.flush()?;
        }
        Ok(received)
    }

    /// Sends the kernel's frames. Returns how many there were.
    fn forward(&mut self) -> Result<usize, WorkerError> {
        match (&mut self.bypass, self.devices.first_mut()) {
            (Some(bypass), Some(port)) => Ok(bypass.forward(port)?),
            (Some(_) | None, _) => Ok(0),
        }
    }

    /// Sends what the stack has, as far as the device has room. Returns whether anything was sent,
    /// and whether there is no more room.
    fn transmit(&mut self, now: Instant) -> Result<(bool, bool), WorkerError> {
        let Some(device) = self.devices.first_mut() else {
            return Ok((false, false));
        };
        let mut has_sent = false;
        let is_full = loop {
            let Some(room) = device.room() else {
                break true;
            };
            let Some(frame) = self.stack.poll_transmit(room, now, &mut self.table) else {
                break false;
            };
            device.send(frame.length, &frame.offload);
            has_sent = true;
        };
        device.flush()?;
        Ok((has_sent, is_full))
    }

    /// Follows a change of the network.
    fn follow(&mut self, change: Change, now: Instant) {
        match change {
            Change::Network(network) => {
                let _checked = self.stack.configure(network, now);
            }
            Change::Neighbour {
                interface,
                address,
                mac: Some(mac),
            } => {
                // A neighbour for which there is no room is resolved when it is needed.
                let _has_room = self.stack.set_neighbour(interface, address, mac, now);
            }
            Change::Neighbour {
                interface,
                address,
                mac: None,
            } => self.stack.forget_neighbour(interface, address),
        }
    }

    /// Waits for frames, anchors, requests and a stop, at most `timeout`.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), WorkerError> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(WorkerError::Poll(error));
            }
            Ok(()) | Err(_) => {}
        }
        let now = self.clock.now();
        let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        for event in &events {
            match event.token() {
                DEVICE => self.has_frames = true,
                KERNEL => self.bypass.iter_mut().for_each(|one| one.has_frames = true),
                OPENER => self.opener.iter_mut().for_each(|one| one.has_news = true),
                _ => {}
            }
            if event.token() >= OPENER {
                continue;
            }
            let key = u32::try_from(event.token().0).unwrap_or(u32::MAX);
            let Some((conversation, _)) = self.table.get(key) else {
                continue;
            };
            if event.is_readable() {
                conversation.since.readable.get_or_insert(now);
            }
            let has_ended = event.is_error() || event.is_read_closed();
            conversation.is_end_near |= has_ended;
            conversation.has_mark |= event.is_priority();
            conversation.may_read |= event.is_readable() || has_ended;
            conversation.may_write |= event.is_writable() || event.is_error();
            if !conversation.is_accepted {
                self.settle(key, now);
            }
            self.table.make_due(key);
        }
        self.events = events;
        Ok(())
    }
}

/// What a capture says of a received frame.
const fn comment(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Taken => "taken by the gateway",
        Verdict::NotOurs => "left to the kernel",
        Verdict::Shared => "read by the gateway, and passed on",
    }
}
