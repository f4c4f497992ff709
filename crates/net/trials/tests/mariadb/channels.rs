//! The arms of server and client, and the proof that connections were upgraded or not.

use saiga_trials::{
    mariadb::{Server, Session},
    parity::Arm,
};

/// The arms: server, then client.
pub(crate) type Pair = (Arm, Arm);

/// Runs `work` of `client` against `server`, and checks that it upgraded `connections` if both ends
/// have the library, and none otherwise.
pub(crate) fn through_channels<T>(
    server: &Server,
    (serving, client): Pair,
    connections: u64,
    work: impl FnOnce() -> T,
) -> T {
    let before = server.upgrades();
    let result = work();
    let upgraded = server.upgrades() - before;
    if serving != Arm::Kernel && client != Arm::Kernel {
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

/// Runs enough statements for a connection's upgrade with every evidence.
pub(crate) fn warm(session: &mut Session) {
    for i in 0..80 {
        assert_eq!(session.ask(&format!("SELECT {i}")), i.to_string());
    }
}

/// Repeats `question` until the answer is `wanted`, for work in other threads of the server.
pub(crate) fn await_answer(session: &mut Session, question: &str, wanted: &str) {
    let mut answer = String::new();
    for _ in 0..100_000 {
        answer = session.ask(question);
        if answer == wanted {
            return;
        }
    }
    panic!("{question}: '{answer}' does not become '{wanted}'");
}
