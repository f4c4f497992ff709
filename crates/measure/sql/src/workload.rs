//! [`SqlWorkload`] and [`SqlTarget`]: the engine's workload for SQL servers and load generators.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use saiga_database::{
    self as database, Endpoint, Engine, Installation, Listen, Programs, Server, Sizes,
};
use saiga_experiment::acceleration::AccelerationProbe;
use saiga_experiment::arm::{self, ArmKind};
use saiga_experiment::plan::Cell;
use saiga_experiment::result::{Arm, Metric, Warning};
use saiga_experiment::two_hosts;
use saiga_experiment::workload::{Failure, Load, Workload};
use saiga_hosts::{Hosts, Layout, Over, Places};
use saiga_process::child::CommandLine;
use saiga_process::interrupt::Interrupt;
use saiga_process::version::{self, ProgramError};
use tempfile::TempDir;

use crate::load::{SqlLoad, Test, generator};
use crate::target::SqlTarget;
use crate::{mariadb, postgres};

/// Placeholder for the seed of a pair.
const SEED_PLACEHOLDER: &str = "{seed}";
/// Maximum number of connections while the data are loaded.
const LOADING_CONNECTIONS: u32 = 4;

/// MariaDB and PostgreSQL under test with sysbench and pgbench as load.
pub struct SqlWorkload {
    engines: Vec<Engine>,
    kinds: Vec<ArmKind>,
    port: Option<u16>,
    /// The hosts of server and client; `None` if both are on this host.
    over: Option<Over>,
    window: Duration,
    probe: Option<Rc<dyn AccelerationProbe>>,
    programs: BTreeMap<Engine, Programs>,
    versions: BTreeMap<String, String>,
    /// The folder of all installations; removed with its contents when dropped.
    dir: OnceCell<TempDir>,
    /// Created with their data before the first run of an engine.
    installations: RefCell<BTreeMap<Engine, Rc<Installation>>>,
    /// Path of the preloaded library by index of the arm.
    libraries: RefCell<BTreeMap<usize, PathBuf>>,
}

impl fmt::Debug for SqlWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlWorkload")
            .field("engines", &self.engines)
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

impl SqlWorkload {
    /// Finds all programs. Servers listen on `port`, or on any free port; with `over`, server and
    /// client are on two hosts and `port` has no effect. Each run is measured for `window`.
    ///
    /// # Errors
    /// Fails if a program is missing or does not print its version.
    pub fn new(
        engines: &[Engine],
        kinds: &[ArmKind],
        port: Option<u16>,
        over: Option<Over>,
        window: Duration,
        probe: Option<Rc<dyn AccelerationProbe>>,
    ) -> Result<Self, ProgramError> {
        let mut found = Self {
            probe,
            ..Self::without_programs(engines, kinds, port, over, window)
        };
        for &engine in engines {
            let programs = database::find(engine, &[generator(engine)])?;
            for (program, package) in [engine.server(), generator(engine)] {
                let path = programs[program].display().to_string();
                found
                    .versions
                    .insert(program.to_owned(), version::of(&path, package)?);
            }
            found.programs.insert(engine, programs);
        }
        Ok(found)
    }

    /// A workload for dry runs; the programs need not be installed.
    #[must_use]
    pub fn without_programs(
        engines: &[Engine],
        kinds: &[ArmKind],
        port: Option<u16>,
        over: Option<Over>,
        window: Duration,
    ) -> Self {
        Self {
            engines: engines.to_vec(),
            kinds: kinds.to_vec(),
            port,
            over,
            window,
            probe: None,
            programs: BTreeMap::new(),
            versions: BTreeMap::new(),
            dir: OnceCell::new(),
            installations: RefCell::default(),
            libraries: RefCell::default(),
        }
    }

    /// The folder of all installations, which all users may enter.
    fn dir(&self) -> io::Result<&TempDir> {
        if let Some(dir) = self.dir.get() {
            return Ok(dir);
        }
        let dir = tempfile::Builder::new()
            .prefix("saiga-sql-")
            .permissions(fs::Permissions::from_mode(0o711))
            .tempdir()?;
        Ok(self.dir.get_or_init(|| dir))
    }

    fn installation(
        &self,
        engine: Engine,
        interrupt: &Interrupt,
    ) -> Result<Rc<Installation>, Failure> {
        if let Some(installation) = self.installations.borrow().get(&engine) {
            return Ok(Rc::clone(installation));
        }
        let dir = self.dir().map_err(Failure::impossible)?;
        let dir = dir.path().join(engine.name()).display().to_string();
        let programs = self.programs.get(&engine).cloned().unwrap_or_default();
        let installation = Rc::new(Installation::new(engine, dir, programs));
        create(&installation, interrupt)?;
        self.installations
            .borrow_mut()
            .insert(engine, Rc::clone(&installation));
        Ok(installation)
    }

