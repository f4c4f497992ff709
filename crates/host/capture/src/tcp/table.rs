//! All connections of a capture, and which of their ends is the server.

use std::{collections::HashMap, net::SocketAddr};

use super::connection::Connection;
use crate::{Options, Protocol, Timestamp, protocol::Side, segment::Segment, traffic::Tally};

/// Ports that tell the server, and the protocol if the bytes do not.
const KNOWN_PORTS: [(u16, Protocol); 9] = [
    (3306, Protocol::MySql),
    (33060, Protocol::Turns),
    (5432, Protocol::Postgres),
    (6379, Protocol::Resp),
    (80, Protocol::Http),
    (8080, Protocol::Http),
    (443, Protocol::Turns),
    (11211, Protocol::Turns),
    (27017, Protocol::Turns),
];
/// A full table loses this part of its connections at once.
const EVICTED_PART: usize = 8;

/// The addresses of a connection, the smaller one first.
type Key = (SocketAddr, SocketAddr);

#[derive(Debug)]
struct Entry {
    /// The server is the first address of the key.
    server_is_first: bool,
    connection: Connection,
}

#[derive(Debug)]
pub(crate) struct Table {
    entries: HashMap<Key, Box<Entry>>,
    most: usize,
    servers: std::collections::BTreeMap<u16, Option<Protocol>>,
    only_servers: bool,
    pub(crate) evicted: u64,
}

impl Table {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            entries: HashMap::new(),
            most: options.limits.connections.max(EVICTED_PART),
            servers: options.servers.clone(),
            only_servers: options.only_servers,
            evicted: 0,
        }
    }

    pub(crate) fn on_segment(&mut self, segment: &Segment<'_>, at: Timestamp, tally: &mut Tally) {
        let from_first = segment.from <= segment.to;
        let key = if from_first {
            (segment.from, segment.to)
        } else {
            (segment.to, segment.from)
        };
        if let Some(entry) = self.entries.get_mut(&key) {
            if !entry.connection.is_replaced_by(segment) {
                entry.on_segment(segment, from_first, at, tally);
                return;
            }
            let mut sink = tally.sink(entry.connection.place);
            entry.connection.finish(at, &mut sink);
            self.entries.remove(&key);
        }
        // What is left of a connection says nothing about a new one.
        if segment.rst {
            return;
        }
        self.begin(key, segment, from_first, at, tally);
    }

    fn begin(
        &mut self,
        key: Key,
        segment: &Segment<'_>,
        from_first: bool,
        at: Timestamp,
        tally: &mut Tally,
    ) {
        let known = [segment.from, segment.to].map(|end| self.servers.contains_key(&end.port()));
        if self.only_servers && known == [false, false] {
            return;
        }
        let from_server = self.is_from_server(segment, known);
        let (server, client) = if from_server {
            (segment.from, segment.to)
        } else {
            (segment.to, segment.from)
        };
        let Some(place) = tally.server(server, client.ip()) else {
            return;
        };
        if self.entries.len() >= self.most {
            self.evict(at, tally);
        }
        let given = self.servers.get(&server.port()).copied().flatten();
        let by_port = KNOWN_PORTS.iter().find(|(port, _)| *port == server.port());
        let hint = given.or(by_port.map(|(_, protocol)| *protocol));
        let connection = Connection::new(segment, at, place, hint, &mut tally.sink(place));
        let server_is_first = from_server == from_first;
        let mut entry = Box::new(Entry {
            server_is_first,
            connection,
        });
        entry.on_segment(segment, from_first, at, tally);
        self.entries.insert(key, entry);
    }

    /// SYN tells it; then the given ports, known ports, and the lower port.
    fn is_from_server(&self, segment: &Segment<'_>, known: [bool; 2]) -> bool {
        if segment.syn {
            return segment.ack.is_some();
        }
        let is_known = |end: SocketAddr| KNOWN_PORTS.iter().any(|(port, _)| *port == end.port());
        for [from, to] in [known, [is_known(segment.from), is_known(segment.to)]] {
            if from != to {
                return from;
            }
        }
        segment.from.port() < segment.to.port()
    }

    /// Removes closed connections, or those that were idle for the longest time.
    fn evict(&mut self, at: Timestamp, tally: &mut Tally) {
        let age = |entry: &Entry| {
            if entry.connection.is_closed() {
                Timestamp(0)
            } else {
                entry.connection.last_seen
            }
        };
        let mut ages: Vec<_> = self.entries.values().map(|entry| age(entry)).collect();
        let wanted = (ages.len() / EVICTED_PART).max(1);
        let (_, limit, _) = ages.select_nth_unstable(wanted - 1);
        let limit = *limit;
        let mut evicted = 0;
        // Many may have the age of the limit.
        let mut left = wanted;
        self.entries.retain(|_, entry| {
            if age(entry) > limit || (left == 0 && !entry.connection.is_closed()) {
                return true;
            }
            left = left.saturating_sub(1);
            evicted += u64::from(!entry.connection.is_closed());
            entry
                .connection
                .finish(at, &mut tally.sink(entry.connection.place));
            false
        });
        self.evicted += evicted;
    }

    pub(crate) fn finish(&mut self, at: Timestamp, tally: &mut Tally) {
        for (_, mut entry) in self.entries.drain() {
            let mut sink = tally.sink(entry.connection.place);
            entry.connection.finish(at, &mut sink);
        }
    }
}

impl Entry {
    fn on_segment(
        &mut self,
        segment: &Segment<'_>,
        from_first: bool,
        at: Timestamp,
        tally: &mut Tally,
    ) {
        let side = if from_first == self.server_is_first {
            Side::Server
        } else {
            Side::Client
        };
        let mut sink = tally.sink(self.connection.place);
        self.connection.on_segment(side, segment, at, &mut sink);
    }
}
