//! The command lines of MariaDB. The redo log is written once per second, and no file is
//! synchronised.

use saiga_hosts::CLIENT;

use crate::installation::{Endpoint, Installation, LOOPBACK, Sizes};

/// Creates the data directory.
pub(crate) fn initialise(installation: &Installation) -> Vec<String> {
    vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", installation.file("data")),
        // The server's account may have no access to TMPDIR.
        format!("--tmpdir={}", installation.dir),
        "--auth-root-authentication-method=normal".to_owned(),
        "--skip-test-db".to_owned(),
        "--innodb-log-file-size=16M".to_owned(),
    ]
}

/// SQL for the first start. The users are those of the Unix socket, of this host and of the
/// client's host; clients from other addresses are refused.
pub(crate) fn first_sql(name: &str) -> String {
    let user = |host: &str| {
        format!(
            "CREATE USER {name}@'{host}' IDENTIFIED BY '';\n\
             GRANT ALL ON {name}.* TO {name}@'{host}';\n"
        )
    };
    let users: String = ["localhost", LOOPBACK, CLIENT].map(user).concat();
    format!("CREATE DATABASE {name};\n{users}")
}

pub(crate) fn server(
    installation: &Installation,
    endpoint: &Endpoint,
    sizes: &Sizes,
) -> Vec<String> {
    let mut args = vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", installation.file("data")),
        format!("--tmpdir={}", installation.dir),
        format!("--pid-file={}", installation.file("pid")),
        format!("--socket={}", installation.file("socket")),
    ];
    match endpoint.tcp() {
        Some((address, port)) => args.extend([
            format!("--bind-address={address}"),
            format!("--port={port}"),
        ]),
        None => args.push("--skip-networking".to_owned()),
    }
    args.extend([
        format!("--max-connections={}", sizes.connections + 20),
        // A load may connect all its threads at once; a backlog that overflows costs seconds.
        "--back-log=1024".to_owned(),
        "--skip-name-resolve".to_owned(),
        "--skip-log-bin".to_owned(),
        format!("--innodb-buffer-pool-size={}M", sizes.pool_mib),
        format!("--innodb-log-file-size={}M", sizes.log_mib),
        "--innodb-flush-log-at-trx-commit=0".to_owned(),
        "--innodb-flush-method=nosync".to_owned(),
        "--skip-innodb-doublewrite".to_owned(),
        "--skip-innodb-buffer-pool-dump-at-shutdown".to_owned(),
        "--skip-innodb-buffer-pool-load-at-startup".to_owned(),
    ]);
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_is_admitted_from_one_address() {
        let sql = first_sql("a");
        let users: Vec<&str> = sql
            .lines()
            .filter(|line| line.starts_with("CREATE USER"))
            .collect();
        assert_eq!(
            users,
            [
                "CREATE USER a@'localhost' IDENTIFIED BY '';",
                "CREATE USER a@'127.0.0.1' IDENTIFIED BY '';",
                "CREATE USER a@'10.77.0.2' IDENTIFIED BY '';",
            ]
        );
    }
}
