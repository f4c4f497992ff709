//! Counting while packets come: one [`Server`] per address, within the limits of memory.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use super::{Mark, Server, record, series::Series};
use crate::{Kind, Limits, Protocol, Timestamp};

/// Used buckets of all windows' histograms: 64 MiB.
const MOST_BUCKETS: usize = 8 << 20;

/// What is left of the limits, and what did not fit.
#[derive(Debug)]
pub(crate) struct Budget {
    windows: usize,
    buckets: usize,
    outstanding: usize,
    bytes: usize,
    pub(super) windows_left_out: u64,
    pub(crate) requests_left_out: u64,
    pub(crate) gaps_given_up: u64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            windows: limits.windows,
            buckets: MOST_BUCKETS,
            outstanding: limits.outstanding,
            bytes: limits.buffered_bytes,
            windows_left_out: 0,
            requests_left_out: 0,
            gaps_given_up: 0,
        }
    }

    pub(super) fn take_window(&mut self) -> bool {
        let Some(left) = self.windows.checked_sub(1) else {
            self.windows_left_out += 1;
            return false;
        };
        self.windows = left;
        true
    }

    pub(crate) fn take_outstanding(&mut self) -> bool {
        let Some(left) = self.outstanding.checked_sub(1) else {
            self.requests_left_out += 1;
            return false;
        };
        self.outstanding = left;
        true
    }

    pub(crate) fn give_outstanding(&mut self) {
        self.outstanding += 1;
    }

    /// Takes room for bytes that wait for others.
    pub(crate) fn take_bytes(&mut self, count: usize) -> bool {
        let left = self.bytes.checked_sub(count);
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }

    pub(crate) fn give_bytes(&mut self, count: usize) {
        self.bytes += count;
    }

    pub(crate) fn marks(&self) -> [Mark; 3] {
        [
            Mark::WindowsLeftOut {
                events: self.windows_left_out,
            },
            Mark::RequestsLeftOut {
                requests: self.requests_left_out,
            },
            Mark::GapsGivenUp {
                gaps: self.gaps_given_up,
            },
        ]
    }
}

#[derive(Debug)]
struct Entry {
    address: SocketAddr,
    server: Server,
    series: Series,
    clients: HashSet<IpAddr>,
}

/// All servers.
#[derive(Debug)]
pub(crate) struct Tally {
    entries: Vec<Entry>,
    places: HashMap<SocketAddr, usize>,
    pub(crate) budget: Budget,
    window_ns: u64,
    most_servers: usize,
    most_clients: usize,
    connections_left_out: u64,
}

impl Tally {
    pub(crate) fn new(window: Duration, limits: &Limits) -> Self {
        let window = window.max(Duration::from_millis(1));
        Self {
            entries: Vec::new(),
            places: HashMap::new(),
            budget: Budget::new(limits),
            window_ns: u64::try_from(window.as_nanos()).unwrap_or(u64::MAX),
            most_servers: limits.servers,
            most_clients: limits.clients,
            connections_left_out: 0,
        }
    }

    /// The place of a server that a client connects to; `None` beyond the limit.
    pub(crate) fn server(&mut self, address: SocketAddr, client: IpAddr) -> Option<usize> {
        let place = match self.places.get(&address) {
            Some(place) => *place,
            None if self.entries.len() >= self.most_servers => {
                self.connections_left_out += 1;
                return None;
            }
            None => {
                let series = Series::new(self.window_ns);
                let clients = HashSet::new();
                self.entries.push(Entry {
                    address,
                    server: Server::new(),
                    series,
                    clients,
                });
                self.places.insert(address, self.entries.len() - 1);
                self.entries.len() - 1
            }
        };
        let clients = &mut self.entries[place].clients;
        if clients.len() < self.most_clients {
            clients.insert(client);
        }
        Some(place)
    }

    pub(crate) fn sink(&mut self, place: usize) -> Sink<'_> {
        let Entry { server, series, .. } = &mut self.entries[place];
        Sink {
            server,
            series,
            budget: &mut self.budget,
        }
    }

    /// The results, and what did not fit.
    pub(crate) fn finish(
        self,
        span: Option<(Timestamp, Timestamp)>,
    ) -> (Vec<(SocketAddr, Server)>, Vec<Mark>) {
        let Self {
            entries,
            mut budget,
            connections_left_out,
            ..
        } = self;
        let mut marks = vec![Mark::ServersLeftOut {
            connections: connections_left_out,
        }];
        let servers = entries.into_iter().map(
            |Entry {
                 address,
                 mut server,
                 series,
                 clients,
             }| {
                server.clients = clients.len();
                server.windows = span
                    .map(|span| series.finish(span, &mut budget))
                    .unwrap_or_default();
                (address, server)
            },
        );
        let servers: Vec<_> = servers.collect();
        let sum = |of: fn(&Server) -> u64| servers.iter().map(|(_, server)| of(server)).sum();
        marks.push(Mark::Holes {
            holes: sum(|server| server.tcp.holes),
            bytes: sum(|server| server.tcp.hole_bytes),
        });
        marks.extend(budget.marks());
        (servers, marks)
    }
}

