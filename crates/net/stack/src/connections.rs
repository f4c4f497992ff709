//! All connections: found by flow, with their timers, and those that may have something to send.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use saiga_tcp::{
    Arrival, CloseReason, Connection, Context, Events, Instant, IssGenerator, Micros, Start,
};

use crate::baked::Baked;
use crate::config::Config;
use crate::counters::Counters;
use crate::flow::{Flow, FlowTable};
use crate::listener::Listeners;
use crate::neighbour::Neighbours;
use crate::owner::Owner;
use crate::settings::SizedSettings;
use crate::slab::{ConnectionId, Slab};
use crate::slot::{Held, Slot, State};
use crate::wheel::Wheel;

/// How long the owner may take to decide about a SYN. Linux's clients give up after 127 s.
pub(crate) const UNDECIDED: Micros = Micros::from_secs(120);

/// Most segments of a connection that wait for the owner's decision: those of an initial window
/// (RFC 6928).
const MOST_HELD: usize = 10;
/// Bytes of these segments of all connections.
const MOST_HELD_BYTES: usize = 4 << 20;

/// Secrets of a stack: random bits from the operating system.
#[derive(Clone, Copy)]
pub struct Secrets {
    /// Key of the hash of flows.
    pub flows: [u64; 2],
    /// Key of initial sequence numbers and of port numbers.
    pub sequence_numbers: [u64; 2],
    /// First key of SYN cookies.
    pub cookies: [u64; 2],
}

impl core::fmt::Debug for Secrets {
    /// Does not show the keys.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secrets")
    }
}

/// The connections of a stack.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) slots: Slab<Slot>,
    pub(crate) listeners: Listeners,
    pub(crate) settings: SizedSettings,
    pub(crate) iss: IssGenerator,
    baked: Baked,
    /// Bytes of all segments that wait for the owner's decision.
    held_bytes: usize,
    flows: FlowTable,
    timers: Wheel,
    /// Connections that may have something to send, each once.
    ready: VecDeque<u32>,
    /// Connections in TIME-WAIT, the oldest first, and some that have ended since.
    waiting: VecDeque<ConnectionId>,
    most_waiting: u32,
}

impl Connections {
    pub(crate) fn new(config: &Config, secrets: Secrets, now: Instant) -> Self {
        let limit = config.most_connections.min(1 << 31);
        Self {
            slots: Slab::new(limit),
            listeners: Listeners::default(),
            settings: SizedSettings::new(&config.tcp),
            iss: IssGenerator::new(secrets.sequence_numbers),
            baked: Baked::default(),
            held_bytes: 0,
            flows: FlowTable::new(limit, secrets.flows),
            timers: Wheel::new(now),
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            most_waiting: config.most_time_wait,
        }
    }

    /// The place of the connection of a flow.
    #[inline]
    pub(crate) fn find(&self, flow: &Flow) -> Option<u32> {
        let is_same = |index| self.slots.at(index).is_some_and(|slot| slot.flow == *flow);
        self.flows.find(flow, is_same)
    }

    /// Adds a connection. `None` if there are too many.
    pub(crate) fn add(&mut self, slot: Slot) -> Option<ConnectionId> {
        let flow = slot.flow;
        let id = self.slots.insert(slot).ok()?;
        self.flows.insert(&flow, id.index());
        Some(id)
    }

    /// Removes a connection. The owner is told elsewhere.
    pub(crate) fn remove(&mut self, index: u32) {
        if let Some(slot) = self.slots.remove(index) {
            self.flows.remove(&slot.flow, index);
            self.timers.cancel(index);
            if let State::Proven(proven) = &slot.state {
                self.held_bytes -= proven.held_bytes();
            }
            if let Some(listener) = slot.listener {
                self.listeners.end(listener);
            }
        }
    }

    /// A SYN cookie is sent to a flow.
    pub(crate) fn bake(&mut self, flow: &Flow, now: Instant) {
        self.baked.note(self.flows.hash(flow), now);
    }

    /// Whether a cookie of the flow can still come back.
    pub(crate) fn may_be_baked(&self, flow: &Flow, now: Instant) -> bool {
        self.baked.may_have(self.flows.hash(flow), now)
    }

    /// Keeps a segment until the owner has decided. Without room, the segment is dropped: the peer
    /// sends it again.
    pub(crate) fn hold(&mut self, id: ConnectionId, arrival: &Arrival<'_>, payload: &[u8]) {
        let has_room = self.held_bytes + payload.len() <= MOST_HELD_BYTES;
        let slot = self.slots.get_mut(id).filter(|_| has_room);
        if let Some(State::Proven(proven)) = slot.map(|slot| &mut slot.state)
            && proven.held.len() < MOST_HELD
        {
            proven.held.push(Held {
                header: *arrival.header,
                payload: payload.into(),
                is_congested: arrival.is_congested,
            });
            self.held_bytes += payload.len();
        }
    }

    /// The segments that have waited for the owner's decision.
    pub(crate) fn take_held(&mut self, id: ConnectionId) -> Vec<Held> {
        let slot = self.slots.get_mut(id);
        let Some(State::Proven(proven)) = slot.map(|slot| &mut slot.state) else {
            return Vec::new();
        };
        self.held_bytes -= proven.held_bytes();
        core::mem::take(&mut proven.held)
    }

    /// What a new connection starts with.
    pub(crate) fn start(&self, flow: &Flow, buffer: u32, now: Instant) -> Start {
        let key = flow.key();
        Start {
            iss: self.iss.iss(key.bytes(), now),
            timestamp_offset: self.iss.timestamp_offset(key.bytes()),
            buffer,
        }
    }

