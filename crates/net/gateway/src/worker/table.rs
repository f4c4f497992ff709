//! All conversations of a worker, found by the stack's numbers and by the poll's tokens; and those
//! that wait for memory.

use std::sync::Arc;

use mio::Token;
use saiga_stack::{CloseReason, ConnectionId, Events, Incoming, Instant, Owner};
use slab::Slab;

use super::budget::{Mailbox, Memory};
use super::buffer::{Pool, Pools};
use super::conversation::Conversation;
use super::latency::Watch;
use super::report::Rings;

/// No conversation.
const NONE: u32 = u32::MAX;

/// The conversations: the owner of the stack's buffers.
#[derive(Debug)]
pub(crate) struct Table {
    conversations: Slab<Conversation>,
    /// Keys of conversations by the places of their connections in the stack.
    by_connection: Vec<u32>,
    pools: Pools,
    /// Requests for connections that wait for a decision.
    pub(crate) incoming: Vec<(ConnectionId, Incoming)>,
    /// Keys of conversations with work.
    pub(crate) due: Vec<u32>,
    /// Keys of conversations whose clients are gone.
    pub(crate) lost: Vec<u32>,
    /// Keys of conversations that wait for the remote host, and its answer: whether the connection
    /// is established, or why it has ended.
    pub(crate) answered: Vec<(u32, Option<CloseReason>)>,
    /// Connections that the stack has forgotten; only if [`Self::tells_of_ends`].
    pub(crate) ended: Vec<ConnectionId>,
    pub(crate) tells_of_ends: bool,
    /// Keys of conversations without memory for what their clients have sent.
    pub(crate) short: Vec<u32>,
    /// What the present turn has to measure.
    pub(crate) watch: Watch,
}

impl Table {
    /// A table with rings of at most `ring_bytes` bytes. `wake` wakes its worker.
    pub(crate) fn new(
        ring_bytes: u32,
        memory: Memory,
        wake: impl Fn() + Clone + Send + Sync + 'static,
    ) -> Self {
        let pool = |budget, mailbox: Arc<Mailbox>| Pool::new(ring_bytes, budget, mailbox);
        Self {
            conversations: Slab::new(),
            by_connection: Vec::new(),
            pools: Pools {
                inbound: pool(memory.inbound, Mailbox::new(wake.clone())),
                outbound: pool(memory.outbound, Mailbox::new(wake)),
            },
            incoming: Vec::new(),
            due: Vec::new(),
            lost: Vec::new(),
            answered: Vec::new(),
            ended: Vec::new(),
            tells_of_ends: false,
            short: Vec::new(),
            watch: Watch::new(),
        }
    }

    /// Whether anything waits for the next turn.
    pub(crate) const fn has_work(&self) -> bool {
        let Self {
            incoming,
            due,
            lost,
            short,
            answered,
            ..
        } = self;
        !(incoming.is_empty()
            && due.is_empty()
            && lost.is_empty()
            && short.is_empty()
            && answered.is_empty())
    }