/// One server, to which a connection adds its events.
pub(crate) struct Sink<'a> {
    pub(crate) server: &'a mut Server,
    series: &'a mut Series,
    pub(crate) budget: &'a mut Budget,
}

/// An answered request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) kind: Kind,
    pub(crate) start: Timestamp,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
}

impl Sink<'_> {
    pub(crate) fn arrival(&mut self, at: Timestamp) {
        self.series.level(at, 1, self.budget);
        if let Some(cell) = self.series.cell(at, self.budget) {
            cell.arrivals += 1;
        }
    }

    pub(crate) fn answer(&mut self, answer: Answer) {
        let Answer {
            kind,
            start,
            first,
            last,
        } = answer;
        let time = last.since(start);
        let ns = last.0.saturating_sub(start.0);
        let requests = &mut self.server.requests;
        requests.answered += 1;
        requests.total += time;
        record(&mut requests.first_byte_ns, first.0.saturating_sub(start.0));
        record(&mut requests.last_byte_ns, ns);
        let kinds = requests.kinds.entry(kind).or_default();
        kinds.answered += 1;
        kinds.total += time;
        kinds.longest = kinds.longest.max(time);
        self.series.level(last, -1, self.budget);
        let buckets_left = self.budget.buckets;
        if let Some(cell) = self.series.cell(last, self.budget) {
            cell.responses += 1;
            cell.total_ns = cell.total_ns.saturating_add(ns);
            cell.longest_ns = cell.longest_ns.max(ns);
            if buckets_left > 0 && cell.times.add(ns) {
                self.budget.buckets = buckets_left - 1;
            }
        }
    }

    /// A request that gets no response, or whose response cannot be told.
    pub(crate) fn unanswered(&mut self, at: Timestamp) {
        self.server.requests.unanswered += 1;
        self.series.level(at, -1, self.budget);
    }

    pub(crate) fn protocol(&mut self, protocol: Protocol) {
        *self.server.protocols.entry(protocol).or_default() += 1;
    }

    pub(crate) fn opened(&mut self, at: Timestamp) {
        if let Some(cell) = self.series.cell(at, self.budget) {
            cell.opened += 1;
        }
    }

    pub(crate) fn closed(&mut self, at: Timestamp, by_reset: bool) {
        if let Some(cell) = self.series.cell(at, self.budget) {
            cell.closed += 1;
            cell.resets += u64::from(by_reset);
        }
    }

    pub(crate) fn retransmission(&mut self, at: Timestamp, gap: Option<Duration>) {
        self.server.tcp.retransmissions += 1;
        if let Some(gap) = gap {
            record(
                &mut self.server.tcp.retransmission_gaps_ns,
                nanoseconds(gap),
            );
        }
        if let Some(cell) = self.series.cell(at, self.budget) {
            cell.retransmissions += 1;
        }
    }

    pub(crate) fn syn_retransmission(&mut self, at: Timestamp, gap: Duration) {
        self.server.handshakes.retransmissions += 1;
        record(
            &mut self.server.handshakes.retransmission_gaps_ns,
            nanoseconds(gap),
        );
        if let Some(cell) = self.series.cell(at, self.budget) {
            cell.syn_retransmissions += 1;
        }
    }

    pub(crate) fn zero_window(&mut self, at: Timestamp, of_client: bool) {
        let tcp = &mut self.server.tcp;
        *(if of_client {
            &mut tcp.zero_windows_of_clients
        } else {
            &mut tcp.zero_windows_of_server
        }) += 1;
        if let Some(cell) = self.series.cell(at, self.budget) {
            cell.zero_windows += 1;
        }
    }

    pub(crate) fn payload(&mut self, at: Timestamp, from_client: bool, bytes: u64) {
        let tcp = &mut self.server.tcp;
        let cell = self.series.cell(at, self.budget);
        if from_client {
            tcp.bytes_from_clients += bytes;
            cell.into_iter()
                .for_each(|cell| cell.bytes_from_clients += bytes);
        } else {
            tcp.bytes_to_clients += bytes;
            cell.into_iter()
                .for_each(|cell| cell.bytes_to_clients += bytes);
        }
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
