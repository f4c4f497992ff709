//! MySQL's X protocol, which has its own port.

use saiga_trials::{mariadb::Server, scale::by_scale};

use crate::{KIND, cells, channels::through_channels, tools};

#[test]
fn the_x_protocol_answers_as_on_the_kernel() {
    let rounds = by_scale(500, 50_000).to_string();
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        let port = server.x_port.to_string();
        let said = through_channels(&server, pair, 1, || {
            tools::run("x_protocol", pair.1, &[&port, &rounds])
        });
        assert_eq!(said, format!("{rounds} equal answers\n"), "{pair:?}");
    }
}
