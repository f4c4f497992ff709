//! A gateway that is killed: the example `hold`, which holds routes and an anchor.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use saiga_anchor::remove_leftovers;
use saiga_trials::snapshot::{ip, network, sysctls};

use crate::world::{OTHER, REMOTE, SERVER, address, in_world, talk, up};

/// A process that ends with the test.
struct Ended(Child);

impl Ended {
    /// kill -9, and waits until the process has ended.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// The example, built if it is missing. After a change, `cargo test -p saiga-anchor` builds it
/// again; `--test anchor` alone does not.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().parent().unwrap();
    let built = folder.join("examples/hold");
    if !built.exists() {
        let done = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "saiga-anchor",
                "--example",
                "hold",
            ])
            .status();
        assert!(done.unwrap().success());
    }
    built
}

/// Starts the example in the namespace of the calling thread.
fn hold(served: &[SocketAddr], client: Option<SocketAddr>) -> Ended {
    let mut command = Command::new(example());
    command.args(served.iter().map(SocketAddr::to_string));
    if let Some(client) = client {
        command.args(["--anchor", &client.to_string()]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    Ended(child)
}

#[test]
fn a_killed_gateway_leaves_what_the_next_one_removes() {
    in_world(|remote| {
        let (before, sysctls_before) = (network(), sysctls());
        let served = SERVER.map(|server| address(server, 6000));
        let listeners = served.map(|served| TcpListener::bind(served).unwrap());
        // A connection from before, which is kept by a throw route.
        let early = remote.connect(OTHER[0], served[0]);
        let early_end = listeners[0].accept().unwrap().0;
        for round in ["removed by hand", "removed by the next start"] {
            let mut gateway = hold(&served, None);
            gateway.kill();
            assert!(ip("-4 rule").contains("lookup 79"), "{round}");
            assert!(ip("-4 route show table 79").contains("throw"), "{round}");
            // The kernel serves every client at once.
            for (client, (served, listener)) in REMOTE.iter().zip(served.iter().zip(&listeners)) {
                let stream = remote.connect(client, *served);
                talk(&stream, &listener.accept().unwrap().0);
            }
            talk(&early, &early_end);
            if round == "removed by hand" {
                let gone = remove_leftovers(79).unwrap();
                let rule = "rule pref 100 iif lo from 10.77.0.1 ipproto tcp sport 6000 lookup 79";
                assert!(gone.iter().any(|line| line == rule), "{gone:?}");
                assert!(
                    gone.iter()
                        .any(|line| line == "route throw 10.77.0.3/32 table 79")
                );
            } else {
                up(&served).down().unwrap();
            }
            assert_eq!(network(), before, "{round}");
        }
        assert_eq!(sysctls(), sysctls_before);
    });
}

#[test]
fn what_a_gateway_with_other_numbers_left_is_removed() {
    in_world(|_| {
        let before = network();
        // As a gateway with the table 80 and the preference 90 leaves it.
        ip("-4 rule add pref 90 iif lo from 10.77.0.1 ipproto tcp sport 6001 lookup 80 proto 79");
        ip("-4 route add throw 192.0.2.7 table 80 proto 79");
        up(&[address(SERVER[0], 6000)]).down().unwrap();
        assert_eq!(network(), before);
    });
}

#[test]
fn a_killed_gateway_is_the_end_of_its_anchors() {
    in_world(|_| {
        let served = address(SERVER[0], 6000);
        let client = address(REMOTE[0], 40_001);
        let listener = TcpListener::bind(served).unwrap();
        let accepted = || -> TcpStream { listener.accept().unwrap().0 };
        let mut gateway = hold(&[served], Some(client));
        let mut end = accepted();
        gateway.kill();
        assert_eq!(end.read(&mut [0]).unwrap(), 0);
        drop(end);
        // With bytes that the gateway has not read, it is a reset.
        let mut gateway = hold(&[served], Some(client));
        let mut end = accepted();
        end.write_all(b"unread").unwrap();
        gateway.kill();
        let error = end.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

/// The server's end of an anchor whose gateway was killed is not a connection from before.
#[test]
fn a_restarted_gateway_serves_the_hosts_of_its_anchors() {
    in_world(|_| {
        let served = address(SERVER[0], 6000);
        let client = address(REMOTE[0], 40_001);
        let listener = TcpListener::bind(served).unwrap();
        let mut gateway = hold(&[served], Some(client));
        let _end = listener.accept().unwrap().0;
        gateway.kill();
        assert_eq!(up(&[served]).left().count(), 0);
    });
}
