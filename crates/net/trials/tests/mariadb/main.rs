//! A real mariadbd under the library, with MariaDB's own clients and sysbench on both
//! arms: threads per connection and pools, kills from every side, TLS, replication.

use std::path::Path;

use saiga_trials::{certificate, mariadb::Kind, parity::Arm, scale::by_scale};

use channels::Pair;

mod channels;
mod crashes;
mod load;
mod replication;
mod sessions;
mod tls;

/// Whose servers these are.
const KIND: Kind = Kind::MariaDb;

/// How connections find a thread.
const HANDLING: [&[&str]; 2] = [
    &["--thread-handling=one-thread-per-connection"],
    &["--thread-handling=pool-of-threads", "--thread-pool-size=3"],
];

/// Every way to find a thread with every pair of arms. The quick run leaves out two of the
/// pool's: a server on the kernel, and evidence, which does not ask who serves.
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

/// What a server is told that is to encrypt, and then its clients; files go to `folder`.
fn encrypting(folder: &Path) -> (Vec<String>, String) {
    let [cert, key] = certificate::make(folder).map(|file| file.display().to_string());
    let own = vec![format!("--ssl-cert={cert}"), format!("--ssl-key={key}")];
    (own, format!("--ssl-ca={cert}"))
}
