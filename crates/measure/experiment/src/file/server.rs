//! How the programs of an arm are started, known to be ready, and stopped.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::reader::Table;
use super::words;
use crate::memory::Memory;
use crate::numbers::Numbers;
use crate::process::Signal;
use crate::secret;

/// Until a server that says nothing else must be ready.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Until a server that says nothing else must have ended.
const STOP_LIMIT: Duration = Duration::from_secs(120);

/// A program in its surroundings. It shows itself without passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Dress {
    /// Variables added to ours.
    pub env: BTreeMap<String, String>,
    /// The CPUs it may use; empty for all.
    pub cpus: Vec<usize>,
    /// Where its memory comes from.
    pub memory: Option<Memory>,
    /// Whether it runs under `saiga run`.
    pub saiga: bool,
    /// Whose rights it has; `None` for ours.
    pub user: Option<String>,
    /// Where it runs.
    pub directory: Option<PathBuf>,
}

/// One server of an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Unique within the arm.
    pub name: String,
    /// Program and arguments; it stays in the foreground.
    pub command: Vec<String>,
    /// In what surroundings.
    pub dress: Dress,
    /// The port on which it listens.
    pub port: Option<u16>,
    /// The directories that are its own: no other process may run there.
    pub data: Vec<PathBuf>,
    /// How it shows that it is ready.
    pub ready: Ready,
    /// How it is stopped.
    pub stop: Stop,
}

/// How a server shows that it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// What is asked.
    pub probe: Probe,
    /// One that is not ready by then is stuck.
    pub limit: Duration,
}

/// What is asked of a server to know that it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// Whether its port takes connections.
    Port,
    /// PING.
    Redis,
    /// The greeting with which a log-in begins.
    MySql,
    /// The first step of a log-in, which is refused as long as it recovers.
    Postgres,
    /// A line for `sh -c` that ends with 0.
    Command(String),
}

/// How a server is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// What ends it.
    pub how: How,
    /// One that runs longer is killed, and its run does not count.
    pub limit: Duration,
}

/// What ends a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// A signal to its process.
    Signal(Signal),
    /// A line for `sh -c`.
    Command(String),
}

/// Signals by which servers are asked to end.
const SIGNALS: [(&str, Signal); 4] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("KILL", Signal::KILL),
];

impl Stop {
    /// The name of a signal.
    #[must_use]
    pub fn signal_name(signal: Signal) -> &'static str {
        let named = SIGNALS.iter().find(|(_, known)| *known == signal);
        named.map_or("TERM", |(name, _)| name)
    }
}

impl fmt::Debug for Dress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            env,
            cpus,
            memory,
            saiga,
            user,
            directory,
        } = self;
        let env = env
            .iter()
            .map(|(name, value)| (name, secret::value(name, value)));
        f.debug_struct("Dress")
            .field("env", &env.collect::<BTreeMap<_, _>>())
            .field("cpus", cpus)
            .field("memory", memory)
            .field("saiga", saiga)
            .field("user", user)
            .field("directory", directory)
            .finish()
    }
}

impl Dress {
    /// Reads the keys that servers and clients have in common; `saiga` is what the arm says.
    pub(super) fn read(table: &Table<'_>, saiga: Option<bool>) -> Self {
        let bind = table
            .parsed::<Numbers>("memory_bind")
            .map(|nodes| Memory::Bind(nodes.0));
        let interleave = table
            .parsed::<Numbers>("memory_interleave")
            .map(|nodes| Memory::Interleave(nodes.0));
        if bind.is_some() && interleave.is_some() {
            table.problem("memory_bind", "and memory_interleave exclude each other");
        }
        Self {
            env: table.pairs("env").into_iter().collect(),
            cpus: table.parsed::<Numbers>("cpus").unwrap_or_default().0,
            memory: bind.or(interleave),
            saiga: table.flag("saiga").or(saiga).unwrap_or(false),
            user: table.text("user"),
            directory: table.path("directory"),
        }
    }
}

impl Server {
    /// Reads one `[[server]]`, already laid over what all arms have.
    pub(super) fn read(table: &Table<'_>, saiga: Option<bool>) -> Self {
        let port = table.whole("port", 1..=65535);
        let server = Self {
            name: table.needed_text("name").unwrap_or_default(),
            command: command(table, "command"),
            dress: Dress::read(table, saiga),
            port: port.and_then(|port| u16::try_from(port).ok()),
            data: table.texts("data").into_iter().map(PathBuf::from).collect(),
            ready: ready(table),
            stop: stop(table),
        };
        if server.port.is_none() && !matches!(server.ready.probe, Probe::Command(_)) {
            table.problem(
                "port",
                "is missing; without one, ready.command must say when it is ready",
            );
        }
        if let Some(relative) = server.data.iter().find(|dir| dir.is_relative()) {
            let what = format!("holds {}, which does not begin with /", relative.display());
            table.problem("data", &what);
        }
        table.finish();
        server
    }
}

/// A command line under a key that must be there.
pub(super) fn command(table: &Table<'_>, key: &'static str) -> Vec<String> {
    let Some(text) = table.needed_text(key) else {
        return Vec::new();
    };
    words::split(&text).unwrap_or_else(|error| {
        table.problem(key, &format!("is {text:?}: {error}"));
        Vec::new()
    })
}

fn ready(table: &Table<'_>) -> Ready {
    let Some(ready) = table.table("ready") else {
        let (probe, limit) = (Probe::Port, READY_LIMIT);
        return Ready { probe, limit };
    };
    let choices = [
        ("port", Probe::Port),
        ("redis", Probe::Redis),
        ("mysql", Probe::MySql),
        ("postgres", Probe::Postgres),
    ];
    let names: [(&str, usize); 4] = std::array::from_fn(|i| (choices[i].0, i));
    let asked = ready.choice("probe", &names).map(|i| choices[i].1.clone());
    let command = ready.text("command").map(Probe::Command);
    if asked.is_some() && command.is_some() {
        ready.problem("command", "and probe exclude each other");
    }
    let limit = ready.duration("timeout").unwrap_or(READY_LIMIT);
    ready.finish();
    let probe = command.or(asked).unwrap_or(Probe::Port);
    Ready { probe, limit }
}

fn stop(table: &Table<'_>) -> Stop {
    let Some(stop) = table.table("stop") else {
        let (how, limit) = (How::Signal(Signal::TERM), STOP_LIMIT);
        return Stop { how, limit };
    };
    let signal = stop.choice("signal", &SIGNALS).map(How::Signal);
    let command = stop.text("command").map(How::Command);
    if signal.is_some() && command.is_some() {
        stop.problem("command", "and signal exclude each other");
    }
    let limit = stop.duration("timeout").unwrap_or(STOP_LIMIT);
    stop.finish();
    let how = command.or(signal).unwrap_or(How::Signal(Signal::TERM));
    Stop { how, limit }
}
