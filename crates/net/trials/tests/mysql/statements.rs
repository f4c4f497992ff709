//! Prepared statements, with parameters and results of any size.

use saiga_trials::{mariadb::Server, parity::Arm, scale::by_scale};

use crate::{KIND, cells, channels::through_channels, tools};

/// Each value is sent as a parameter, and received as a result, byte by byte.
#[test]
fn parameters_and_results_of_every_size_arrive_whole() {
    let rounds = by_scale(3, 10);
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        server.must(
            Arm::Kernel,
            "CREATE TABLE trial.kept (id INT PRIMARY KEY, body LONGBLOB NOT NULL)",
        );
        let (port, rounds) = (server.port.to_string(), rounds.to_string());
        through_channels(&server, pair, 1, || {
            tools::run("statements", pair.1, &[&port, &rounds])
        });
        let kept = server.must(
            Arm::Kernel,
            "SELECT COUNT(*), MAX(LENGTH(body)) FROM trial.kept",
        );
        assert_eq!(kept, "12\t20000000");
    }
}
