//! A real mariadbd under the library, with MariaDB's own clients and sysbench on both arms: threads
//! per connection and pools, kills on both sides, TLS, replication.

use std::path::Path;

use saiga_trials::{certificate, mariadb::Kind, parity::Arm, scale::by_scale};

use channels::Pair;

mod channels;
mod crashes;
mod load;
mod replication;
mod sessions;
mod tls;

/// The product under test.
const KIND: Kind = Kind::MariaDb;

/// The server's ways to assign threads to connections.
const HANDLING: [&[&str]; 2] = [
    &["--thread-handling=one-thread-per-connection"],
    &["--thread-handling=pool-of-threads", "--thread-pool-size=3"],
];

/// Every way of threads with every pair of arms. The quick run leaves out two pairs of the pool: a
/// server on the kernel, and the default evidence, which does not depend on the threads.
fn cells() -> Vec<(&'static [&'static str], Pair)> {
    let each = [
        (HANDLING[0], (Arm::Library, Arm::Library)),
        (HANDLING[0], (Arm::Shipped, Arm::Shipped)),
        (HANDLING[0], (Arm::Library, Arm::Kernel)),
        (HANDLING[0], (Arm::Kernel, Arm::Library)),
        (HANDLING[1], (Arm::Library, Arm::Library)),
        (HANDLING[1], (Arm::Library, Arm::Kernel)),
        (HANDLING[1], (Arm::Shipped, Arm::Shipped)),
        (HANDLING[1], (Arm::Kernel, Arm::Library)),
    ];
    each[..by_scale(6, 8)].to_vec()
}

/// Options for TLS, of a server and then of its clients; files are written to `folder`.
fn encrypting(folder: &Path) -> (Vec<String>, String) {
    let [cert, key] = certificate::make(folder).map(|file| file.display().to_string());
    let own = vec![format!("--ssl-cert={cert}"), format!("--ssl-key={key}")];
    (own, format!("--ssl-ca={cert}"))
}
