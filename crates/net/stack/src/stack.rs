//! The stack: frames, calls and time in; frames, news and the next time-out out.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use saiga_tcp::{CookieSecret, Instant};
use saiga_wire::offload::ChecksumState;
use saiga_wire::virtio;

use crate::config::{Config, Presence};
use crate::connections::{Connections, Secrets};
use crate::counters::Counters;
use crate::fragment::Reassembly;
use crate::host::Host;
use crate::limit::RateLimit;
use crate::network::{Network, NetworkError};
use crate::owner::Owner;
use crate::path::{Paths, segment_size};

/// Answers to packets that have no connection, in a second and at once (Linux's
/// `icmp_msgs_per_sec` and `icmp_msgs_burst`).
const ERRORS_PER_SECOND: u64 = 1_000;
const ERRORS_AT_ONCE: u64 = 50;
/// Echo replies in a second and at once: `ping -f` with its usual load passes.
const ECHOES_PER_SECOND: u64 = 20_000;
const ECHOES_AT_ONCE: u64 = 200;

/// A TCP/IP host.
#[derive(Debug)]
pub struct Stack {
    pub(crate) config: Config,
    pub(crate) host: Host,
    pub(crate) connections: Connections,
    pub(crate) reassembly: Reassembly,
    /// Packets put together from fragments that the kernel should get.
    pub(crate) handed_back: VecDeque<Vec<u8>>,
    pub(crate) paths: Paths,
    pub(crate) counters: Counters,
    pub(crate) limits: Limits,
    /// The secret of SYN cookies.
    pub(crate) cookies: CookieSecret,
    /// Where the next search for a free port begins.
    pub(crate) next_port: u16,
}

/// Rate limits of answers that need no connection.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) resets: RateLimit,
    pub(crate) errors: RateLimit,
    pub(crate) echoes: RateLimit,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The frame is used up: it was for this stack, or malformed.
    Taken,
    /// The frame is not for this stack, which has not used it.
    NotOurs,
    /// The kernel and other stacks with the same addresses should get the frame, too: ARP and
    /// neighbour discovery, and errors about the size of a packet of another stack.
    Shared,
}

/// A frame that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// Bytes of the frame.
    pub length: usize,
    /// What the device must do with it.
    pub offload: virtio::Header,
}

impl Stack {
    /// A stack without interfaces and listeners. Room for the table of flows is taken at once.
    #[must_use]
    pub fn new(config: Config, secrets: Secrets, now: Instant) -> Self {
        Self {
            host: Host::new(&config, now),
            connections: Connections::new(&config, secrets, now),
            reassembly: Reassembly::default(),
            handed_back: VecDeque::new(),
            paths: Paths::default(),
            counters: Counters::default(),
            limits: Limits {
                resets: RateLimit::new(ERRORS_PER_SECOND, ERRORS_AT_ONCE),
                errors: RateLimit::new(ERRORS_PER_SECOND, ERRORS_AT_ONCE),
                echoes: RateLimit::new(ECHOES_PER_SECOND, ECHOES_AT_ONCE),
            },
            cookies: CookieSecret::new(secrets.cookies, now),
            next_port: 0,
            config,
        }
    }

    /// Replaces interfaces, addresses and routes. Connections stay; what they send follows the new
    /// routes.
    ///
    /// # Errors
    /// If the network cannot work; the old one stays.
    pub fn configure(&mut self, network: Network, now: Instant) -> Result<(), NetworkError> {
        self.host.configure(network, now)
    }

    /// The largest packets that reach `host` have `mtu` bytes, by a source that cannot be forged.
    /// This holds for connections that are established in the next ten minutes.
    pub fn learn_path_mtu(&mut self, host: IpAddr, mtu: u32, now: Instant) {
        let size = segment_size(mtu, host.is_ipv6());
        self.paths.learn(host, size, now);
    }

    /// The counts.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            neighbour_drops: self.host.neighbours.dropped,
            fragments_evicted: self.reassembly.evicted,
            ..self.counters
        }
    }

    /// Number of connections, those in handshakes and in TIME-WAIT included.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.connections.slots.len()
    }

    /// Whether there is no connection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a frame from the device: an Ethernet frame, or an IP packet on a device without a link
    /// layer.
    pub fn on_frame(
        &mut self,
        frame: &[u8],
        state: ChecksumState,
        now: Instant,
        owner: &mut impl Owner,
    ) -> Verdict {
        self.counters.in_frames += 1;
        let verdict = self.receive(frame, state, now, owner);
        let verdict = match (verdict, self.config.presence) {
            // The kernel does not use the device.
            (Verdict::NotOurs, Presence::Alone) => Verdict::Taken,
            (verdict, _) => verdict,
        };
        if verdict != Verdict::Taken && self.config.presence == Presence::BesideKernel {
            self.counters.handed_back += 1;
        }
        verdict
    }

    /// The next frame for the device, written to the front of `buffer`, until there is none.
    /// `buffer` has room for the largest frame: the MTU, or the largest super-segment with 120
    /// bytes of headers, and 22 bytes of link layer. Frames that do not fit are dropped.
    pub fn poll_transmit(
        &mut self,
        buffer: &mut [u8],
        now: Instant,
        owner: &mut impl Owner,
    ) -> Option<Outgoing> {
        let outgoing = self
            .poll_host(buffer, now)
            .or_else(|| self.poll_connections(buffer, now, owner))
            // A segment may have asked for its neighbour.
            .or_else(|| self.poll_host(buffer, now))?;
        self.counters.out_frames += 1;
        Some(outgoing)
    }

    /// A packet that was put together from fragments and is not for this stack, as
    /// [`Verdict::NotOurs`] says of frames: an IP packet without a link layer, up to 65,535 bytes
    /// long. Beside the kernel, the caller asks after each frame that was taken.
    pub fn poll_handed_back(&mut self) -> Option<Vec<u8>> {
        self.handed_back.pop_front()
    }

    /// The instant at which [`Self::on_timeout`] must be called, if no frame or call changes that.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let connections = self.connections.next_timeout();
        let neighbours = self.host.neighbours.next_timeout();
        earlier(
            earlier(connections, neighbours),
            self.reassembly.next_timeout(),
        )
    }

    /// Handles what is due. Calls that come too early do nothing.
    pub fn on_timeout(&mut self, now: Instant, owner: &mut impl Owner) {
        let neighbours = &mut self.host.neighbours;
        self.connections
            .on_timeout(&mut self.counters, neighbours, now, owner);
        self.host.neighbours.on_timeout(now);
        self.fail_unreachable(now, owner);
        self.expire_fragments(now);
    }

    /// A frame of the host below TCP.
    #[inline]
    fn poll_host(&mut self, buffer: &mut [u8], now: Instant) -> Option<Outgoing> {
        if !self.host.has_frames() {
            return None;
        }
        while let Some((frame, offload)) = self.host.poll(now) {
            let length = frame.len();
            if let Some(room) = buffer.get_mut(..length) {
                room.copy_from_slice(&frame);
                return Some(Outgoing { length, offload });
            }
            self.counters.answers_dropped += 1;
        }
        None
    }

    fn expire_fragments(&mut self, now: Instant) {
        let expired: Vec<_> = core::iter::from_fn(|| self.reassembly.expire(now)).collect();
        for packet in expired {
            self.counters.fragments_expired += 1;
            self.on_reassembly_timeout(&packet, now);
        }
    }
}

/// The earlier one of two instants, of which both can be missing.
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
