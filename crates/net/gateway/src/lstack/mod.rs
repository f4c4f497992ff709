//! Translates `lstack.conf`, the file of Gazelle, into settings of the gateway.
//!
//! What has a meaning here becomes [`Settings`]. Each other key gives a [`Note`], which says why it
//! has no meaning here or which key does its job. A file with which Gazelle works is accepted,
//! unless it has an `@include`. `lstack.conf` does not name ports, since Gazelle takes all ports of
//! a process; the caller gives them.

mod arguments;
mod device;
mod keys;
mod reader;
mod syntax;

use std::fmt;
use std::path::Path;

use saiga_process::numbers;

use crate::file::{self, FileError, Problem};
use crate::settings::{
    self, CPU_MAX, Capture, Device, Metrics, Outgoing, Polling, Runtime, Serve, Settings, Tcp,
    Workers,
};
use arguments::Arguments;
use reader::Reader;
use syntax::Setting;

/// The usual place of the file.
pub const FILE: &str = "/etc/gazelle/lstack.conf";

/// The settings that follow from a file, and what is not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// Valid settings.
    pub settings: Settings,
    /// One note for each key, or option of `dpdk_args`, without translation, in the order of the
    /// lines.
    pub notes: Vec<Note>,
}

/// A key that was not translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line of the key, counted from 1.
    pub line: usize,
    /// The key; with the option for `dpdk_args`.
    pub key: String,
    /// Why the key has no meaning here, or which key of `gateway.toml` does its job.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.key, self.text)
    }
}

/// Reads and translates a file for servers on `ports`.
///
/// # Errors
/// Returns [`FileError::Invalid`] with the mistakes, [`FileError::Unreadable`] or
/// [`FileError::NotSettings`].
pub fn read(path: &Path, ports: &[u16]) -> Result<Translation, FileError> {
    file::read(path, |text| translate(text, ports))
}

/// Translates the contents of a file for servers on `ports`.
///
/// # Errors
/// Returns the first mistake of syntax, or all values that Gazelle would not accept either.
pub fn translate(text: &str, ports: &[u16]) -> Result<Translation, Vec<Problem>> {
    let lines = syntax::parse(text).map_err(|problem| vec![problem])?;
    let mut reader = Reader::new(&lines);
    reader.notes = lines.iter().filter_map(note).collect();
    let settings = translated(&mut reader, ports);
    let Reader {
        mut problems,
        mut notes,
        ..
    } = reader;
    let Some(settings) = settings.filter(|_| problems.is_empty()) else {
        problems.sort();
        return Err(problems);
    };
    notes.sort_by_key(|note| note.line);
    // Conflicts are found here, with the names of our keys.
    match Settings::parse(&settings.to_toml()) {
        Ok(settings) => Ok(Translation { settings, notes }),
        Err(problems) => Err(problems.into_iter().map(as_ours).collect()),
    }
}

/// A note, if the key of a setting has no translation.
fn note(setting: &Setting) -> Option<Note> {
    let reason = keys::reason(&setting.key)?;
    Some(Note {
        line: setting.line,
        key: setting.key.clone(),
        text: reason.to_owned(),
    })
}

/// A problem of the settings that were translated. Its line is not one of the file.
fn as_ours(problem: Problem) -> Problem {
    Problem {
        line: 0,
        text: format!("translated to gateway.toml: {}", problem.text),
    }
}

fn translated(reader: &mut Reader<'_>, ports: &[u16]) -> Option<Settings> {
    let arguments = arguments(reader);
    let cpus = reader.parsed("num_cpus", cpus);
    let default = Tcp::default();
    let connections = reader.whole("tcp_conn_count", &settings::CONNECTIONS);
    let is_interrupt = reader.whole("stack_interrupt", &(0..=1)) == Some(1);
    let spin = if is_interrupt {
        Polling::none()
    } else {
        Workers::default().spin
    };
    let device = device::translate(reader, &arguments);
    let is_dpdk = device.as_ref().is_some_and(Device::is_dpdk);
    let dpdk = is_dpdk.then_some(arguments.dpdk);
    if ports.is_empty() {
        let text = "lstack.conf does not name the ports of the servers; give them".to_owned();
        reader.problems.push(Problem { line: 0, text });
    }
    Some(Settings {
        devices: vec![device?],
        serve: vec![Serve::plain(ports.to_vec())],
        workers: Workers {
            cpus: cpus.unwrap_or_default(),
            spin,
            ..Workers::default()
        },
        tcp: Tcp {
            connections: connections.unwrap_or(default.connections),
            ..default
        },
        dpdk: dpdk.unwrap_or_default(),
        outgoing: Outgoing::default(),
        metrics: Metrics::default(),
        capture: Capture::default(),
        runtime: Runtime::default(),
    })
}

/// Translates `dpdk_args`; a mistake in them is reported.
fn arguments(reader: &mut Reader<'_>) -> Arguments {
    let Some((words, line)) = reader.words("dpdk_args") else {
        return Arguments::default();
    };
    match Arguments::new(&words, line) {
        Ok(mut arguments) => {
            reader.notes.append(&mut arguments.notes);
            arguments
        }
        Err(text) => {
            reader.problems.push(Problem { line, text });
            Arguments::default()
        }
    }
}

/// Parses a list of CPUs; Gazelle accepts an empty one.
fn cpus(text: &str) -> Result<Vec<usize>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let all = numbers::list(text, CPU_MAX);
    all.ok_or_else(|| "write a list of CPUs such as \"18,38,58-59\"".to_owned())
}
