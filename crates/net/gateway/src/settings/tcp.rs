//! `[tcp]`: congestion control, probes of idle clients, and memory of connections.

use std::num::{NonZeroU8, NonZeroU32};
use std::ops::RangeInclusive;

use saiga_settings::RingBytes;
use saiga_tcp::{Algorithm, KeepAlive};

use super::output::Output;
use super::reader::{Table, shown_ms};
use super::value::Bytes;

/// Allowed numbers of connections. Each takes a descriptor (`fs.nr_open` is a million).
pub(crate) const CONNECTIONS: RangeInclusive<u32> = 1..=1_000_000;
/// One second to one day, in milliseconds.
const TIMES_MS: RangeInclusive<u32> = 1_000..=86_400_000;
const ALGORITHMS: [(&str, Algorithm); 2] =
    [("cubic", Algorithm::Cubic), ("newreno", Algorithm::NewReno)];

/// Settings of TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tcp {
    /// Congestion control.
    pub congestion: Algorithm,
    /// Probes of clients that send nothing. The kernel of this host answers the server's own probes
    /// (SO_KEEPALIVE), which therefore do not find dead clients.
    pub keep_alive: Option<KeepAlive>,
    /// How long data may stay without acknowledgement, in milliseconds; `None` for 15
    /// retransmissions, as on Linux.
    pub user_timeout_ms: Option<NonZeroU32>,
    /// Most connections of all workers.
    pub connections: u32,
    /// The maximum size of each direction's buffer, and so of the window.
    pub buffer: RingBytes,
    /// Most memory of all buffers; `None` for a sixteenth of that of the host.
    pub memory: Option<Bytes>,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            congestion: Algorithm::Cubic,
            keep_alive: Some(PROBES),
            user_timeout_ms: None,
            connections: 65_536,
            buffer: RingBytes::default(),
            memory: None,
        }
    }
}

/// The default. The first probe comes as early as with Redis (`tcp-keepalive 300`), and a dead
/// client's connection is reset ten minutes after its last packet.
const PROBES: KeepAlive = KeepAlive {
    idle_ms: 300_000,
    interval_ms: NonZeroU32::new(60_000).expect("not zero"),
    count: NonZeroU8::new(5).expect("not zero"),
};

impl Tcp {
    pub(super) fn read(table: &Table<'_>) -> Self {
        table.check_names();
        let default = Self::default();
        let congestion = table.choice("congestion", &ALGORITHMS);
        let user_timeout_ms = table.duration_ms_or_off("user_timeout", &TIMES_MS);
        let tcp = Self {
            congestion: congestion.unwrap_or(default.congestion),
            keep_alive: keep_alive(table),
            user_timeout_ms: user_timeout_ms.flatten().and_then(NonZeroU32::new),
            connections: table
                .whole("connections", &CONNECTIONS)
                .unwrap_or(default.connections),
            buffer: table.parsed("buffer").unwrap_or(default.buffer),
            memory: table.parsed("memory"),
        };
        let least = u64::from(tcp.buffer.get()) * 2;
        if tcp.memory.is_some_and(|memory| memory.0 < least) {
            let what = format!(
                "write at least \"{}\": the buffers of one connection",
                Bytes(least)
            );
            table.problem("memory", &what);
        }
        tcp
    }

    pub(super) fn write(&self, out: &mut Output) {
        let Self {
            congestion,
            keep_alive,
            user_timeout_ms,
            connections,
            buffer,
            memory,
        } = self;
        let default = Self::default();
        out.table("tcp");
        let named = ALGORITHMS.iter().find(|(_, known)| known == congestion);
        if let Some((name, _)) = named.filter(|_| *congestion != default.congestion) {
            out.text("congestion", name);
        }
        write_keep_alive(*keep_alive, out);
        if let Some(ms) = user_timeout_ms {
            out.key("user_timeout", shown_ms(ms.get()));
        }
        if *connections != default.connections {
            out.key("connections", connections);
        }
        if *buffer != default.buffer {
            out.text("buffer", buffer);
        }
        if let Some(memory) = memory {
            out.text("memory", memory);
        }
    }
}

fn keep_alive(table: &Table<'_>) -> Option<KeepAlive> {
    let idle_ms = table.duration_ms_or_off("keep_alive", &TIMES_MS);
    let interval_ms = table.duration_ms("keep_alive_interval", &TIMES_MS);
    let count = table.whole("keep_alive_probes", &(1..=50));
    let idle_ms = idle_ms.unwrap_or(Some(PROBES.idle_ms));
    if idle_ms.is_none() {
        for key in ["keep_alive_interval", "keep_alive_probes"] {
            if table.has(key) {
                table.problem(
                    key,
                    "there are no probes: keep_alive is \"off\"; remove the key",
                );
            }
        }
    }
    Some(KeepAlive {
        idle_ms: idle_ms?,
        interval_ms: interval_ms
            .and_then(NonZeroU32::new)
            .unwrap_or(PROBES.interval_ms),
        count: count.and_then(NonZeroU8::new).unwrap_or(PROBES.count),
    })
}

fn write_keep_alive(keep_alive: Option<KeepAlive>, out: &mut Output) {
    let Some(KeepAlive {
        idle_ms,
        interval_ms,
        count,
    }) = keep_alive
    else {
        return out.text("keep_alive", "off");
    };
    if idle_ms != PROBES.idle_ms {
        out.key("keep_alive", shown_ms(idle_ms));
    }
    if interval_ms != PROBES.interval_ms {
        out.key("keep_alive_interval", shown_ms(interval_ms.get()));
    }
    if count != PROBES.count {
        out.key("keep_alive_probes", count);
    }
}
