//! Before the start: is everything there, is it consistent, are all connected?

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use saiga_experiment::interrupt::Interrupt;
use saiga_tpcc::check::Scope;
use saiga_tpcc::db::Server;
use saiga_tpcc::db::options::Protocol;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::driver::{Measurement, Setup, Terminals};
use saiga_tpcc::props::Engine;
use saiga_tpcc::results::directory::{WorkerFile, expand};
use saiga_tpcc::results::files::SampleFiles;
use saiga_tpcc::results::record::Consistency;
use saiga_tpcc::results::{Directory, DirectoryError};
use saiga_tpcc::server_clock::{self, Offset};
use saiga_tpcc::state::{self, LoadInfo, State};

use super::finish::{Finished, look};
use super::options::{Options, check_loaded};
use super::{Looker, Start};
use crate::bench::tpcc::target::Target;
use crate::exit;
use saiga_document::number::{counted, time};

/// A check that takes so long is announced.
const LONG_CHECK: Duration = Duration::from_secs(30);

/// A database whose terminals are connected.
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

/// One that has a place for its results, too.
pub(super) struct Ready<'t> {
    prepared: Prepared<'t>,
    place: Place,
}

/// Where results go.
pub(super) enum Place {
    Directory(Directory),
    Worker(WorkerFile),
    Nowhere,
}

impl<'t> Prepared<'t> {
    /// Looks at the tables, checks them, and connects.
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
                tell_estimate(target, scope, loaded.warehouses);
                Some(look(target, "before", scope, interrupt)?)
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
        if let Some(advice) = room_for_statements(target, setup.terminals)? {
            exit::say(&format!("{}: {advice}", target.name()));
        }
        let terminals = Terminals::connect(setup.clone(), Arc::new(target.sessions()))?;
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

    /// Takes a place for the results, whose name may have the time of the start in it. `before` are
    /// the directories of the databases before it.
    fn claim(
        self,
        options: &Options,
        local_s: i64,
        before: &[PathBuf],
    ) -> anyhow::Result<Ready<'t>> {
        let place = match (&options.worker, &self.out, self.pattern()) {
            (Some(share), Some(out), _) => Place::Worker(WorkerFile::claim(out, share.index)?),
            (None, Some(out), _) => Place::Directory(Directory::create(out.clone())?),
            (_, None, Some(pattern)) => {
                let path = beside(expand(pattern, local_s)?, before);
                Place::Directory(Directory::create(path)?)
            }
            (_, None, None) => Place::Nowhere,
        };
        Ok(Ready {
            prepared: self,
            place,
        })
    }

    fn pattern(&self) -> Option<&str> {
        self.target.props.run.as_ref()?.result_directory.as_deref()
    }
}

/// Says how long the checks take, when that is long.
fn tell_estimate(target: &Target, scope: Scope, warehouses: u32) {
    let each = scope.estimate(warehouses);
    if each >= LONG_CHECK {
        exit::say(&format!(
            "{}: the tables of {} are checked before the run and after it, about {} each time; \
             --check sample takes ten warehouses, --check none leaves it out",
            target.name(),
            counted(warehouses, "warehouse"),
            time(each)
        ));
    }
}

/// Takes a place for each database, or for none.
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
                if let Place::Directory(dir) = &one.place {
                    taken.push(dir.path().to_owned());
                }
                ready.push(one);
            }
            Err(error) => {
                ready.iter().for_each(|one| one.place.give_back());
                return Err(error.context(name));
            }
        }
    }
    Ok(ready)
}

/// Two props files of one experiment are often alike but for the port: a database whose directory an
/// earlier one of them has gets `result_2`.
fn beside(path: PathBuf, taken: &[PathBuf]) -> PathBuf {
    let numbered = (2..).map(|number| {
        let mut name = path.clone().into_os_string();
        name.push(format!("_{number}"));
        PathBuf::from(name)
    });
    let mut all = std::iter::once(path.clone()).chain(numbered);
    all.find(|path| !taken.contains(path)).unwrap_or(path)
}

