//! The conversations of a worker: begun, moved on and ended, as the stack and the anchors tell.

use mio::Interest;
use saiga_anchor::urgent;
use saiga_netdev::Device;
use saiga_stack::{ConnectionId, Incoming, Instant};

use super::conversation::{Conversation, Next};
use super::table::Table;
use super::{Anchors, Opened, Worker};

impl<D: Device, A: Anchors> Worker<D, A> {
    /// A client asks for a connection: the server's kernel decides.
    pub(super) fn decide(&mut self, id: ConnectionId, incoming: &Incoming, now: Instant) {
        if self.stack.flow(id).is_none() {
            return; // The client has given up in the same batch.
        }
        let (client, server) = (incoming.flow.remote(), incoming.flow.local());
        let (anchor, is_accepted) = match self.anchors.open(client, server) {
            Opened::Established(anchor) => (anchor, true),
            Opened::Waiting(anchor) => (anchor, false),
            Opened::Refused => return self.stack.refuse(id, now),
            Opened::Ignored => return self.stack.ignore(id),
        };
        if let Some(mtu) = anchor.path_mtu {
            self.stack.learn_path_mtu(client.ip(), mtu, now);
        }
        let conversation = Conversation::new(id, anchor, is_accepted);
        let key = self.table.add(id, conversation);
        if !self.watch(key) {
            self.table.remove(key);
            return self.stack.ignore(id);
        }
        if is_accepted {
            self.accept(id, now);
        }
    }

    /// Answers the client's SYN.
    fn accept(&mut self, id: ConnectionId, now: Instant) {
        let Self { stack, table, .. } = self;
        stack.accept(id, self.ring_bytes, now, table);
        stack.set(id, self.settings, now);
    }

    /// Asks for the events of an anchor; false if the kernel cannot give them.
    pub(super) fn watch(&mut self, key: u32) -> bool {
        let Some((conversation, _)) = self.table.get(key) else {
            return false;
        };
        let Some(anchor) = &mut conversation.anchor else {
            return false;
        };
        let interest = Interest::READABLE | Interest::WRITABLE | Interest::PRIORITY;
        let registry = self.poll.registry();
        urgent::keep_in_stream(&*anchor).is_ok()
            && registry
                .register(anchor, Table::token(key), interest)
                .is_ok()
    }

    /// The server has accepted an anchor that waited, or has refused it.
    pub(super) fn settle(&mut self, key: u32, now: Instant) {
        let Some((conversation, _)) = self.table.get(key) else {
            return;
        };
        let (Some(id), Some(anchor)) = (conversation.connection, &conversation.anchor) else {
            return;
        };
        if let Ok(Some(_)) | Err(_) = anchor.take_error() {
            self.table.remove(key);
            self.stack.refuse(id, now);
        } else if anchor.peer_addr().is_ok() {
            conversation.is_accepted = true;
            self.accept(id, now);
        }
    }

    pub(super) fn advance(&mut self, key: u32, now: Instant) {
        let Some((conversation, pools)) = self.table.get(key) else {
            return;
        };
        conversation.is_due = false;
        if !conversation.is_accepted {
            return;
        }
        let next = conversation.advance(&mut self.stack, pools, now);
        let connection = conversation.connection;
        if conversation.lacks_outbound() {
            self.table.await_outbound(key);
        }
        self.table.note(key);
        match next {
            Next::Wait => self.watch_half(key, now),
            Next::Again => self.table.make_due(key),
            Next::End => {
                if let Some(id) = connection {
                    self.close(id, now);
                }
                self.table.remove(key);
            }
            Next::Reset => {
                if let Some(id) = connection {
                    self.abort(id, now);
                }
                self.table.remove(key);
            }
        }
    }

    /// Ends a connection of the stack in order, or with a reset if the server has not read all.
    pub(super) fn close(&mut self, id: ConnectionId, now: Instant) {
        let closed = self.stack.close(id, now).closed;
        if closed.is_some() && self.table.tells_of_ends {
            self.table.ended.push(id);
        }
    }

    /// Ends a connection of the stack with a reset.
    pub(super) fn abort(&mut self, id: ConnectionId, now: Instant) {
        let _closed = self.stack.abort(id, now);
        if self.table.tells_of_ends {
            self.table.ended.push(id);
        }
    }

    /// The client has sent what there is no memory for.
    pub(super) fn limit(&mut self, key: u32, now: Instant) {
        let Some((conversation, pools)) = self.table.get(key) else {
            return;
        };
        conversation.limit_window(&mut self.stack, pools, now);
        if conversation.inbound.size() == 0 {
            self.table.await_inbound(key);
        }
    }

    /// The client is gone: what it sent before that still goes to the server, if there is room.
    pub(super) fn lose(&mut self, key: u32) {
        let Some((conversation, pools)) = self.table.get(key) else {
            return;
        };
        let now = self.clock.now();
        let _next = conversation.advance(&mut self.stack, pools, now);
        conversation.reset_server();
        self.table.remove(key);
    }
}