    /// Environment variables of the processes of an arm that run under Saiga.
    fn env(
        &self,
        arm: usize,
        installation: &Installation,
        interrupt: &Interrupt,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let Some(library) = self.kinds[arm].library() else {
            return Ok(BTreeMap::new());
        };
        if let Some(known) = self.libraries.borrow().get(&arm) {
            return Ok(ArmKind::Saiga(known.clone()).env());
        }
        // The library may be in a home directory that the server's user cannot read.
        let chosen = if installation.passes_test("-r", library, interrupt)? {
            library.to_owned()
        } else {
            let copy = self
                .dir()
                .map_err(Failure::impossible)?
                .path()
                .join(format!("libsaiga-{arm}.so"));
            fs::copy(library, &copy).map_err(Failure::impossible)?;
            fs::set_permissions(&copy, PermissionsExt::from_mode(0o755))
                .map_err(Failure::impossible)?;
            copy
        };
        self.libraries.borrow_mut().insert(arm, chosen.clone());
        Ok(ArmKind::Saiga(chosen).env())
    }

    /// The hosts of a run; `None` if server and client are on this host.
    /// Environment variables for the client, as far as the arm decides.
    fn client_env(&self, arm: usize) -> BTreeMap<String, String> {
        match &self.over {
            Some(over) => over.wire.client_env(&self.kinds[arm]),
            None => self.kinds[arm].client_env(),
        }
    }

    fn layout(&self, arm: usize, cell: &Cell<SqlLoad>) -> Option<Layout> {
        let over = self.over.as_ref()?;
        let port = cell.load.engine.port();
        Some(over.layout(&self.kinds[arm], port, &cell.cpus))
    }

    /// Where the servers of an arm listen.
    fn listen(&self, arm: usize) -> Listen {
        match self.kinds[arm] {
            ArmKind::Unix => Listen::Unix,
            ArmKind::Kernel | ArmKind::Saiga(_) | ArmKind::Gateway(_) => match self.over {
                Some(_) => Listen::Remote,
                None => Listen::Tcp(self.port),
            },
        }
    }

    /// The address of an arm's servers, with the placeholder `{port}` unless the user chose a port.
    fn described_endpoint(&self, arm: usize, engine: Engine) -> Endpoint {
        match self.listen(arm) {
            Listen::Tcp(port) => {
                Endpoint::Tcp(port.map_or("{port}".to_owned(), |port| port.to_string()))
            }
            Listen::Remote => Endpoint::remote(engine),
            Listen::Unix => Endpoint::Unix,
        }
    }

    fn described_arm(&self, arm: usize, name: String) -> Arm {
        let kind = &self.kinds[arm];
        let over = self.over.as_ref().map(Over::shown);
        let mut description = kind.description();
        let (mut servers, mut clients) = (Vec::new(), Vec::new());
        for &engine in &self.engines {
            let (installation, load) = (described(engine), SqlLoad::new(engine, Test::Select, 16));
            let endpoint = self.described_endpoint(arm, engine);
            let server = installation.server_line(&endpoint, &sizes(&load));
            let client = seeded_line(&installation, &endpoint, &load, SEED_PLACEHOLDER);
            let (server, client) = match &over {
                None => (server.to_string(), client.to_string()),
                Some(over) => {
                    let layout = over.layout(kind, engine.port(), &Default::default());
                    description = layout.description();
                    (layout.shown_server(server), layout.shown_client(client))
                }
            };
            servers.push(server);
            let client = client.replace("-c 16", "-c {clients}");
            clients.push(client.replace("--threads=16", "--threads={clients}"));
        }
        Arm {
            name,
            server: servers.join("; "),
            client: clients.join("; "),
            env: kind.env(),
            varies: None,
            configuration: BTreeMap::new(),
            description: Some(description.to_owned()),
        }
    }
}

/// An installation for dry runs, with bare program names and the placeholder `{dir}`.
fn described(engine: Engine) -> Installation {
    Installation::new(engine, "{dir}".to_owned(), Programs::new())
}

fn sizes(load: &SqlLoad) -> Sizes {
    Sizes::small(load.engine, load.connections)
}

/// Creates the data directory of `installation` and loads the tables.
fn create(installation: &Installation, interrupt: &Interrupt) -> Result<(), Failure> {
    let engine = installation.engine;
    installation.create(mariadb::NAME, interrupt)?;
    let fill = match engine {
        Engine::MariaDb => {
            installation.write("load.lua", include_str!("load.lua"))?;
            mariadb::fill(installation)
        }
        Engine::Postgres => postgres::fill(installation),
    };
    let sizes = Sizes::small(engine, LOADING_CONNECTIONS);
    let server = Server::start_to_load(installation, Endpoint::Unix, &sizes, None, interrupt)?;
    installation.run(generator(engine), &fill, interrupt)?;
    server.stop().map_err(Failure::impossible)
}

fn client_line(installation: &Installation, endpoint: &Endpoint, load: &SqlLoad) -> CommandLine {
    match installation.engine {
        Engine::MariaDb => mariadb::client(installation, endpoint, load),
        Engine::Postgres => postgres::client(installation, endpoint, load),
    }
}

