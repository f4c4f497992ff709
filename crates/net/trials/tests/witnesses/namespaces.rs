//! Network namespaces: the same addresses and ports in two namespaces are two connections, and a
//! connection between two namespaces does not count as local.
//!
//! The namespaces belong to the tests' own processes and end with them. Without root they are made
//! in a user namespace.

use std::process::{Command, Stdio};

use saiga_trials::{
    parity::{self, Arm::Library},
    peer::Peer,
    sys,
    witness::{EVIDENCE, Site, source, upgrades_of},
};

/// The same port in every namespace, on purpose.
const PORT: &str = "17001";
const CLIENT_PORT: &str = "17002";

/// A namespace with a server in it that answers with `mark`; it listens on `host`.
fn server(site: &Site, host: &str, links: &str, mark: &str) -> Peer {
    let mut command = site.command("unshare", Library);
    if !sys::is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "sh", "-c"]);
    // Commands before `exec` need no acceleration, and their output precedes the server's.
    command.arg(format!(
        "ip link set lo up && {links} exec \"$0\" -B \"$1\" serve {host} {PORT} {mark}"
    ));
    command.arg(parity::python()).arg(source("talk.py"));
    Peer::spawn(command)
}

/// A client in the namespace of the process `pid`.
fn ask(site: &Site, pid: u32, host: &str, mark: &str, messages: &str) -> Command {
    let mut command = site.command("nsenter", Library);
    command.args(["--target", &pid.to_string(), "--net"]);
    if !sys::is_root() {
        command.args(["--user", "--preserve-credentials"]);
    }
    command
        .arg(parity::python())
        .arg("-B")
        .arg(source("talk.py"));
    command.args(["ask", host, PORT, CLIENT_PORT, mark, messages]);
    command
}

#[test]
fn equal_addresses_in_two_namespaces_are_never_joined() {
    for evidence in EVIDENCE {
        let site = Site::new(evidence);
        let mut servers = ["one", "two"].map(|mark| server(&site, "127.0.0.1", "", mark));
        for server in &mut servers {
            server.expect("listening");
        }
        // Both clients at once: two connections with the same addresses and ports in the
        // hand-shake.
        let clients = servers.each_ref().map(|server| {
            let mut command = ask(&site, server.pid(), "127.0.0.1", "client", "20000");
            command.stderr(Stdio::inherit());
            Peer::spawn(command)
        });
        for (client, mark) in clients.into_iter().zip(["one", "two"]) {
            let (said, status) = client.finish();
            assert!(status.success(), "{status}: {said}");
            assert_eq!(said, format!("checked 20000 of {mark}\n"));
        }
        for server in &servers {
            assert_eq!(upgrades_of(server.pid()), 1, "{evidence:?}");
        }
    }
}

/// Two namespaces joined by a virtual cable: both processes are on this machine and may even see
/// each other's PIDs, but the connection crosses namespaces, and stays on TCP.
#[test]
fn a_connection_between_namespaces_stays_on_tcp() {
    for evidence in EVIDENCE {
        let site = Site::new(evidence);
        let mut back = server(&site, "127.0.0.1", "", "far");
        back.expect("listening");
        let links = format!(
            "ip link add near type veth peer name far netns {} && ip link set near up && \
             ip address add 192.0.2.1/24 dev near && nsenter --target {} --net sh -c \
             'ip link set far up && ip address add 192.0.2.2/24 dev far' &&",
            back.pid(),
            back.pid()
        );
        let mut front = server(&site, "192.0.2.1", &links, "near");
        front.expect("listening");
        let said = site.done(ask(&site, back.pid(), "192.0.2.1", "client", "2000"));
        assert_eq!(said, "checked 2000 of near\n");
        assert_eq!(upgrades_of(front.pid()), 0, "{evidence:?}");
    }
}
