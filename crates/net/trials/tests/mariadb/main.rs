//! A real mariadbd under the library, with MariaDB's own clients and sysbench on both
//! arms: threads per connection and pools, kills from every side, TLS, replication.

use saiga_trials::{
    mariadb::{Server, Session, Under},
    scale::by_scale,
};

mod crashes;
mod load;
mod replication;
mod sessions;
mod tls;

/// Who has the library: server, then client.
type Pair = (Under, Under);

/// How connections find a thread.
const HANDLING: [&[&str]; 2] = [
    &["--thread-handling=one-thread-per-connection"],
    &["--thread-handling=pool-of-threads", "--thread-pool-size=3"],
];

/// Every way to find a thread with every pair of arms. The quick run leaves out two of the
/// pool's: a server on the kernel, and evidence, which does not ask who serves.
fn cells() -> Vec<(&'static [&'static str], Pair)> {
    let each = [
        (HANDLING[0], (Under::AtOnce, Under::AtOnce)),
        (HANDLING[0], (Under::Earned, Under::Earned)),
        (HANDLING[0], (Under::AtOnce, Under::Kernel)),
        (HANDLING[0], (Under::Kernel, Under::AtOnce)),
        (HANDLING[1], (Under::AtOnce, Under::AtOnce)),
        (HANDLING[1], (Under::AtOnce, Under::Kernel)),
        (HANDLING[1], (Under::Earned, Under::Earned)),
        (HANDLING[1], (Under::Kernel, Under::AtOnce)),
    ];
    each[..by_scale(6, 8)].to_vec()
}

/// Runs `work` of `client` against `server`, and sees that it moved `connections` of them to
/// channels when both ends have the library, and none otherwise.
fn through_channels<T>(
    server: &Server,
    (serving, client): Pair,
    connections: u64,
    work: impl FnOnce() -> T,
) -> T {
    let before = server.upgrades();
    let result = work();
    let upgraded = server.upgrades() - before;
    if serving.has_library() && client.has_library() {
        assert!(
            upgraded >= connections,
            "{upgraded} of {connections} connections were upgraded\n{}\n{}",
            server.shown(),
            server.log()
        );
    } else {
        assert_eq!(upgraded, 0, "{serving:?} with {client:?}");
    }
    result
}

/// Enough statements for a connection to earn its channel in every setting.
fn warm(session: &mut Session) {
    for i in 0..80 {
        assert_eq!(session.ask(&format!("SELECT {i}")), i.to_string());
    }
}

/// Asks `question` until the answer is `wanted`: work in other threads of the server.
fn await_answer(session: &mut Session, question: &str, wanted: &str) {
    let mut answer = String::new();
    for _ in 0..100_000 {
        answer = session.ask(question);
        if answer == wanted {
            return;
        }
    }
    panic!("{question}: '{answer}' does not become '{wanted}'");
}
