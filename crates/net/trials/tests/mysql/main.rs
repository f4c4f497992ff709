//! A real mysqld under the library, with MySQL's own clients and sysbench on both arms: all
//! that MariaDB has to stand, and what only MySQL has: its passwords, its X protocol.
//!
//! Only `make soak` runs this (the feature `soak`): its packages are not Debian stable's.

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

/// Whose servers these are.
const KIND: Kind = Kind::MySql;

/// How connections find a thread: only its paid edition has a pool of them.
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

/// What a server is told that is to encrypt, and then its clients: it makes certificates itself.
fn encrypting(_: &Path) -> (Vec<String>, String) {
    (Vec::new(), "--ssl-mode=REQUIRED".to_owned())
}