/// The client's command line with `seed`, a number or a placeholder.
fn seeded_line(
    installation: &Installation,
    endpoint: &Endpoint,
    load: &SqlLoad,
    seed: &str,
) -> CommandLine {
    let mut line = client_line(installation, endpoint, load);
    seed_line(installation.engine, &mut line, seed);
    line
}

/// Adds `seed`, a number or a placeholder, to the command line of a load generator.
pub(crate) fn seed_line(engine: Engine, line: &mut CommandLine, seed: &str) {
    match engine {
        Engine::MariaDb => mariadb::seed(line, seed),
        Engine::Postgres => postgres::seed(line, seed),
    }
}

impl Workload for SqlWorkload {
    type Load = SqlLoad;
    type Target = SqlTarget;

    fn name(&self) -> &'static str {
        "sql"
    }

    fn arms(&self) -> Vec<Arm> {
        let names = arm::names(&self.kinds).into_iter().enumerate();
        names
            .map(|(arm, name)| self.described_arm(arm, name))
            .collect()
    }

    fn versions(&self) -> BTreeMap<String, String> {
        self.versions.clone()
    }

    fn caveats(&self) -> Vec<Warning> {
        let mut caveats = vec![
            Warning::caveat(
                "This measures the path between client and server: the tables are small and in \
                 memory, and no operation waits for a disk (MariaDB: \
                 innodb_flush_log_at_trx_commit=0, innodb_flush_method=nosync; PostgreSQL: \
                 fsync=off, synchronous_commit=off).",
                "Expect a smaller gain if commits wait for a disk or queries take long.",
            ),
            Warning::caveat(
                "An operation is a transaction of the load generator: one SELECT in \
                 oltp_point_select and select-only, twenty statements in oltp_read_write, seven in \
                 tpcb-like.",
                "Compare arms, not engines.",
            ),
        ];
        caveats.extend(self.over.iter().flat_map(|over| over.wire.caveats()));
        caveats
    }

    fn metrics(&self) -> Vec<Metric> {
        let metric = self.over.as_ref().map(|_| two_hosts::metric());
        metric.into_iter().collect()
    }

    fn steps(&self, arm: usize, cell: &Cell<SqlLoad>, _operations: u64) -> Vec<String> {
        let load = &cell.load;
        let installation = described(load.engine);
        let endpoint = self.described_endpoint(arm, load.engine);
        let layout = self.layout(arm, cell);
        let places = layout.as_ref().map(|_| Places::placeholders());
        let mut server = installation.server_line(&endpoint, &sizes(load));
        server.cpus.clone_from(&cell.cpus[0]);
        server.env.extend(self.kinds[arm].env());
        server.network = places.as_ref().map(|places| places.server.clone());
        let mut client = seeded_line(&installation, &endpoint, load, SEED_PLACEHOLDER);
        client.cpus.clone_from(&cell.cpus[1]);
        client.env.extend(self.client_env(arm));
        client.network = places.map(|places| places.client);
        let mut steps = layout.as_ref().map_or_else(Vec::new, Layout::steps);
        steps.push(server.to_string());
        steps.extend(cell.hog_steps());
        steps.push(client.to_string());
        steps.push(format!(
            "# measured for {} s after all connections have run transactions",
            self.window.mul_f64(load.length_factor()).as_secs_f64()
        ));
        steps.push(match load.engine {
            Engine::MariaDb => "printf '\\001' >{dir}/stop; kill -TERM {mariadbd}".to_owned(),
            Engine::Postgres => "kill -ALRM {pgbench}; kill -INT {postgres}".to_owned(),
        });
        steps.extend(layout.iter().flat_map(Layout::last_steps));
        steps
    }

    fn prepare(
        &self,
        arm: usize,
        cell: &Cell<SqlLoad>,
        interrupt: &Interrupt,
    ) -> Result<SqlTarget, Failure> {
        let load = &cell.load;
        let installation = self.installation(load.engine, interrupt)?;
        let env = self.env(arm, &installation, interrupt)?;
        let layout = self.layout(arm, cell);
        let hosts = layout.map(|layout| Hosts::start(&layout, interrupt));
        let hosts = hosts.transpose()?;
        let places = hosts.as_ref().map(Hosts::places);
        let finish = |line: &mut CommandLine| {
            line.cpus.clone_from(&cell.cpus[0]);
            line.env.extend(env.clone());
            line.network = places.as_ref().map(|places| places.server.clone());
        };
        let listen = self.listen(arm);
        let server = Server::start(&installation, listen, &sizes(load), finish, interrupt)?;
        let mut client = client_line(&installation, &server.endpoint, load);
        client.cpus.clone_from(&cell.cpus[1]);
        client.network = places.as_ref().map(|places| places.client.clone());
        if !self.client_env(arm).is_empty() {
            client.env.extend(env);
        }
        // Connections that end after one transaction stay on TCP by design.
        let expects = self.kinds[arm].library().is_some() && !load.reconnect;
        Ok(SqlTarget {
            server,
            hosts,
            installation,
            client,
            load: load.clone(),
            window: self.window.mul_f64(load.length_factor()),
            probe: self.probe.clone().filter(|_| expects),
        })
    }
}
