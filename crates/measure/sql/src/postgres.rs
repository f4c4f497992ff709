//! The command lines of pgbench, which runs its built-in scripts and logs each transaction.

use saiga_database::{Endpoint, Installation};
use saiga_process::child::CommandLine;

use crate::load::SqlLoad;

/// Scale factor of pgbench, in units of 100,000 accounts (15 MiB). Ten branches are enough for
/// sixteen writers.
const SCALE: &str = "10";
/// Duration for pgbench, which is stopped by a signal long before.
const ENDLESS_S: &str = "3600";
/// The name of the database and of its owner.
const NAME: &str = "postgres";

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
    if let Some(rate) = load.rate {
        line.args.push(format!("--rate={rate}"));
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
    match endpoint.tcp() {
        Some((address, port)) => line
            .args
            .extend(["-h", address, "-p", port].map(str::to_owned)),
        None => line
            .args
            .extend(["-h", &installation.dir].map(str::to_owned)),
    }
    line.args.extend(["-U", NAME, NAME].map(str::to_owned));
    // Overrides the user's settings for other servers.
    for (name, value) in [("PGSSLMODE", "disable"), ("PGGSSENCMODE", "disable")] {
        line.env.insert(name.to_owned(), value.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use saiga_database::{Engine, Programs};

    use super::*;
    use crate::Test;

    #[test]
    fn a_load_with_a_rate_has_a_schedule() {
        let installation = Installation::new(Engine::Postgres, "d".to_owned(), Programs::new());
        let mut load = SqlLoad::new(Engine::Postgres, Test::Select, 64);
        let line = |load: &SqlLoad| client(&installation, &Endpoint::Unix, load).to_string();
        assert!(!line(&load).contains("--rate"));
        load.rate = Some(5_000);
        assert!(line(&load).contains(" --rate=5000 "));
    }
}
