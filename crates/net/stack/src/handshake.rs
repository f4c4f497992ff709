//! Passive opens: SYNs, the decision of the owner, and SYN cookies.
//!
//! Spec: RFC 9293 §3.10.7.2, RFC 4987 §3.6. The owner decides before this host answers, so that a
//! refusal, silence and acceptance can follow a real listener elsewhere. Beyond the backlog, or a
//! thousand handshakes in a second, a SYN is answered with a cookie, and the owner decides about
//! connections of peers that have proven their address.

use alloc::boxed::Box;
use alloc::vec::Vec;

use saiga_tcp::{Arrival, Connection, Context, Events, Instant, Place};
use saiga_wire::offload::Fill;
use saiga_wire::tcp::{Flags, Header, Segment};

use crate::connections::UNDECIDED;
use crate::flow::Flow;
use crate::host::header;
use crate::listener::{Listen, ListenerId};
use crate::owner::{Incoming, Owner};
use crate::slab::ConnectionId;
use crate::slot::{Proven, Slot, State};
use crate::stack::Stack;

/// Takes no payload: the connection has no buffer yet.
pub(crate) struct NoPlace;

impl Place for NoPlace {
    fn place(&mut self, _from: u32, _to: u32, _length: u32) {}

    fn room(&mut self, _end: u32) -> u32 {
        0
    }
}

