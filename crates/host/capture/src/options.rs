//! What a caller may decide: length of windows, ports of servers, limits.

use std::{collections::BTreeMap, time::Duration};

/// How requests and responses are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// MySQL and MariaDB: one command, one response.
    MySql,
    /// PostgreSQL: a response ends with ReadyForQuery.
    Postgres,
    /// Redis: each reply belongs to one command.
    Resp,
    /// HTTP/1.0 and 1.1.
    Http,
    /// A request is what the client sends after the server has spoken: TLS and all the rest.
    Turns,
}

impl Protocol {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MySql => "MySQL",
            Self::Postgres => "PostgreSQL",
            Self::Resp => "RESP",
            Self::Http => "HTTP/1",
            Self::Turns => "turns",
        }
    }
}

/// How a capture is analysed.
#[derive(Debug, Clone)]
pub struct Options {
    /// Length of a window of the series; at least one millisecond.
    pub window: Duration,
    /// Ports on which servers listen. `Some` also fixes the protocol, which is otherwise found
    /// from the first bytes.
    pub servers: BTreeMap<u16, Option<Protocol>>,
    /// Ignore connections without one of `servers`.
    pub only_servers: bool,
    /// Bounds of memory.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(1),
            servers: BTreeMap::new(),
            only_servers: false,
            limits: Limits::default(),
        }
    }
}

/// Bounds of memory. What does not fit is counted in [`Mark`](crate::Mark)s.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections that are followed at the same time. The longest idle ones make room.
    pub connections: usize,
    /// Server addresses with results.
    pub servers: usize,
    /// Client addresses that are counted per server.
    pub clients: usize,
    /// Windows of all servers together.
    pub windows: usize,
    /// Requests of all connections that wait for their response.
    pub outstanding: usize,
    /// Bytes that wait for others: segments out of order, incomplete HTTP heads.
    pub buffered_bytes: usize,
    /// Packets that are kept to compare the clocks of two captures.
    pub marks: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 65_536,
            servers: 1_024,
            clients: 1_024,
            windows: 200_000,
            outstanding: 1 << 20,
            buffered_bytes: 32 << 20,
            marks: 16_384,
        }
    }
}
