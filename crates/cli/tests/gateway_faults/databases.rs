//! Databases whose clients' link loses, doubles, reorders and corrupts packets: each transaction
//! happens once, and rows have the same bytes as on the server's own host.
//!
//! sysbench and pgbench with short loads; with `make soak` longer ones, and TPC-C with all its
//! checks. MariaDB and PostgreSQL admit the clients by their address alone. The kernel carries
//! other programs over the same path at the same time.

use std::process::Command;

use fastrand::Rng;
use saiga_database::{Endpoint, Engine, Installation, Listen, Server, Sizes};
use saiga_process::child::CommandLine;
use saiga_process::interrupt::Interrupt;
use saiga_trials::scale::{by_scale, seed};

use crate::kernel_programs::KernelPrograms;
use crate::support::text;
use crate::world::{Link, SERVER, Wire, World, in_world, succeed};

/// The database, and its user.
const NAME: &str = "tpcc";
/// Connections of a load, and transactions of each.
const SESSIONS: u32 = 8;
const TRANSACTIONS: [u32; 2] = [10, 500];
/// Rows of sysbench's table.
const ROWS: u32 = 10_000;
/// All rows of sysbench, and as many of pgbench: some MB.
const ROWS_OF_MARIADB: &str = "select * from sbtest1 order by id";
const ROWS_OF_POSTGRES: &str = "select * from pgbench_accounts where aid <= 10000 order by aid";
/// What the three tables of balances, and the history, say of one load.
const BALANCES: &str = "select count(*), sum(delta) = (select sum(abalance) from pgbench_accounts), \
                        sum(delta) = (select sum(tbalance) from pgbench_tellers), sum(delta) = \
                        (select sum(bbalance) from pgbench_branches) from pgbench_history";

#[test]
fn databases_keep_their_books_over_a_faulty_path() {
    let mut rng = Rng::with_seed(seed(65));
    for (engine, wire) in [(Engine::MariaDb, Wire::Tap), (Engine::Postgres, Wire::Xdp)] {
        in_world(wire, Link::Faulty(rng.u64(..)), |world| {
            let site = Site::new(world, engine);
            site.fill();
            let server = site.start(Listen::Remote);
            world.close_kernel_side();
            let gateway = world.gateway();
            let others = (wire == Wire::Xdp).then(|| KernelPrograms::start(world));
            site.load();
            let rows = site.rows(Place::Client);
            if by_scale(false, true) {
                site.run_tpcc();
            }
            if let Some(others) = others {
                println!("curl, ab and ssh have run {} times", others.end());
            }
            let faults = world.faulty.as_ref().unwrap().faults();
            println!("{engine:?}: lost, doubled, late, corrupted: {faults:?}");
            assert!(faults.iter().all(|count| *count > 0), "{faults:?}");
            world.stop(gateway);
            server.stop_in_order().unwrap();
            site.check_books(&rows);
        });
    }
}

/// Where a client runs.
#[derive(Clone, Copy)]
enum Place {
    /// On the client's host, which reaches the server through the gateway.
    Client,
    /// On the server's host, by its Unix socket.
    Server,
}

/// A private database server and its clients.
struct Site<'a> {
    world: &'a World,
    installation: Installation,
}

impl<'a> Site<'a> {
    fn new(world: &'a World, engine: Engine) -> Self {
        let dir = text(&world.saiga.path("database")).to_owned();
        let programs = saiga_database::find(engine, &[]).unwrap();
        let installation = Installation::new(engine, dir, programs);
        installation.create(NAME, &Interrupt::never()).unwrap();
        Self {
            world,
            installation,
        }
    }

    fn engine(&self) -> Engine {
        self.installation.engine
    }

    /// The tables of the load, and with `make soak` those of TPC-C.
    fn fill(&self) {
        let (sizes, interrupt) = (self.sizes(), Interrupt::never());
        let first =
            Server::start_to_load(&self.installation, Endpoint::Unix, &sizes, None, &interrupt);
        let first = first.unwrap();
        match self.engine() {
            Engine::MariaDb => self.run(Place::Server, self.sysbench(Place::Server).arg("prepare")),
            Engine::Postgres => {
                let mut command = self.postgres("pgbench", Place::Server);
                self.run(Place::Server, command.args(["-i", "-q"]))
            }
        };
        if by_scale(false, true) {
            self.run(Place::Server, &mut self.tpcc("build", Place::Server));
        }
        first.stop_in_order().unwrap();
    }

    fn sizes(&self) -> Sizes {
        Sizes::small(self.engine(), 2 * SESSIONS)
    }

    /// The server under the library.
    fn start(&self, listen: Listen) -> Server {
        let library = self.world.saiga.path("lib/saiga/libsaiga.so");
        let preload = text(&library).to_owned();
        let accelerate = |line: &mut CommandLine| {
            line.env.insert("LD_PRELOAD".to_owned(), preload.clone());
        };
        let (sizes, interrupt) = (self.sizes(), Interrupt::never());
        Server::start(&self.installation, listen, &sizes, accelerate, &interrupt).unwrap()
    }