    /// Number of conversations.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.conversations.len()).unwrap_or(u32::MAX)
    }

    /// Bytes of the memory that rings have.
    pub(crate) const fn ring_bytes(&self) -> u64 {
        self.pools.inbound.lent_bytes() + self.pools.outbound.lent_bytes()
    }

    /// The rings of a connection's conversation, if it has one.
    pub(crate) fn rings(&self, id: ConnectionId) -> Option<Rings> {
        let conversation = self.conversations.get(self.key(id)? as usize)?;
        Some(Rings {
            // The remote host, not a server here, is asked for connections of local programs.
            is_accepted: conversation.is_accepted || conversation.anchor.is_none(),
            inbound: conversation.inbound.len(),
            outbound: conversation.outbound.len(),
            capacity: self.pools.inbound.capacity(),
        })
    }

    /// Adds a conversation; returns its key.
    pub(crate) fn add(&mut self, id: ConnectionId, conversation: Conversation) -> u32 {
        let key = u32::try_from(self.conversations.insert(conversation)).unwrap_or(NONE);
        let place = id.index() as usize;
        if self.by_connection.len() <= place {
            self.by_connection.resize(place + 1, NONE);
        }
        self.by_connection[place] = key;
        key
    }

    /// The conversation with a key, and the pools.
    pub(crate) fn get(&mut self, key: u32) -> Option<(&mut Conversation, &mut Pools)> {
        let conversation = self.conversations.get_mut(key as usize)?;
        Some((conversation, &mut self.pools))
    }

    /// Removes a conversation.
    pub(crate) fn remove(&mut self, key: u32) -> Option<Conversation> {
        let mut conversation = self.conversations.try_remove(key as usize)?;
        if let Some(id) = conversation.connection {
            self.forget(id);
        }
        conversation.inbound.give_back(&mut self.pools.inbound);
        conversation.outbound.give_back(&mut self.pools.outbound);
        Some(conversation)
    }

    /// The conversation waits for memory for bytes of its client.
    pub(crate) fn await_inbound(&mut self, key: u32) {
        if let Some(conversation) = self.conversations.get_mut(key as usize)
            && !conversation.awaits_inbound
        {
            conversation.awaits_inbound = true;
            self.pools.inbound.wait(key);
        }
    }

    /// The conversation waits for memory for bytes of its server.
    pub(crate) fn await_outbound(&mut self, key: u32) {
        if let Some(conversation) = self.conversations.get_mut(key as usize)
            && !conversation.awaits_outbound
        {
            conversation.awaits_outbound = true;
            self.pools.outbound.wait(key);
        }
    }

    /// Hands granted memory to the conversations that wait; they have work then. A conversation
    /// that has ended, or has got memory in another way, has left its place to the next one.
    pub(crate) fn take_grants(&mut self) {
        for _ in 0..self.pools.inbound.granted() {
            self.grant_inbound();
        }
        for _ in 0..self.pools.outbound.granted() {
            self.grant_outbound();
        }
    }

    fn grant_inbound(&mut self) {
        while let Some(key) = self.pools.inbound.next_waiting() {
            if let Some(conversation) = self.conversations.get_mut(key as usize)
                && std::mem::take(&mut conversation.awaits_inbound)
                && conversation.inbound.size() == 0
            {
                conversation.inbound.grant(&mut self.pools.inbound);
                return self.make_due(key);
            }
        }
        self.pools.inbound.give_grant_back();
    }

    fn grant_outbound(&mut self) {
        while let Some(key) = self.pools.outbound.next_waiting() {
            if let Some(conversation) = self.conversations.get_mut(key as usize)
                && std::mem::take(&mut conversation.awaits_outbound)
                && conversation.connection.is_some()
                && conversation.outbound.size() == 0
            {
                conversation.outbound.grant(&mut self.pools.outbound);
                return self.make_due(key);
            }
        }
        self.pools.outbound.give_grant_back();
    }

    /// The conversation has work.
    pub(crate) fn make_due(&mut self, key: u32) {
        if let Some(conversation) = self.conversations.get_mut(key as usize)
            && !conversation.is_due
        {
            conversation.is_due = true;
            self.due.push(key);
        }
    }

    /// Notes which bytes of a conversation have moved.
    pub(crate) fn note(&mut self, key: u32) {
        let Some(conversation) = self.conversations.get_mut(key as usize) else {
            return;
        };
        let since = &mut conversation.since;
        if conversation.inbound.is_empty() {
            self.watch.written.extend(since.inbound.take());
        }
        if std::mem::take(&mut since.is_filled) {
            // Bytes that are read without an event are as old as the turn.
            let turned = self.watch.turned;
            self.watch
                .read
                .push(since.readable.take().unwrap_or(turned));
            self.watch.filled.push(key);
        }
    }

    /// The bytes that have moved into rings towards clients wait there from `now` on.
    pub(crate) fn settle(&mut self, now: Instant) {
        for key in self.watch.filled.drain(..) {
            if let Some(conversation) = self.conversations.get_mut(key as usize) {
                conversation.since.outbound.get_or_insert(now);
            }
        }
    }

    /// The token of a conversation in the poll.
    pub(crate) const fn token(key: u32) -> Token {
        Token(key as usize)
    }

    /// The key of a connection's conversation, if it has one.
    fn key(&self, id: ConnectionId) -> Option<u32> {
        let key = *self.by_connection.get(id.index() as usize)?;
        let conversation = self.conversations.get(key as usize)?;
        (conversation.connection == Some(id)).then_some(key)
    }

    fn of(&mut self, id: ConnectionId) -> Option<(&mut Conversation, &mut Pools)> {
        let key = self.key(id)?;
        self.get(key)
    }

    fn forget(&mut self, id: ConnectionId) {
        if let Some(key) = self.by_connection.get_mut(id.index() as usize) {
            *key = NONE;
        }
    }
}

impl Owner for Table {
    fn on_incoming(&mut self, id: ConnectionId, incoming: &Incoming) {
        self.incoming.push((id, *incoming));
    }

    fn on_events(&mut self, id: ConnectionId, events: &Events) {
        if self.tells_of_ends && events.closed.is_some() {
            self.ended.push(id);
        }
        let Some(key) = self.key(id) else {
            return;
        };
        let turned = self.watch.turned;
        let Some((conversation, pools)) = self.get(key) else {
            return;
        };
        let pool = &mut pools.outbound;
        conversation.outbound.consume(events.acked, pool);
        conversation.inbound.extend(events.readable);
        if events.readable > 0 {
            conversation.since.inbound.get_or_insert(turned);
        }
        conversation.has_client_ended |= events.is_finished;
        conversation.has_urgent |= events.is_urgent;
        let is_opening = conversation.anchor.is_none();
        if let Some(reason) = events.closed {
            conversation.connection = None;
            conversation.outbound.give_back(pool);
            self.forget(id);
            if is_opening {
                self.answered.push((key, Some(reason)));
                return;
            }
            if reason != CloseReason::Finished {
                self.lost.push(key);
                return;
            }
        }
        if is_opening && events.is_established {
            self.answered.push((key, None));
        }
        self.make_due(key);
    }

    fn room(&mut self, id: ConnectionId, end: u32) -> u32 {
        let Some((conversation, pools)) = self.of(id) else {
            return u32::MAX;
        };
        let end = end.min(pools.inbound.capacity());
        let room = conversation.inbound.reserve(end, &mut pools.inbound);
        if room < end
            && let Some(key) = self.key(id)
        {
            self.short.push(key);
        }
        room
    }

    fn place(&mut self, id: ConnectionId, at: u32, bytes: &[u8]) {
        if let Some((conversation, _)) = self.of(id) {
            conversation.inbound.place(at, bytes);
        }
    }

    fn fetch(&mut self, id: ConnectionId, at: u32, into: &mut [u8]) {
        let Some((conversation, _)) = self.of(id) else {
            return;
        };
        conversation.outbound.copy(at, into);
        let since = conversation.since.outbound.take();
        self.watch.sent.extend(since);
    }
}