impl Place {
    /// Removes what was made for a run that does not begin.
    fn give_back(&self) {
        if let Self::Directory(dir) = self {
            dir.remove_if_empty();
        }
    }
}

impl<'t> Ready<'t> {
    /// The database in words.
    pub(super) fn name(&self) -> String {
        self.prepared.target.name()
    }

    /// The folder of the results, when this host has one of its own.
    pub(super) fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Directory(dir) => Some(dir.path()),
            Place::Worker(_) | Place::Nowhere => None,
        }
    }

    /// Runs it.
    pub(super) fn run(
        self,
        options: &Options,
        start: Start,
        mut looker: Looker<'_>,
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
        let streams = match &self.place {
            Place::Directory(dir) => {
                let queued = setup.delivery != saiga_tpcc::driver::DeliveryMode::Inline;
                Some(SampleFiles::create(dir, options.result_csv, queued))
            }
            Place::Worker(_) | Place::Nowhere => None,
        };
        let (streams, problem) = match streams.transpose() {
            Ok(streams) => (streams, None),
            Err(error) => (None, Some(anyhow::Error::from(error))),
        };
        looker.streams = streams;
        let for_merging = matches!(self.place, Place::Worker(_));
        let date = i64::try_from(start.since_1970.as_secs()).unwrap_or(i64::MAX);
        let measured: Measurement = terminals.run(start.at, date, for_merging, &mut looker);
        let written = looker.streams.take().map_or(Ok(()), SampleFiles::finish);
        Finished {
            target,
            server,
            setup,
            loaded_warehouses,
            clock,
            before,
            place: self.place,
            measured,
            start,
            problem: problem.or(written.err().map(anyhow::Error::from)),
            ended: Instant::now(),
        }
    }
}

/// What the server and the load say about themselves, and how far the server's clock is from ours.
fn loaded(target: &Target) -> anyhow::Result<(Server, LoadInfo, Option<Offset>)> {
    let mut session = target.open_existing()?;
    let server = session.server().clone();
    let not_there =
        |what: &str| anyhow::anyhow!("{what}; `saiga bench tpcc build` makes the tables");
    match state::look(session.as_mut())? {
        State::Complete(loaded) => {
            let clock = server_clock::measure(session.as_mut()).unwrap_or_else(|error| {
                exit::say(&format!("the server's clock is not known: {error}"));
                None
            });
            Ok((server, loaded, clock))
        }
        State::Empty { .. } => Err(not_there("it has no tables of TPC-C")),
        State::Unidentified { .. } => {
            bail!("it has tables of TPC-C, but no bmsql_config: another tool has made them")
        }
        missing @ State::TablesMissing { .. } => bail!("{missing}"),
        State::ConfigEmpty => Err(not_there("bmsql_config is empty: nothing is loaded")),
        State::InProgress(_) => {
            bail!("a build is not complete; `saiga bench tpcc build --resume` goes on with it")
        }
    }
}

/// Statements that a terminal has prepared on MySQL: 29, and ORDER-LINE with 4 to 15 rows.
const STATEMENTS: u32 = 41;

/// What to do when a server will not prepare all statements of so many terminals.
fn room_for_statements(target: &Target, terminals: u32) -> anyhow::Result<Option<String>> {
    let is_prepared = target.options.protocol == Protocol::Prepared;
    if target.props.url.engine != Engine::MySql || !is_prepared {
        return Ok(None);
    }
    let mut rows = Rows::new();
    let mut session = target.open_existing()?;
    session.run("select @@max_prepared_stmt_count", &mut rows)?;
    let (room, wanted) = (rows.int(0, 0)?, i64::from(STATEMENTS * terminals));
    Ok((room < wanted).then(|| {
        format!(
            "max_prepared_stmt_count is {room}, {terminals} terminals would like {wanted}: \
             what finds no room goes as text, which costs the server more; \
             `set global max_prepared_stmt_count = {wanted}` makes room"
        )
    }))
}

/// The directory of the results, when its name does not depend on the time.
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