    /// Transactions that read and write, over the faulty path.
    fn load(&self) {
        let each = by_scale(TRANSACTIONS[0], TRANSACTIONS[1]);
        let all = SESSIONS * each;
        let (mut command, wanted) = match self.engine() {
            Engine::MariaDb => {
                let mut command = self.sysbench(Place::Client);
                command.args(["--time=0", &format!("--threads={SESSIONS}")]);
                command.args([&format!("--events={all}"), "run"]);
                (command, format!("total number of events: {all}"))
            }
            Engine::Postgres => {
                let mut command = self.postgres("pgbench", Place::Client);
                command.args(["-n", "-c", &SESSIONS.to_string(), "-t", &each.to_string()]);
                (command, format!("actually processed: {all}/{all}"))
            }
        };
        let output = self.run(Place::Client, &mut command);
        let words: Vec<&str> = output.split_whitespace().collect();
        assert!(words.join(" ").contains(&wanted), "{output}");
    }

    /// A run of TPC-C over the faulty path. Fails if a condition of §3.3.2 does not hold in the
    /// tables before or after it, or if they do not have the counted transactions.
    fn run_tpcc(&self) {
        let mut command = self.tpcc("run", Place::Client);
        let out = self.world.saiga.path("tpcc");
        command.args(["--for", "30s", "--out"]).arg(out);
        self.run(Place::Client, &mut command);
    }

    /// The rows of the load as text.
    fn rows(&self, place: Place) -> String {
        self.ask(
            place,
            match self.engine() {
                Engine::MariaDb => ROWS_OF_MARIADB,
                Engine::Postgres => ROWS_OF_POSTGRES,
            },
        )
    }

    /// Compares the tables, without the gateway, with what a client `saw` and with the load.
    fn check_books(&self, seen: &str) {
        let server = self.start(Listen::Unix);
        assert!(!seen.is_empty());
        assert!(
            self.rows(Place::Server) == seen,
            "other rows than the client saw"
        );
        match self.engine() {
            Engine::MariaDb => {
                let count = self.ask(Place::Server, "select count(*) from sbtest1");
                assert_eq!(count.trim(), ROWS.to_string());
            }
            Engine::Postgres => {
                let all = SESSIONS * by_scale(TRANSACTIONS[0], TRANSACTIONS[1]);
                let balances = self.ask(Place::Server, BALANCES);
                assert_eq!(balances.trim(), format!("{all}|t|t|t"));
            }
        }
        server.stop_in_order().unwrap();
    }

    /// The answer to a query, without names of columns.
    fn ask(&self, place: Place, query: &str) -> String {
        let mut command = match self.engine() {
            Engine::MariaDb => {
                let mut command = Command::new("mariadb");
                let (key, value) = self.address(place);
                command
                    .args(["--no-defaults", "--batch", "--skip-column-names"])
                    .arg(format!("--{key}={value}"))
                    .args(["--user", NAME, NAME, "-e"]);
                command
            }
            Engine::Postgres => {
                let mut command = self.postgres("psql", place);
                command.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-c"]);
                command
            }
        };
        self.run(place, command.arg(query))
    }

    /// A client program of PostgreSQL.
    fn postgres(&self, program: &str, place: Place) -> Command {
        let mut command = Command::new(program);
        let (_, host) = self.address(place);
        command.envs([("PGHOST", host)]);
        command.envs([("PGUSER", "postgres"), ("PGDATABASE", "postgres")]);
        command
    }

    /// sysbench with its table, without the verb.
    fn sysbench(&self, place: Place) -> Command {
        let mut command = Command::new("sysbench");
        let (key, value) = self.address(place);
        command
            .args(["oltp_read_write", "--tables=1"])
            .arg(format!("--table-size={ROWS}"))
            .arg(format!("--mysql-{key}={value}"))
            .arg(format!("--mysql-user={NAME}"))
            .arg(format!("--mysql-db={NAME}"));
        command
    }

    /// A step of `saiga bench tpcc`.
    fn tpcc(&self, step: &str, place: Place) -> Command {
        let mut command = self.world.saiga.saiga(&["bench", "tpcc", step]);
        let (key, value) = self.address(place);
        command
            .args(["--engine", self.engine().name()])
            .arg(format!("--{key}={value}"));
        if self.engine() == Engine::Postgres {
            command.args(["--user", "postgres", "--database", "postgres"]);
        }
        command
    }

    /// How a client reaches the server, as the name and the value of an option.
    fn address(&self, place: Place) -> (&'static str, String) {
        match (place, self.engine()) {
            (Place::Client, _) => ("host", SERVER.to_string()),
            (Place::Server, Engine::MariaDb) => ("socket", self.installation.file("socket")),
            (Place::Server, Engine::Postgres) => ("socket", self.installation.dir.clone()),
        }
    }

    /// Runs a program that must succeed; returns its output.
    fn run(&self, place: Place, command: &mut Command) -> String {
        match place {
            Place::Client => self.world.run_on_client(command),
            Place::Server => succeed(command),
        }
    }
}
