//! Prepares a run: inspects and checks the tables, connects the terminals, and claims the
//! destinations of the results.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use saiga_process::interrupt::Interrupt;
use saiga_tpcc::check::Scope;
use saiga_tpcc::db::Server;
use saiga_tpcc::driver::{Measurement, Setup, Terminals};
use saiga_tpcc::results::directory::{WorkerFile, beside, expand};
use saiga_tpcc::results::files::SampleFiles;
use saiga_tpcc::results::record::Consistency;
use saiga_tpcc::results::{Directory, DirectoryError};
use saiga_tpcc::server_clock::{self, Offset};
use saiga_tpcc::state::{self, LoadInfo, State};
use saiga_tpcc::target::Target;

use super::finish::{Finished, check_tables};
use super::options::{Options, check_loaded};
use super::{RunObserver, Start};
use crate::exit;
use saiga_document::number::{counted, time};

/// A check is announced if its expected time is at least this long.
const LONG_CHECK: Duration = Duration::from_secs(30);

/// A database with checked tables and connected terminals.
pub(super) struct Prepared<'t> {
    pub(super) target: &'t Target,
    server: Server,
    setup: Setup,
    loaded_warehouses: u32,
    clock: Option<Offset>,
    before: Option<Consistency>,
    terminals: Terminals,
    out: Option<PathBuf>,
}

/// A prepared database with a destination for its results.
pub(super) struct Ready<'t> {
    prepared: Prepared<'t>,
    destination: Destination,
}

pub(super) enum Destination {
    Directory(Directory),
    Worker(WorkerFile),
    Nowhere,
}

impl<'t> Prepared<'t> {
    /// Inspects and checks the tables, and connects the terminals.
    pub(super) fn new(
        target: &'t Target,
        options: &Options,
        out: Option<PathBuf>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let (server, loaded, clock) = loaded(target)?;
        check_loaded(target.props.warehouses, loaded.warehouses)?;
        let setup = options.setup(&target.props, loaded.constants)?;
        if let Some(path) = fixed_directory(target, options, out.as_ref())
            && path.exists()
        {
            return Err(DirectoryError::Taken { path }.into());
        }
        let before = match options.checks() {
            Some(scope) => {
                announce_estimate(target, scope, loaded.warehouses);
                Some(check_tables(target, "before", scope, interrupt)?)
            }
            None => None,
        };
        if let Some(broken) = before.as_ref().filter(|look| !look.broken.is_empty()) {
            bail!(
                "the tables are not consistent before the run: {}; build them again, or run with \
                 --check none",
                broken.broken.join("; ")
            );
        }
        exit::say(&format!(
            "{}: {}, {} terminals, seed {}",
            target.name(),
            server.version,
            setup.terminals,
            setup.seed
        ));
        if let Some(advice) = target.room_for_statements(setup.terminals)? {
            exit::say(&format!("{}: {advice}", target.name()));
        }
        let terminals = Terminals::connect(setup.clone(), Arc::new(target.sessions.clone()))?;
        Ok(Self {
            target,
            server,
            setup,
            loaded_warehouses: loaded.warehouses,
            clock,
            before,
            terminals,
            out,
        })
    }

    /// Claims the destination of the results. The name of a directory may contain the time of the
    /// start. `before` contains the directories of the previous databases.
    fn claim(
        self,
        options: &Options,
        local_s: i64,
        before: &[PathBuf],
    ) -> anyhow::Result<Ready<'t>> {
        let destination = match (&options.worker, &self.out, self.pattern()) {
            (Some(share), Some(out), _) => {
                Destination::Worker(WorkerFile::claim(out, share.index)?)
            }
            (None, Some(out), _) => Destination::Directory(Directory::create(out.clone())?),
            (_, None, Some(pattern)) => {
                let path = beside(expand(pattern, local_s)?, before);
                Destination::Directory(Directory::create(path)?)
            }
            (_, None, None) => Destination::Nowhere,
        };
        Ok(Ready {
            prepared: self,
            destination,
        })
    }

    fn pattern(&self) -> Option<&str> {
        self.target.props.run.as_ref()?.result_directory.as_deref()
    }
}

/// Prints the expected time of the checks if it is long.
fn announce_estimate(target: &Target, scope: Scope, warehouses: u32) {
    let each = scope.estimate(warehouses);
    if each >= LONG_CHECK {
        exit::say(&format!(
            "{}: the tables of {} are checked before and after the run, about {} each time; \
             --check sample checks ten warehouses, --check none checks nothing",
            target.name(),
            counted(warehouses, "warehouse"),
            time(each)
        ));
    }
}