impl Stack {
    /// Accepts a connection with a receive buffer of `buffer` bytes, which is at least as large as
    /// [`Listen::buffer`]. Does nothing if the peer has given up.
    pub fn accept(&mut self, id: ConnectionId, buffer: u32, now: Instant, owner: &mut impl Owner) {
        let Some(slot) = self.connections.slots.get_mut(id) else {
            return;
        };
        let flow = slot.flow;
        match &mut slot.state {
            State::Undecided { syn, .. } => {
                let syn = *syn;
                let start = self.connections.start(&flow, buffer, now);
                self.begin(id, |context| Connection::accept(start, &syn, context), now);
            }
            State::Proven(proven) => {
                proven.connection.resize(buffer);
                let mut connection = proven.connection.clone();
                let held = self.connections.take_held(id);
                let size = self.paths.to(flow.remote().ip(), now);
                let known = |context: &mut Context<'_>| {
                    if let Some(size) = size {
                        connection.on_path_mtu(size, context);
                    }
                    connection
                };
                self.begin(id, known, now);
                let established = Events {
                    is_established: true,
                    ..Events::default()
                };
                self.connections.report(id, &established, owner);
                for held in held {
                    let segment = Segment {
                        header: held.header,
                        payload: &held.payload,
                    };
                    // None of them is a SYN, which alone could begin another connection.
                    let _other = self.on_known(id.index(), &segment, held.is_congested, now, owner);
                }
            }
            State::Engine(_) => {}
        }
    }

    /// Refuses a connection with a reset.
    pub fn refuse(&mut self, id: ConnectionId, now: Instant) {
        let Some(slot) = self.connections.slots.get_mut(id) else {
            return;
        };
        let flow = slot.flow;
        match &mut slot.state {
            State::Undecided { syn, .. } => {
                let syn = *syn;
                self.connections.remove(id.index());
                self.reset(&flow, &syn, 0, now);
            }
            State::Proven(proven) => {
                let connection = proven.connection.clone();
                let _unread = self.connections.take_held(id);
                self.begin(id, |_| connection, now);
                let _closed = self.abort(id, now);
            }
            State::Engine(_) => {}
        }
    }

    /// Leaves a connection without an answer, as a filter would.
    pub fn ignore(&mut self, id: ConnectionId) {
        let state = self.connections.slots.get_mut(id).map(|slot| &slot.state);
        if let Some(State::Undecided { .. } | State::Proven(_)) = state {
            self.connections.remove(id.index());
        }
    }

    /// Gives a new key to SYN cookies, 128 random bits: once an hour, at
    /// [`Self::cookie_key_ends`].
    pub fn rotate_cookie_key(&mut self, key: [u64; 2], now: Instant) {
        self.cookies.rotate(key, now);
    }

    /// When SYN cookies should get a new key.
    #[must_use]
    pub fn cookie_key_ends(&self) -> Instant {
        self.cookies.rotates_at()
    }

    /// A SYN for a listener.
    pub(crate) fn on_syn(
        &mut self,
        listener: ListenerId,
        flow: &Flow,
        syn: &Header,
        now: Instant,
        owner: &mut impl Owner,
    ) {
        let Some(settings) = self.settings_of(flow) else {
            self.counters.no_route += 1;
            return;
        };
        if !self.connections.listeners.begin(listener, now) {
            self.on_syn_beyond(listener, flow, syn, settings, now);
            return;
        }
        let state = State::Undecided {
            syn: *syn,
            until: now + UNDECIDED,
        };
        self.ask(listener, flow, settings, state, owner);
    }

    /// A segment that may have a SYN cookie; false if none was sent to its peer.
    ///
    /// A segment without a valid cookie is dropped: the one with the cookie can be lost or late,
    /// and the peer sends it again. Linux resets such a connection.
    pub(crate) fn on_cookie(
        &mut self,
        listener: ListenerId,
        flow: &Flow,
        (segment, is_congested): (&Segment<'_>, bool),
        now: Instant,
        owner: &mut impl Owner,
    ) -> bool {
        let Some((baked, settings)) = self.baked(listener, flow, now) else {
            return false;
        };
        let mut counters = core::mem::take(&mut self.counters.tcp);
        let opened = self.of_cookie(baked, settings, flow, segment, &mut counters, now);
        self.counters.tcp = counters;
        let Some(connection) = opened else {
            return true;
        };
        // Those that have proven their address count as handshakes no longer.
        let state = State::Proven(Box::new(Proven {
            connection,
            until: now + UNDECIDED,
            held: Vec::new(),
        }));
        if let Some(id) = self.ask_uncounted(listener, flow, settings, state, owner) {
            self.on_undecided(id, segment, is_congested, now, owner);
        }
        true
    }

    /// Whether a segment has a valid cookie for its listener; `None` if none was sent to its peer.
    #[cold]
    pub(crate) fn has_cookie(
        &mut self,
        flow: &Flow,
        segment: &Segment<'_>,
        now: Instant,
    ) -> Option<bool> {
        let listener = self.connections.listeners.find(flow.local())?;
        let (baked, settings) = self.baked(listener, flow, now)?;
        let mut counters = saiga_tcp::Counters::default();
        let opened = self.of_cookie(baked, settings, flow, segment, &mut counters, now);
        Some(opened.is_some())
    }

    /// The listener and the settings of a flow to which a cookie was sent.
    fn baked(&mut self, listener: ListenerId, flow: &Flow, now: Instant) -> Option<(Listen, u8)> {
        if !self.connections.may_be_baked(flow, now) {
            return None;
        }
        let listen = self.connections.listeners.with_cookies(listener);
        listen.zip(self.settings_of(flow))
    }

    /// The connection that a segment with a cookie begins.
    fn of_cookie(
        &self,
        listen: Listen,
        settings: u8,
        flow: &Flow,
        segment: &Segment<'_>,
        counters: &mut saiga_tcp::Counters,
        now: Instant,
    ) -> Option<Connection> {
        let start = self.connections.start(flow, listen.buffer, now);
        let header = Header {
            flags: segment.header.flags.without(Flags::FIN),
            ..segment.header
        };
        let arrival = Arrival {
            header: &header,
            length: 0,
            is_congested: false,
        };
        let mut context = Context {
            now,
            config: self.connections.settings.get(settings),
            counters,
        };
        let key = flow.key();
        let cookie = (&self.cookies, key.bytes());
        let opened = Connection::from_cookie(cookie, start, &arrival, &mut NoPlace, &mut context);
        opened.map(|(connection, _established)| connection)
    }

    /// A SYN beyond the backlog or its rate: a cookie answers it, or nothing does.
    fn on_syn_beyond(
        &mut self,
        listener: ListenerId,
        flow: &Flow,
        syn: &Header,
        settings: u8,
        now: Instant,
    ) {
        let Some(Listen { buffer, .. }) = self.connections.listeners.with_cookies(listener) else {
            self.counters.syns_dropped += 1;
            return;
        };
        self.connections.bake(flow, now);
        let start = self.connections.start(flow, buffer, now);
        let mut context = Context {
            now,
            config: self.connections.settings.get(settings),
            counters: &mut self.counters.tcp,
        };
        let key = flow.key();
        let answer = self.cookies.syn_ack(key.bytes(), &start, syn, &mut context);
        let answer = Header {
            ports: flow.ports,
            ..answer
        };
        let network = header(&flow.addresses);
        self.host
            .send(flow.addresses, now, &mut self.counters, |writer| {
                writer.tcp(&network, &answer, &[], Fill::Checksum)
            });
    }

    /// Asks the owner about a connection that counts as a handshake of its listener.
    fn ask(
        &mut self,
        listener: ListenerId,
        flow: &Flow,
        settings: u8,
        state: State,
        owner: &mut impl Owner,
    ) {
        match self.ask_uncounted(listener, flow, settings, state, owner) {
            Some(id) => {
                if let Some(slot) = self.connections.slots.get_mut(id) {
                    slot.listener = Some(listener);
                }
            }
            None => self.connections.listeners.end(listener),
        }
    }

    fn ask_uncounted(
        &mut self,
        listener: ListenerId,
        flow: &Flow,
        settings: u8,
        state: State,
        owner: &mut impl Owner,
    ) -> Option<ConnectionId> {
        let slot = Slot::new(*flow, settings, state);
        let Some(id) = self.connections.add(slot) else {
            self.counters.table_full += 1;
            return None;
        };
        self.connections.make_ready(id.index());
        let incoming = Incoming {
            listener,
            flow: *flow,
        };
        owner.on_incoming(id, &incoming);
        Some(id)
    }

    /// Gives a connection its engine.
    fn begin(
        &mut self,
        id: ConnectionId,
        connection: impl FnOnce(&mut Context<'_>) -> Connection,
        now: Instant,
    ) {
        if let Some(slot) = self.connections.slots.get_mut(id) {
            let mut context = Context {
                now,
                config: self.connections.settings.get(slot.settings),
                counters: &mut self.counters.tcp,
            };
            slot.state = State::Engine(connection(&mut context));
            self.connections.make_ready(id.index());
        }
    }

    /// The TCP settings for connections of a flow; `None` without a route.
    pub(crate) fn settings_of(&mut self, flow: &Flow) -> Option<u8> {
        let (own, peer) = (flow.addresses.source(), flow.addresses.destination());
        let path = self.host.routing.path(own, peer)?;
        let interface = self.host.routing.interface(path.interface)?;
        Some(self.connections.settings.of(interface, flow.is_v6()))
    }
}
