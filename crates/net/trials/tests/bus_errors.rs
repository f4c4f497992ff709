//! SIGBUS under the library with vm.overcommit_memory = 2: on a channel's memory it ends the
//! channel's connection; elsewhere it has the same effect as without the library.
//!
//! The system's own setting does not change: the server sees the 2 in a mount namespace of its own,
//! and takes its channels' memory away by itself (`programs/tools/voided.c`).

use std::{io::Write as _, os::unix::process::ExitStatusExt as _, process::Command};

use saiga_channel::layout::{DATA_AT, Header};
use saiga_trials::{
    compile,
    parity::{self, Arm},
    peer::Peer,
};

/// A server that reads `mode` from /proc/sys/vm/overcommit_memory, and its port.
fn server(mode: &str, arguments: &[&str]) -> (Peer, String) {
    const SCRIPT: &str =
        r#"mount --bind "$1" /proc/sys/vm/overcommit_memory && shift && exec "$@""#;
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    writeln!(file, "{mode}").expect("a file");
    let mut command = Command::new("unshare");
    parity::set_environment(&mut command, Arm::Library);
    command.args(["--mount", "sh", "-c", SCRIPT, "sh"]);
    command.arg(file.path()).arg(compile::tool("voided"));
    let mut server = Peer::spawn({
        command.args(arguments);
        command
    });
    let port = server.expect("port");
    (server, port)
}

/// Source and target of a connection whose segment the server makes, or its client.
const MADE_HERE: [&str; 2] = ["127.0.0.1", "127.0.0.2"];
const MADE_THERE: [&str; 2] = ["127.0.0.2", "127.0.0.1"];

/// A client whose connection was upgraded to a channel.
fn client([source, target]: [&str; 2], port: &str) -> Peer {
    let args = [source, target, port];
    let mut client = Peer::start(compile::tool("talker"), &args, Arm::Library);
    client.expect("port");
    moves(&mut client);
    client
}

fn moves(client: &mut Peer) {
    client.tell("talk 300");
    assert_eq!(client.line().as_deref(), Some("moved"));
}

/// Offsets from which the segment's memory is missing: the first bytes of pages.
fn ends() -> [(&'static str, usize); 3] {
    let slots = std::mem::offset_of!(Header, slots);
    let slots = slots - slots % rustix::param::page_size();
    [("all", 0), ("slots", slots), ("rings", DATA_AT)]
}

#[test]
fn a_segment_without_memory_ends_its_connection_and_not_the_process() {
    for caught in [&[][..], &["caught"]] {
        let (mut server, port) = server("2", caught);
        for (what, from) in ends() {
            for way in [MADE_HERE, MADE_THERE] {
                let mut client = client(way, &port);
                server.tell(&format!("void {from}"));
                assert_eq!(server.line().as_deref(), Some("segments 1"), "{what}");
                client.tell("talk 1");
                assert_eq!(client.line(), None, "{what}: the connection is reset");
            }
        }
    }
}

/// The new segment comes while the first connection is still open.
#[test]
fn a_peer_whose_segment_has_no_memory_gets_another_segment() {
    for (what, from) in &ends()[..2] {
        let (mut server, port) = server("2", &[]);
        let mut client = client(MADE_HERE, &port);
        server.tell(&format!("void {from}"));
        assert_eq!(server.line().as_deref(), Some("segments 1"), "{what}");
        client.tell("again");
        client.expect("port");
        moves(&mut client);
    }
}

/// Shows that the first test can fail: the result without the handler.
#[test]
fn without_the_setting_there_is_no_handler() {
    for (what, from) in ends() {
        let (mut server, port) = server("0", &[]);
        let mut client = client(MADE_HERE, &port);
        server.tell(&format!("void {from}"));
        assert_eq!(server.line().as_deref(), Some("segments 1"), "{what}");
        client.tell("talk 1");
        assert_eq!(client.line(), None, "{what}: the server has ended");
        let (_, status) = server.finish();
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{what}");
    }
}

#[test]
fn sigbus_elsewhere_reaches_the_former_handler() {
    let (mut server, port) = server("2", &["caught"]);
    let _client = client(MADE_HERE, &port);
    for _ in 0..2 {
        server.tell("touch");
        assert_eq!(server.line().as_deref(), Some("fault 1 1 1"));
        server.tell("signal");
        assert_eq!(server.line().as_deref(), Some("signal 1 1 1"));
    }
}

#[test]
fn sigbus_elsewhere_kills_a_process_without_a_handler() {
    for cause in ["touch", "signal"] {
        let (mut server, port) = server("2", &[]);
        let _client = client(MADE_HERE, &port);
        server.tell(cause);
        let (_, status) = server.finish();
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{cause}");
    }
}
