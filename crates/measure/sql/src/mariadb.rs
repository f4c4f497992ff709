//! The command lines of MariaDB and sysbench.
//!
//! Nothing waits for a disk: the redo log is flushed once a second at most, and nothing
//! is synchronised. sysbench runs its own tests; `load.lua` only decides when they end.

use saiga_experiment::process::{CommandLine, Endings};

use crate::load::SqlLoad;
use crate::site::{Endpoint, Site};

/// Rows of the one table: some 25 MiB, well inside the buffer pool.
const ROWS: &str = "100000";
/// What a server that is loaded for the first time is told.
pub(crate) const INIT_SQL: &str = "\
CREATE DATABASE sbtest;
CREATE USER sbtest@'%' IDENTIFIED BY '';
GRANT ALL ON sbtest.* TO sbtest@'%';
";

/// The same for TPC-C.
pub(crate) const TPCC_SQL: &str = "\
CREATE DATABASE tpcc;
CREATE USER tpcc@'%' IDENTIFIED BY '';
GRANT ALL ON tpcc.* TO tpcc@'%';
";

/// Makes the data directory.
pub(crate) fn initialise(site: &Site) -> CommandLine {
    let data = format!("--datadir={}", site.file("data"));
    // TMPDIR may be closed to the server's account.
    let tmp = format!("--tmpdir={}", site.dir);
    let args = [
        "--no-defaults",
        &data,
        &tmp,
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--innodb-log-file-size=16M",
    ];
    site.line("mariadb-install-db", args)
}

/// The server.
pub(crate) fn server(site: &Site, endpoint: &Endpoint, connections: u32) -> CommandLine {
    let mut args = vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", site.file("data")),
        format!("--tmpdir={}", site.dir),
        format!("--pid-file={}", site.file("pid")),
        format!("--socket={}", site.file("socket")),
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
            // sysbench connects all threads at once; a queue that overflows costs seconds.
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
        endings: Endings::default(),
        ..site.line("mariadbd", args)
    }
}

/// Loads the table, through the socket.
pub(crate) fn fill(site: &Site) -> CommandLine {
    let mut args = vec!["oltp_point_select".to_owned()];
    args.extend(reach(site, &Endpoint::Unix));
    args.extend(["--tables=1".to_owned(), format!("--table-size={ROWS}")]);
    args.push("prepare".to_owned());
    site.line("sysbench", args)
}

/// The load; it ends when the first byte of the file `stop` is set.
pub(crate) fn client(site: &Site, endpoint: &Endpoint, load: &SqlLoad) -> CommandLine {
    let mut args = vec![site.file("load.lua")];
    args.extend(reach(site, endpoint));
    args.extend(["--tables=1".to_owned(), format!("--table-size={ROWS}")]);
    args.extend([
        format!("--threads={}", load.connections),
        "--time=0".to_owned(),
        format!("--load_stop={}", site.file("stop")),
        format!("--load_events={}", site.file("events")),
    ]);
    if load.reconnect {
        args.push("--load_reconnect=on".to_owned());
    }
    args.push("run".to_owned());
    let mut line = site.line("sysbench", args);
    let test = load.test_name().to_owned();
    line.env.insert("SYSBENCH_TEST".to_owned(), test);
    line
}

/// Lets the inputs of the load follow from `seed`.
pub(crate) fn seed(line: &mut CommandLine, seed: &str) {
    line.args.push(format!("--rand-seed={seed}"));
}

fn reach(site: &Site, endpoint: &Endpoint) -> Vec<String> {
    let mut args = vec![
        "--mysql-user=sbtest".to_owned(),
        "--mysql-db=sbtest".to_owned(),
    ];
    match endpoint {
        Endpoint::Tcp(port) => args.extend([
            "--mysql-host=127.0.0.1".to_owned(),
            format!("--mysql-port={port}"),
        ]),
        Endpoint::Unix => args.push(format!("--mysql-socket={}", site.file("socket"))),
    }
    args
}