/// Claims the destination of the results of each database. On an error, removes the directories
/// claimed before.
pub(super) fn claim_all<'t>(
    all: Vec<Prepared<'t>>,
    own: &[Options],
    local_s: i64,
) -> anyhow::Result<Vec<Ready<'t>>> {
    let (mut ready, mut taken): (Vec<Ready<'t>>, Vec<PathBuf>) = Default::default();
    for (one, options) in all.into_iter().zip(own) {
        let name = one.target.name();
        match one.claim(options, local_s, &taken) {
            Ok(one) => {
                if let Destination::Directory(dir) = &one.destination {
                    taken.push(dir.path().to_owned());
                }
                ready.push(one);
            }
            Err(error) => {
                ready.iter().for_each(|one| one.destination.remove());
                return Err(error.context(name));
            }
        }
    }
    Ok(ready)
}

impl Destination {
    /// Removes the empty directory of a run that did not start.
    fn remove(&self) {
        if let Self::Directory(dir) = self {
            dir.remove_if_empty();
        }
    }
}

impl<'t> Ready<'t> {
    pub(super) fn name(&self) -> String {
        self.prepared.target.name()
    }

    /// The result directory; `None` for a part of a run, and if no results are kept.
    pub(super) fn folder(&self) -> Option<&Path> {
        match &self.destination {
            Destination::Directory(dir) => Some(dir.path()),
            Destination::Worker(_) | Destination::Nowhere => None,
        }
    }

    pub(super) fn run(
        self,
        options: &Options,
        start: Start,
        mut observer: RunObserver<'_>,
    ) -> Finished<'t> {
        let Prepared {
            target,
            server,
            setup,
            loaded_warehouses,
            clock,
            before,
            terminals,
            out: _,
        } = self.prepared;
        let streams = match &self.destination {
            Destination::Directory(dir) => {
                let queued = setup.delivery != saiga_tpcc::driver::DeliveryMode::Inline;
                Some(SampleFiles::create(dir, options.result_csv, queued))
            }
            Destination::Worker(_) | Destination::Nowhere => None,
        };
        let (streams, problem) = match streams.transpose() {
            Ok(streams) => (streams, None),
            Err(error) => (None, Some(anyhow::Error::from(error))),
        };
        observer.streams = streams;
        let for_merging = matches!(self.destination, Destination::Worker(_));
        let date = i64::try_from(start.since_1970.as_secs()).unwrap_or(i64::MAX);
        let measured: Measurement = terminals.run(start.at, date, for_merging, &mut observer);
        let written = observer.streams.take().map_or(Ok(()), SampleFiles::finish);
        Finished {
            target,
            server,
            setup,
            loaded_warehouses,
            clock,
            before,
            destination: self.destination,
            measured,
            start,
            problem: problem.or(written.err().map(anyhow::Error::from)),
            ended: Instant::now(),
        }
    }
}

/// Reads the server's version and settings, the parameters of the load, and the offset of the
/// server's clock. Fails unless the build is complete.
fn loaded(target: &Target) -> anyhow::Result<(Server, LoadInfo, Option<Offset>)> {
    let mut session = target.open_existing()?;
    let server = session.server().clone();
    let not_there =
        |what: &str| anyhow::anyhow!("{what}; `saiga bench tpcc build` makes the tables");
    match state::look(session.as_mut())? {
        State::Complete(loaded) => {
            let clock = server_clock::measure(session.as_mut()).unwrap_or_else(|error| {
                exit::say(&format!("cannot read the server's clock: {error}"));
                None
            });
            Ok((server, loaded, clock))
        }
        State::Empty { .. } => Err(not_there("the database has no TPC-C tables")),
        State::Unidentified { .. } => {
            bail!("the database has TPC-C tables, but no bmsql_config: another tool created them")
        }
        missing @ State::TablesMissing { .. } => bail!("{missing}"),
        State::ConfigEmpty => Err(not_there("bmsql_config is empty: nothing is loaded")),
        State::InProgress(_) => {
            bail!("the build is incomplete; continue it with `saiga bench tpcc build --resume`")
        }
    }
}

/// The result directory, if its name does not contain the time of the start.
fn fixed_directory(target: &Target, options: &Options, out: Option<&PathBuf>) -> Option<PathBuf> {
    if options.worker.is_some() {
        return None;
    }
    if let Some(out) = out {
        return Some(out.clone());
    }
    let pattern = target.props.run.as_ref()?.result_directory.as_deref()?;
    (!pattern.contains("%t")).then(|| PathBuf::from(pattern))
}
