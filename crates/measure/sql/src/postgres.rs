//! The command lines of PostgreSQL and pgbench.
//!
//! Nothing waits for a disk: no fsync, no full pages in the log, commits do not wait for
//! it. pgbench runs its own scripts and logs each transaction.

use saiga_experiment::process::{CommandLine, Endings, Signal};

use crate::load::SqlLoad;
use crate::site::{Endpoint, Site};

/// pgbench's unit of 100,000 accounts, 15 MiB each; ten branches, for sixteen writers.
const SCALE: &str = "10";
/// It is stopped by a signal long before.
const ENDLESS_S: &str = "3600";
/// The name that both the database and its owner have.
const NAME: &str = "postgres";

/// Makes the data directory.
pub(crate) fn initialise(site: &Site) -> CommandLine {
    let data = site.file("data");
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
    site.line("initdb", args)
}

/// The server. SIGINT is its fast shutdown, SIGQUIT the one at once, after which it still
/// ends its children and removes its shared memory.
pub(crate) fn server(site: &Site, endpoint: &Endpoint, connections: u32) -> CommandLine {
    let mut args = vec!["-D".to_owned(), site.file("data")];
    let mut set = |setting: String| args.extend(["-c".to_owned(), setting]);
    match endpoint {
        Endpoint::Tcp(port) => {
            set("listen_addresses=127.0.0.1".to_owned());
            set(format!("port={port}"));
            set("unix_socket_directories=".to_owned());
        }
        Endpoint::Unix => {
            set("listen_addresses=".to_owned());
            set(format!("unix_socket_directories={}", site.dir));
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
        endings: Endings {
            ask: Signal::INT,
            force: Signal::QUIT,
        },
        ..site.line("postgres", args)
    }
}

/// Loads the tables, through the socket.
pub(crate) fn fill(site: &Site) -> CommandLine {
    let mut line = site.line("pgbench", ["-i", "-q", "-s", SCALE]);
    reach(&mut line, site, &Endpoint::Unix);
    line
}

/// The load; SIGALRM ends it as the end of its time would. Before it writes, it removes the
/// history and dead rows of the run before, as pgbench always does.
pub(crate) fn client(site: &Site, endpoint: &Endpoint, load: &SqlLoad) -> CommandLine {
    let connections = load.connections.to_string();
    let events = format!("--log-prefix={}", site.file("events"));
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
    let mut line = site.line("pgbench", args);
    if load.reconnect {
        line.args.push("-C".to_owned());
    }
    if load.test == crate::Test::Select {
        line.args.push("-n".to_owned());
    }
    reach(&mut line, site, endpoint);
    line
}

/// Lets the inputs of the load follow from `seed`.
pub(crate) fn seed(line: &mut CommandLine, seed: &str) {
    line.args.insert(0, format!("--random-seed={seed}"));
}

fn reach(line: &mut CommandLine, site: &Site, endpoint: &Endpoint) {
    match endpoint {
        Endpoint::Tcp(port) => line
            .args
            .extend(["-h", "127.0.0.1", "-p", port].map(str::to_owned)),
        Endpoint::Unix => line.args.extend(["-h", &site.dir].map(str::to_owned)),
    }
    line.args.extend(["-U", NAME, NAME].map(str::to_owned));
    // The user's own settings for other servers must not meet ours.
    for (name, value) in [("PGSSLMODE", "disable"), ("PGGSSENCMODE", "disable")] {
        line.env.insert(name.to_owned(), value.to_owned());
    }
}
