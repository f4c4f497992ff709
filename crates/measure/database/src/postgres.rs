//! The command lines of PostgreSQL: no fsync, no full-page writes, asynchronous commits.

use crate::installation::{Endpoint, Installation, Sizes};

/// Creates the data directory.
pub(crate) fn initialise(installation: &Installation) -> Vec<String> {
    let data = installation.file("data");
    let args = ["-D", &data, "-A", "trust", "-U", "postgres", "--no-locale"];
    let args = args.into_iter();
    let args = args.chain(["--encoding=UTF8", "--no-sync", "--wal-segsize=4"]);
    args.map(str::to_owned).collect()
}

pub(crate) fn server(
    installation: &Installation,
    endpoint: &Endpoint,
    sizes: &Sizes,
) -> Vec<String> {
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
    set(format!("max_connections={}", sizes.connections + 20));
    set(format!("shared_buffers={}MB", sizes.pool_mib));
    for setting in [
        "dynamic_shared_memory_type=mmap",
        "fsync=off",
        "synchronous_commit=off",
        "full_page_writes=off",
        "autovacuum=off",
        "max_wal_size=1GB",
    ] {
        set(setting.to_owned());
    }
    args
}
