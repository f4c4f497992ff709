//! The command lines of PostgreSQL: no fsync, no full-page writes, asynchronous commits.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use saiga_hosts::CLIENT;

use crate::installation::{Endpoint, Installation, Sizes};

/// Creates the data directory.
pub(crate) fn initialise(installation: &Installation) -> Vec<String> {
    let data = installation.file("data");
    let args = ["-D", &data, "-A", "trust", "-U", "postgres", "--no-locale"];
    let args = args.into_iter();
    let args = args.chain(["--encoding=UTF8", "--no-sync", "--wal-segsize=4"]);
    args.map(str::to_owned).collect()
}

/// Admits clients with the address of the client's host, as initdb admits those of 127.0.0.1;
/// clients from other addresses are refused. The directory is the server's account's, which could
/// put a symbolic link in the place of the file.
pub(crate) fn admit_client(installation: &Installation) -> io::Result<()> {
    let path = installation.file("data/pg_hba.conf");
    let mut options = File::options();
    let mut rules = options
        .append(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    writeln!(rules, "host all all {CLIENT}/32 trust")
}

pub(crate) fn server(
    installation: &Installation,
    endpoint: &Endpoint,
    sizes: &Sizes,
) -> Vec<String> {
    let mut args = vec!["-D".to_owned(), installation.file("data")];
    let mut set = |setting: String| args.extend(["-c".to_owned(), setting]);
    match endpoint.tcp() {
        Some((address, port)) => {
            set(format!("listen_addresses={address}"));
            set(format!("port={port}"));
            set("unix_socket_directories=".to_owned());
        }
        None => {
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
