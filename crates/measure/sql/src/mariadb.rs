//! The command lines of MariaDB and sysbench.
//!
//! No operation waits for a disk: the redo log is written once per second, and no file is
//! synchronised. sysbench runs its own tests; `load.lua` only decides when they end.

use saiga_experiment::process::{CommandLine, StopSignals};

use crate::installation::{Endpoint, Installation};
use crate::load::SqlLoad;

/// Rows of the table: about 25 MiB, much less than the buffer pool.
const ROWS: &str = "100000";
/// SQL for the first start.
pub(crate) const INIT_SQL: &str = "\
CREATE DATABASE sbtest;
CREATE USER sbtest@'%' IDENTIFIED BY '';
GRANT ALL ON sbtest.* TO sbtest@'%';
";

/// SQL for the first start, for TPC-C.
pub(crate) const TPCC_SQL: &str = "\
CREATE DATABASE tpcc;
CREATE USER tpcc@'%' IDENTIFIED BY '';
GRANT ALL ON tpcc.* TO tpcc@'%';
";

/// Creates the data directory.
pub(crate) fn initialise(installation: &Installation) -> CommandLine {
    let data = format!("--datadir={}", installation.file("data"));
    // The server's account may have no access to TMPDIR.
    let tmp = format!("--tmpdir={}", installation.dir);
    let args = [
        "--no-defaults",
        &data,
        &tmp,
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--innodb-log-file-size=16M",
    ];
    installation.line("mariadb-install-db", args)
}

pub(crate) fn server(
    installation: &Installation,
    endpoint: &Endpoint,
    connections: u32,
) -> CommandLine {
    let mut args = vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", installation.file("data")),
        format!("--tmpdir={}", installation.dir),
        format!("--pid-file={}", installation.file("pid")),
        format!("--socket={}", installation.file("socket")),
    ];
    match endpoint {
        Endpoint::Tcp(port) => {
            args.extend([
                "--bind-address=127.0.0.1".to_owned(),
                format!("--port={port}"),
            ]);
        }
        Endpoint::Unix => args.push("--skip-networking".to_owned()),
    }
    args.push(format!("--max-connections={}", connections + 20));
    args.extend(
        [
            // sysbench connects all threads at once; a backlog that overflows costs seconds.
            "--back-log=1024",
            "--skip-name-resolve",
            "--skip-log-bin",
            "--innodb-buffer-pool-size=128M",
            "--innodb-log-file-size=16M",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-flush-method=nosync",
            "--skip-innodb-doublewrite",
            "--skip-innodb-buffer-pool-dump-at-shutdown",
            "--skip-innodb-buffer-pool-load-at-startup",
        ]
        .map(str::to_owned),
    );
    CommandLine {
        stop_signals: StopSignals::default(),
        ..installation.line("mariadbd", args)
    }
}

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
    let mut args = vec![
        "--mysql-user=sbtest".to_owned(),
        "--mysql-db=sbtest".to_owned(),
    ];
    match endpoint {
        Endpoint::Tcp(port) => args.extend([
            "--mysql-host=127.0.0.1".to_owned(),
            format!("--mysql-port={port}"),
        ]),
        Endpoint::Unix => args.push(format!("--mysql-socket={}", installation.file("socket"))),
    }
    args
}
