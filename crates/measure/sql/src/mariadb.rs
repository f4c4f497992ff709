//! The command lines of sysbench, which runs its own tests; `load.lua` only decides when they end.

use saiga_database::{Endpoint, Installation};
use saiga_process::child::CommandLine;

use crate::load::SqlLoad;

/// Rows of the table: about 25 MiB, much less than the buffer pool.
const ROWS: &str = "100000";
/// The name of the database and of its user.
pub(crate) const NAME: &str = "sbtest";

/// Loads the table through the socket.
pub(crate) fn fill(installation: &Installation) -> CommandLine {
    let mut args = vec!["oltp_point_select".to_owned()];
    args.extend(connection_options(installation, &Endpoint::Unix));
    args.extend(["--tables=1".to_owned(), format!("--table-size={ROWS}")]);
    args.push("prepare".to_owned());
    installation.line("sysbench", args)
}

/// The load; it ends when the first byte of the file `stop` is set.
pub(crate) fn client(
    installation: &Installation,
    endpoint: &Endpoint,
    load: &SqlLoad,
) -> CommandLine {
    let mut args = vec![installation.file("load.lua")];
    args.extend(connection_options(installation, endpoint));
    args.extend(["--tables=1".to_owned(), format!("--table-size={ROWS}")]);
    args.extend([
        format!("--threads={}", load.connections),
        "--time=0".to_owned(),
        format!("--load_stop={}", installation.file("stop")),
        format!("--load_events={}", installation.file("events")),
    ]);
    if load.reconnect {
        args.push("--load_reconnect=on".to_owned());
    }
    args.push("run".to_owned());
    let mut line = installation.line("sysbench", args);
    let test = load.test_name().to_owned();
    line.env.insert("SYSBENCH_TEST".to_owned(), test);
    line
}

/// Sets the seed of the load's inputs.
pub(crate) fn seed(line: &mut CommandLine, seed: &str) {
    line.args.push(format!("--rand-seed={seed}"));
}

fn connection_options(installation: &Installation, endpoint: &Endpoint) -> Vec<String> {
    let mut args = vec![format!("--mysql-user={NAME}"), format!("--mysql-db={NAME}")];
    match endpoint.tcp() {
        Some((address, port)) => args.extend([
            format!("--mysql-host={address}"),
            format!("--mysql-port={port}"),
        ]),
        None => args.push(format!("--mysql-socket={}", installation.file("socket"))),
    }
    args
}
