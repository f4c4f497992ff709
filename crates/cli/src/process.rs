//! One accelerated process for `status` and `top`: its status page joined with the kernel's view of
//! its sockets.

use std::collections::HashMap;
use std::fs;

use anyhow::Context;
use saiga_process::{proc, sockets};
use saiga_status::reader::{Page, Snapshot, Socket};
use saiga_status::{Flags, Reason, State};
use serde::Serialize;

/// The state of one process, as `status` shows it.
#[derive(Debug, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) program: String,
    pub(crate) enabled: bool,
    /// The reason why no connection is accelerated; null while some may be.
    pub(crate) disabled: Option<String>,
    pub(crate) upgrades: u64,
    pub(crate) downgrades: u64,
    pub(crate) resets: u64,
    pub(crate) spins: u64,
    pub(crate) sleeps: u64,
    pub(crate) rings: u64,
    /// Cost of a wake-up from another CPU; null while unknown.
    pub(crate) wake_cost_us: Option<f64>,
    pub(crate) segments: u64,
    pub(crate) channels: u64,
    /// Connections that were not upgraded, by reason.
    pub(crate) not_upgraded: Vec<Failure>,
    /// Connections that were downgraded to TCP, by reason.
    pub(crate) taken_back: Vec<Failure>,
    /// Connections that were reset, by reason.
    pub(crate) reset_for: Vec<Failure>,
    pub(crate) sockets: Vec<TcpSocket>,
}

/// Number of connections that were not upgraded, downgraded or reset for one reason.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) count: u64,
}

/// The state of one TCP socket, as `status` shows it.
#[derive(Debug, Serialize)]
pub(crate) struct TcpSocket {
    pub(crate) fd: u32,
    pub(crate) local: Option<String>,
    pub(crate) remote: Option<String>,
    pub(crate) state: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) tcp_rx: u64,
    pub(crate) tcp_tx: u64,
    pub(crate) channel_rx: u64,
    pub(crate) channel_tx: u64,
    pub(crate) peer_pid: Option<u32>,
    #[serde(skip)]
    pub(crate) generation: u32,
}

impl Process {
    /// Reads everything about the process behind `page`.
    ///
    /// # Errors
    /// The process has ended.
    pub(crate) fn read(page: &Page) -> anyhow::Result<Self> {
        let parts = Parts::read(page)?;
        let connections = sockets::connections_of(page.pid());
        Ok(parts.join(&connections))
    }

    /// As [`read`](Self::read), for the processes behind `pages`. Processes that have ended are
    /// left out. Each table of connections is read once, because the kernel lists all connections
    /// of a network namespace for each process in it.
    pub(crate) fn read_all(pages: &[Page]) -> Vec<Self> {
        let parts = pages.iter().filter_map(|page| Parts::read(page).ok());
        // Before the tables, which then have every connection of these descriptors.
        let parts: Vec<Parts> = parts.collect();
        let mut tables = HashMap::new();
        let join = |parts: Parts| {
            let pid = parts.shown.pid;
            let namespace = fs::read_link(format!("/proc/{pid}/ns/net")).map_err(|_| pid);
            let table: &mut HashMap<_, _> = tables.entry(namespace).or_default();
            // Also empty if the process by which it was read had ended.
            if table.is_empty() {
                *table = sockets::connections_of(pid);
            }
            parts.join(table)
        };
        parts.into_iter().map(join).collect()
    }

    /// Reads only the page: cheaper than [`read`](Self::read), but without addresses and without
    /// sockets that the library does not know.
    ///
    /// # Errors
    /// The process has ended.
    pub(crate) fn glance(page: &Page) -> anyhow::Result<Self> {
        let last = sockets::last_descriptor(page.pid())?;
        let shown = page.snapshot(last)?;
        let socket = |socket: &Socket| join(socket.fd, None, Some(socket));
        let sockets = shown.sockets.iter().filter_map(socket).collect();
        Ok(Self {
            sockets,
            ..Self::without_sockets(shown)
        })
    }

