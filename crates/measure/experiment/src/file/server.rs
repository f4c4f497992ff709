//! Parses servers: launch options, readiness probe and stop.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::reader::Table;
use super::words;
use saiga_process::child::Signal;
use saiga_process::memory::Memory;
use saiga_process::numbers::Numbers;
use saiga_process::secret;

/// Default timeout of the readiness probe.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Default timeout of a stop.
const STOP_LIMIT: Duration = Duration::from_secs(120);

/// Options with which a program is started. The `Debug` output masks passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Variables added to the environment of Saiga.
    pub env: BTreeMap<String, String>,
    /// CPU affinity; empty for all CPUs.
    pub cpus: Vec<usize>,
    pub memory: Option<Memory>,
    /// Whether the program runs under `saiga run`.
    pub saiga: bool,
    /// The user to run as; `None` for that of Saiga.
    pub user: Option<String>,
    pub directory: Option<PathBuf>,
}

/// A server of an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    /// Program and arguments; the program must stay in the foreground.
    pub command: Vec<String>,
    pub launch: Launch,
    pub port: Option<u16>,
    /// Directories that no other process may use.
    pub data: Vec<PathBuf>,
    pub ready: Ready,
    pub stop: Stop,
}

/// The readiness probe and its timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    pub probe: Probe,
    /// Timeout; a server that is not ready by then has failed.
    pub limit: Duration,
}

/// The check that shows that a server is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// The port accepts connections.
    Port,
    /// The server answers PING.
    Redis,
    /// The server sends the handshake with which a log-in begins.
    MySql,
    /// The server answers the first message of a log-in; it refuses log-ins during recovery.
    Postgres,
    /// The command, run by `sh -c`, exits with 0.
    Command(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub how: How,
    /// Timeout; a server that has not ended by then is killed, and its run is rejected.
    pub limit: Duration,
}

/// The way to stop a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    Signal(Signal),
    /// A command for `sh -c`.
    Command(String),
}

/// The signals that `[server.stop]` accepts.
const SIGNALS: [(&str, Signal); 4] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("KILL", Signal::KILL),
];

impl Stop {
    /// The name of a signal in the file.
    #[must_use]
    pub fn signal_name(signal: Signal) -> &'static str {
        let named = SIGNALS.iter().find(|(_, known)| *known == signal);
        named.map_or("TERM", |(name, _)| name)
    }
}

impl fmt::Debug for Launch {
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
        f.debug_struct("Launch")
            .field("env", &env.collect::<BTreeMap<_, _>>())
            .field("cpus", cpus)
            .field("memory", memory)
            .field("saiga", saiga)
            .field("user", user)
            .field("directory", directory)
            .finish()
    }
}

impl Launch {
    /// Parses the keys that servers and clients have in common; `saiga` is the value of the arm,
    /// which these keys override.
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
    /// Parses a `[[server]]`, with the overrides of the arm already applied.
    pub(super) fn read(table: &Table<'_>, saiga: Option<bool>) -> Self {
        let port = table.whole("port", 1..=65535);
        let server = Self {
            name: table.required_text("name").unwrap_or_default(),
            command: command(table, "command"),
            launch: Launch::read(table, saiga),
            port: port.and_then(|port| u16::try_from(port).ok()),
            data: table.texts("data").into_iter().map(PathBuf::from).collect(),
            ready: ready(table),
            stop: stop(table),
        };
        if server.port.is_none() && !matches!(server.ready.probe, Probe::Command(_)) {
            table.problem(
                "port",
                "is missing; without a port, a ready.command is needed",
            );
        }
        if let Some(relative) = server.data.iter().find(|dir| dir.is_relative()) {
            let what = format!(
                "contains {}, which is not an absolute path",
                relative.display()
            );
            table.problem("data", &what);
        }
        table.finish();
        server
    }
}

/// Parses the command line in a required key.
pub(super) fn command(table: &Table<'_>, key: &'static str) -> Vec<String> {
    let Some(text) = table.required_text(key) else {
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
