//! The command lines of PostgreSQL and pgbench.
//!
//! No operation waits for a disk: no fsync, no full-page writes, asynchronous commits. pgbench runs
//! its built-in scripts and logs each transaction.

use saiga_experiment::process::{CommandLine, Signal, StopSignals};

use crate::installation::{Endpoint, Installation};
use crate::load::SqlLoad;

/// Scale factor of pgbench, in units of 100,000 accounts (15 MiB). Ten branches are enough for
/// sixteen writers.
const SCALE: &str = "10";
/// Duration for pgbench, which is stopped by a signal long before.
const ENDLESS_S: &str = "3600";
/// The name of the database and of its owner.
const NAME: &str = "postgres";

/// Creates the data directory.
pub(crate) fn initialise(installation: &Installation) -> CommandLine {
    let data = installation.file("data");
    let args = [
        "-D",
        &data,
        "-A",
        "trust",
        "-U",
        NAME,
        "--no-locale",
        "--encoding=UTF8",
    ];
    let args = args.into_iter().chain(["--no-sync", "--wal-segsize=4"]);
    installation.line("initdb", args)
}

/// The server. SIGINT requests a fast shutdown; SIGQUIT an immediate shutdown, in which the server
/// still ends its children and removes its shared memory.
pub(crate) fn server(
    installation: &Installation,
    endpoint: &Endpoint,
    connections: u32,
) -> CommandLine {
    let mut args = vec!["-D".to_owned(), installation.file("data")];
    let mut set = |setting: String| args.extend(["-c".to_owned(), setting]);
    match endpoint {
        Endpoint::Tcp(port) => {
            set("listen_addresses=127.0.0.1".to_owned());
            set(format!("port={port}"));
            set("unix_socket_directories=".to_owned());
        }
        Endpoint::Unix => {
            set("listen_addresses=".to_owned());
            set(format!("unix_socket_directories={}", installation.dir));
        }
    }
    set(format!("max_connections={}", connections + 20));
    for setting in [
        "shared_buffers=256MB",
        "dynamic_shared_memory_type=mmap",
        "fsync=off",
        "synchronous_commit=off",
        "full_page_writes=off",
        "autovacuum=off",
        "max_wal_size=1GB",
    ] {
        set(setting.to_owned());
    }
    CommandLine {
        stop_signals: StopSignals {
            ask: Signal::INT,
            force: Signal::QUIT,
        },
        ..installation.line("postgres", args)
    }
}

/// Loads the tables through the socket.
pub(crate) fn fill(installation: &Installation) -> CommandLine {
    let mut line = installation.line("pgbench", ["-i", "-q", "-s", SCALE]);
    add_connection(&mut line, installation, &Endpoint::Unix);
    line
}

/// The load. SIGALRM ends it like the end of its duration. Before writing loads, pgbench removes
/// the history and dead rows of the previous run (VACUUM), as by default.
pub(crate) fn client(
    installation: &Installation,
    endpoint: &Endpoint,
    load: &SqlLoad,
) -> CommandLine {
    let connections = load.connections.to_string();
    let events = format!("--log-prefix={}", installation.file("events"));
    let args = [
        "-b",
        load.test_name(),
        "-c",
        &connections,
        "-T",
        ENDLESS_S,
        "-l",
        &events,
    ];
    let mut line = installation.line("pgbench", args);
    if load.reconnect {
        line.args.push("-C".to_owned());
    }
    if load.test == crate::Test::Select {
        line.args.push("-n".to_owned());
    }
    add_connection(&mut line, installation, endpoint);
    line
}

/// Sets the seed of the load's inputs.
pub(crate) fn seed(line: &mut CommandLine, seed: &str) {
    line.args.insert(0, format!("--random-seed={seed}"));
}

fn add_connection(line: &mut CommandLine, installation: &Installation, endpoint: &Endpoint) {
    match endpoint {
        Endpoint::Tcp(port) => line
            .args
            .extend(["-h", "127.0.0.1", "-p", port].map(str::to_owned)),
        Endpoint::Unix => line
            .args
            .extend(["-h", &installation.dir].map(str::to_owned)),
    }
    line.args.extend(["-U", NAME, NAME].map(str::to_owned));
    // Overrides the user's settings for other servers.
    for (name, value) in [("PGSSLMODE", "disable"), ("PGGSSENCMODE", "disable")] {
        line.env.insert(name.to_owned(), value.to_owned());
    }
}