    fn without_sockets(shown: Snapshot) -> Self {
        let failure = |(reason, count): (Reason, u64)| Failure {
            reason: reason.name(),
            meaning: reason.sentence(),
            count,
        };
        let failures =
            |counts: Vec<(Reason, u64)>| counts.into_iter().map(failure).collect::<Vec<_>>();
        let disabled = shown
            .disabled
            .map(|(reason, particulars)| match particulars.as_str() {
                "" => reason.sentence().to_owned(),
                particulars => format!("{}: {particulars}", reason.sentence()),
            });
        Self {
            pid: shown.pid,
            program: proc::name(shown.pid),
            enabled: shown.flags.contains(Flags::ENABLED),
            disabled,
            upgrades: shown.upgrades,
            downgrades: shown.downgrades,
            resets: shown.resets,
            spins: shown.spins,
            sleeps: shown.sleeps,
            rings: shown.rings,
            wake_cost_us: (shown.wake_cost_ns != 0).then(|| f64::from(shown.wake_cost_ns) / 1000.0),
            segments: shown.segments,
            channels: shown.channels,
            not_upgraded: failures(shown.failures),
            taken_back: failures(shown.taken_back),
            reset_for: failures(shown.reset_for),
            sockets: Vec::new(),
        }
    }

    /// Number of sockets that use a channel now.
    pub(crate) fn upgraded(&self) -> usize {
        let on_channel = [State::Upgraded.name(), State::Draining.name()];
        self.sockets
            .iter()
            .filter(|socket| on_channel.contains(&socket.state))
            .count()
    }

    /// Number of connections, on TCP or on a channel.
    pub(crate) fn connections(&self) -> usize {
        self.sockets
            .iter()
            .filter(|socket| socket.state != LISTENING)
            .count()
    }
}

/// What is read of one process: its descriptors that are sockets, and its page.
struct Parts {
    descriptors: Vec<(u32, u64)>,
    shown: Snapshot,
}

impl Parts {
    fn read(page: &Page) -> anyhow::Result<Self> {
        let pid = page.pid();
        let descriptors = sockets::sockets_of(pid)
            .with_context(|| format!("cannot read the descriptors of process {pid}"))?;
        let last = descriptors.last().map_or(0, |(fd, _)| *fd);
        let shown = page
            .snapshot(last)
            .with_context(|| format!("cannot read the status page of process {pid}"))?;
        Ok(Self { descriptors, shown })
    }

    fn join(self, connections: &HashMap<u64, sockets::Connection>) -> Process {
        let Self { descriptors, shown } = self;
        let sockets = descriptors
            .into_iter()
            .filter_map(|(fd, inode)| {
                let index = shown
                    .sockets
                    .binary_search_by_key(&fd, |socket| socket.fd)
                    .ok();
                let socket = index.and_then(|index| shown.sockets.get(index));
                // The descriptor may be another socket since a call that the library did not see.
                let socket = socket.filter(|s| s.inode.is_none_or(|noted| noted == inode));
                join(fd, connections.get(&inode), socket)
            })
            .collect();
        Process {
            sockets,
            ..Process::without_sockets(shown)
        }
    }
}

/// The state of a listening socket, which cannot be upgraded.
pub(crate) const LISTENING: &str = "listening";
/// The state of a connection that the library does not know.
const KERNEL: &str = "kernel";

/// Joins both views of a socket; `None` if neither identifies a TCP socket.
fn join(
    fd: u32,
    connection: Option<&sockets::Connection>,
    socket: Option<&Socket>,
) -> Option<TcpSocket> {
    let is_listening = connection.is_some_and(|connection| connection.is_listening);
    let (state, reason, meaning) = match (socket, is_listening) {
        (_, true) => (LISTENING, "none", ""),
        (Some(socket), false) => explain(socket),
        (None, false) => {
            connection?;
            (KERNEL, "unseen", "not opened through the library")
        }
    };
    let count = |value: fn(&Socket) -> u64| socket.map_or(0, value);
    Some(TcpSocket {
        fd,
        local: connection.map(|connection| connection.local.to_string()),
        remote: connection
            .filter(|_| !is_listening)
            .map(|c| c.remote.to_string()),
        state,
        reason,
        meaning,
        tcp_rx: count(|socket| socket.tcp_rx),
        tcp_tx: count(|socket| socket.tcp_tx),
        channel_rx: count(|socket| socket.channel_rx),
        channel_tx: count(|socket| socket.channel_tx),
        peer_pid: socket.and_then(|socket| socket.peer_pid),
        generation: socket.map_or(0, |socket| socket.generation),
    })
}

fn explain(socket: &Socket) -> (&'static str, &'static str, &'static str) {
    let Socket { state, reason, .. } = socket;
    let sentence = if *reason == Reason::None {
        ""
    } else {
        reason.sentence()
    };
    (state.name(), reason.name(), sentence)
}
