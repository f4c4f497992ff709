//! memcached with several threads: one thread accepts connections, others serve them.

use std::process::Command;

use saiga_trials::{
    parity::Arm::{self, Kernel, Library},
    peer::Peer,
    port,
    scale::by_scale,
    witness::{EVIDENCE, Server, Site},
};

const CONNECTIONS: u64 = 12;

fn client(site: &Site, arm: Arm, port: u16, rounds: &str) -> Command {
    let mut client = site.python("memcached_client.py", arm);
    client.args([&port.to_string(), &CONNECTIONS.to_string(), rounds]);
    client
}

/// Checks a client's answers, and that each of its connections was upgraded if possible.
fn check(site: &Site, arm: Arm, port: u16, server: &Server) {
    let before = server.upgrades();
    let said = site.done(client(site, arm, port, "40"));
    assert_eq!(said, format!("checked {}\n", CONNECTIONS * 40 * 22));
    let wanted = if arm == Kernel { 0 } else { CONNECTIONS };
    assert_eq!(server.upgrades() - before, wanted, "client on {arm:?}");
}

#[test]
fn memcached_stores_its_values() {
    for evidence in EVIDENCE {
        let site = Site::new(evidence);
        let port = port::free();
        let server = site.memcached(port);
        for arm in [Kernel, Library] {
            check(&site, arm, port, &server);
        }
        server.end();
    }
}

#[test]
fn clients_of_a_killed_memcached_see_the_end_and_no_wrong_answer() {
    for evidence in EVIDENCE {
        let site = Site::new(evidence);
        let port = port::free();
        for _ in 0..by_scale(2, 40) {
            let server = site.memcached(port);
            let mut client = Peer::spawn(client(&site, Library, port, "killed"));
            client.expect("under way");
            assert_eq!(server.upgrades(), CONNECTIONS, "{evidence:?}");
            server.kill();
            let (said, status) = client.finish();
            assert!(status.success(), "{status}: {said}");
            assert_eq!(said, format!("ended {CONNECTIONS}\n"));
        }
        let server = site.memcached(port);
        check(&site, Library, port, &server);
        server.end();
    }
}