    /// Runs the engine of a connection. Afterwards the connection may have something to send.
    pub(crate) fn with_engine<R>(
        &mut self,
        id: ConnectionId,
        counters: &mut Counters,
        now: Instant,
        run: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let slot = self.slots.get_mut(id)?;
        let State::Engine(connection) = &mut slot.state else {
            return None;
        };
        let mut context = Context {
            now,
            config: self.settings.get(slot.settings),
            counters: &mut counters.tcp,
        };
        let result = run(connection, &mut context);
        if !core::mem::replace(&mut slot.is_ready, true) {
            self.queue(id.index());
        }
        Some(result)
    }

    /// The connection may have something to send; its timer is set when it has nothing left.
    #[inline]
    pub(crate) fn make_ready(&mut self, index: u32) {
        if let Some(slot) = self.slots.at_mut(index)
            && !slot.is_ready
        {
            slot.is_ready = true;
            self.queue(index);
        }
    }

    /// Queues a connection that was marked as ready.
    #[inline]
    pub(crate) fn queue(&mut self, index: u32) {
        self.ready.push_back(index);
    }

    /// The next connection that may have something to send. It is asked until it has nothing; then
    /// [`Self::settle`] follows.
    #[inline]
    pub(crate) fn next_ready(&self) -> Option<u32> {
        self.ready.front().copied()
    }

    /// The other connections go first before this one sends again.
    pub(crate) fn rotate_ready(&mut self) {
        if self.ready.len() > 1 {
            self.ready.rotate_left(1);
        }
    }

    /// The first ready connection has nothing to send: its timer is set, or it is removed.
    pub(crate) fn settle(&mut self, counters: &mut Counters, now: Instant, owner: &mut impl Owner) {
        let Some(index) = self.ready.pop_front() else {
            return;
        };
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        slot.is_ready = false;
        let (is_closed, is_time_wait, timeout) = match &slot.state {
            State::Undecided { until, .. } => (false, false, Some(*until)),
            State::Proven(proven) => (false, false, Some(proven.until)),
            State::Engine(connection) => {
                let context = Context {
                    now,
                    config: self.settings.get(slot.settings),
                    counters: &mut counters.tcp,
                };
                let timeout = connection.next_timeout(&context);
                (connection.is_closed(), connection.is_time_wait(), timeout)
            }
        };
        if is_closed {
            self.remove(index);
            return;
        }
        if is_time_wait && !slot.is_waiting {
            slot.is_waiting = true;
            self.wait(index, counters, owner);
        }
        if let Some(at) = timeout {
            self.timers.set_at_latest(index, at);
        }
    }

    /// Counts a connection in TIME-WAIT; the oldest gives way if there are too many.
    fn wait(&mut self, index: u32, counters: &mut Counters, owner: &mut impl Owner) {
        self.waiting.extend(self.slots.id(index));
        while self.waiting.len() > self.most_waiting as usize {
            let Some(oldest) = self.waiting.pop_front() else {
                return;
            };
            // Those that have ended are only forgotten.
            if self.slots.get_mut(oldest).is_some() {
                counters.time_wait_overflow += 1;
                self.end(oldest, CloseReason::Finished, owner);
            }
        }
    }

    /// Tells the owner what has happened to a connection.
    pub(crate) fn report(&mut self, id: ConnectionId, events: &Events, owner: &mut impl Owner) {
        if *events != Events::default() {
            self.note(id, events);
            owner.on_events(id, events);
        }
    }

    /// A handshake that has ended leaves the backlog of its listener.
    pub(crate) fn note(&mut self, id: ConnectionId, events: &Events) {
        if (events.is_established || events.closed.is_some())
            && let Some(slot) = self.slots.get_mut(id)
            && let Some(listener) = slot.listener.take()
        {
            self.listeners.end(listener);
        }
    }

    /// The next instant at which [`Self::on_timeout`] has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Handles the time-outs that are due.
    pub(crate) fn on_timeout(
        &mut self,
        counters: &mut Counters,
        neighbours: &mut Neighbours,
        now: Instant,
        owner: &mut impl Owner,
    ) {
        while let Some(index) = self.timers.expire(now) {
            let Some(id) = self.slots.id(index) else {
                continue;
            };
            let run = |connection: &mut Connection, context: &mut Context<'_>| {
                connection.on_timeout(context)
            };
            let Some(events) = self.with_engine(id, counters, now, run) else {
                self.on_undecided(id, now, owner);
                continue;
            };
            // RFC 9293 §3.8.3 R1: the neighbour may be gone.
            if events.is_doubtful
                && let Some(slot) = self.slots.get_mut(id)
                && let Some(neighbour) = slot.neighbour(neighbours.epoch())
            {
                neighbours.doubt(neighbour, now);
            }
            self.report(id, &events, owner);
        }
    }

    /// The owner has not decided about a connection yet.
    fn on_undecided(&mut self, id: ConnectionId, now: Instant, owner: &mut impl Owner) {
        let Some(slot) = self.slots.get_mut(id) else {
            return;
        };
        let until = match &slot.state {
            State::Undecided { until, .. } => *until,
            State::Proven(proven) => proven.until,
            State::Engine(_) => return,
        };
        if until > now {
            self.timers.set_at_latest(id.index(), until);
        } else {
            self.end(id, CloseReason::TimedOut, owner);
        }
    }

    /// Removes a connection, and tells the owner.
    pub(crate) fn end(&mut self, id: ConnectionId, reason: CloseReason, owner: &mut impl Owner) {
        let events = Events {
            closed: Some(reason),
            ..Events::default()
        };
        self.report(id, &events, owner);
        self.remove(id.index());
    }
}
