//! A real mysqld under the library, with MySQL's own clients and sysbench on both arms: all tests
//! of MariaDB, and those that only MySQL has: its passwords, its X protocol.
//!
//! Only `make soak` runs this (the feature `soak`): its packages are not in Debian stable.

use std::path::Path;

use saiga_trials::{mariadb::Kind, parity::Arm};

use channels::Pair;

#[path = "../mariadb/channels.rs"]
mod channels;
#[path = "../mariadb/crashes.rs"]
mod crashes;
#[path = "../mariadb/load.rs"]
mod load;
mod passwords;
#[path = "../mariadb/replication.rs"]
mod replication;
#[path = "../mariadb/sessions.rs"]
mod sessions;
mod statements;
#[path = "../mariadb/tls.rs"]
mod tls;
mod tools;
mod x_protocol;

/// The product under test.
const KIND: Kind = Kind::MySql;

/// The server's ways to assign threads to connections: only the paid edition has a pool.
const HANDLING: [&[&str]; 1] = [&[]];

/// Every pair of arms.
fn cells() -> [(&'static [&'static str], Pair); 4] {
    [
        (Arm::Library, Arm::Library),
        (Arm::Shipped, Arm::Shipped),
        (Arm::Library, Arm::Kernel),
        (Arm::Kernel, Arm::Library),
    ]
    .map(|pair| (HANDLING[0], pair))
}

/// Options for TLS, of a server and then of its clients; the server makes certificates itself.
fn encrypting(_: &Path) -> (Vec<String>, String) {
    (Vec::new(), "--ssl-mode=REQUIRED".to_owned())
}
