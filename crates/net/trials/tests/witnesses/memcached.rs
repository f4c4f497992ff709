//! memcached with several threads: connections are accepted in one and served in others.

use saiga_trials::{
    parity::Arm::{Kernel, Library},
    port, sys,
    witness::{EVIDENCE, Site},
};

const CONNECTIONS: u64 = 12;

#[test]
fn memcached_stores_what_it_is_given() {
    for evidence in EVIDENCE {
        let site = Site::new(evidence);
        let port = port::free();
        let mut command = site.command("memcached", Library);
        command.args(["-l", "127.0.0.1", "-t", "4", "-U", "0", "-m", "256"]);
        command.args(["-p", &port.to_string()]);
        if sys::is_root() {
            command.args(["-u", "root"]); // It refuses to run as root unless told so.
        }
        let server = site.serve(command).listening(port);
        for (arm, upgrades) in [(Kernel, 0), (Library, CONNECTIONS)] {
            let mut client = site.python("memcached_client.py", arm);
            client.args([port.to_string(), CONNECTIONS.to_string(), "40".to_owned()]);
            let said = site.done(client);
            assert_eq!(said, format!("checked {}\n", CONNECTIONS * 40 * 22));
            assert_eq!(
                server.upgrades(),
                upgrades,
                "{evidence:?}, client on {arm:?}"
            );
        }
        server.end();
    }
}
