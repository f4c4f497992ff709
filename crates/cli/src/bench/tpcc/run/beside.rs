//! The host and the databases beside a run: what is watched, and what the record gets of it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use saiga_sampler::status::StatusSource;
use saiga_sampler::{Config, Group};
use saiga_tpcc::driver::connection::Sessions;
use saiga_tpcc::props::Engine;
use saiga_tpcc::results::Record;

use super::status::DatabaseStatus;
use crate::bench::tpcc::target::Target;
use crate::exit;
use crate::host::{Host, Recording, Seen};
use crate::process;

/// What a run has beside it.
#[derive(Default)]
pub(super) struct Watched {
    sources: Vec<Box<dyn StatusSource>>,
    servers: Vec<u32>,
    directories: Vec<PathBuf>,
}

impl Watched {
    /// Adds a database. Whatever cannot be watched is said and left out.
    pub(super) fn add(&mut self, target: &Target) {
        let number = 1 + self.sources.len();
        match DatabaseStatus::open(target.sessions(), number) {
            Ok(source) => {
                let source = source.map(|source| Box::new(source) as Box<dyn StatusSource>);
                self.sources.extend(source);
            }
            Err(error) => exit::say(&format!(
                "{}: its counters are not in the result: {error}",
                target.name()
            )),
        }
        self.servers.extend(server_of(&target.sessions()));
        let data = target.props.hints.data.iter();
        self.directories
            .extend(data.filter(|data| data.is_dir()).cloned());
    }

    /// Begins to watch; `None`, and a sentence, when that is not possible.
    pub(super) fn begin<'h>(self, host: &'h Host, folder: Option<&Path>) -> Option<Recording<'h>> {
        let group = |name: &str, pids: Vec<u32>| Group {
            name: name.to_owned(),
            pids,
        };
        let config = Config {
            groups: vec![
                group("server", self.servers),
                group("client", vec![std::process::id()]),
            ],
            directories: self.directories,
            sources: self.sources,
            ..Config::default()
        };
        match Recording::begin(host, config, folder) {
            Ok(recording) => Some(recording),
            Err(error) => {
                exit::say(&format!("the host is not watched: {error:#}"));
                None
            }
        }
    }
}

/// Ends it; seconds count from the start of the run.
pub(super) fn end(recording: Option<Recording<'_>>, start: Instant) -> Option<Seen> {
    match recording?.end(start) {
        Ok(seen) => {
            for warning in &seen.summary.warnings {
                exit::say(warning);
            }
            Some(seen)
        }
        Err(error) => {
            exit::say(&format!("what the host did is lost: {error:#}"));
            None
        }
    }
}

/// Adds what was seen to the record of a run.
pub(super) fn add_to(record: &mut Record, seen: Seen) {
    for file_system in &seen.summary.file_systems {
        record.run.metrics.extend(file_system.levels());
    }
    record
        .run
        .detail
        .get_or_insert_default()
        .series
        .extend(seen.series);
}

/// The process that listens where the terminals connect, when that is this host.
fn server_of(sessions: &Sessions) -> Option<u32> {
    let url = &sessions.url;
    let is_here = match url.host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => url.host.eq_ignore_ascii_case("localhost"),
    };
    (is_here && url.engine != Engine::Sqlite)
        .then(|| process::listener_at(url.port))
        .flatten()
}
