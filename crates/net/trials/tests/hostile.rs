//! Hostile peers: one of the same user that corrupts shared memory or the hand-shake, and one of
//! another user that listens on an offer's name. The victim keeps serving others and keeps no
//! resources; the other user's process receives nothing.

use std::{panic::resume_unwind, path::PathBuf, process::Command, thread, time::Duration};

use saiga_channel::tuple::{Endpoint, Tuple};
use saiga_status::Reason;
use saiga_trials::{
    bounded::{self, Ending},
    census::Census,
    compile,
    parity::{self, Arm},
    peer::Peer,
    scale::{Rng, by_scale, seed},
};

/// An echo server under the library.
fn echo_server() -> (Peer, String) {
    server_that(&["listen"])
}

fn server_that(words: &[&str]) -> (Peer, String) {
    let mut server = Peer::start(compile::tool("crowd"), words, Arm::Library);
    let port = server.expect("port");
    (server, port)
}

/// Four checked connections that are served during every attack.
struct Bystander(Peer);

impl Bystander {
    fn start(port: &str) -> Self {
        let mut peer = Peer::start(
            compile::tool("crowd"),
            &["connect", port, "4"],
            Arm::Library,
        );
        assert_eq!(peer.expect("open"), "4");
        Self(peer)
    }

    /// Checks that each round trip takes less than a second: longer is a hang.
    fn is_served(&mut self) {
        self.0.tell("active 4 60");
        let slowest_us: u64 = self.0.expect("done").parse().expect("a number");
        assert!(slowest_us < 1_000_000, "a trip took {slowest_us} µs");
    }

    /// Checks the service during the whole of `act`.
    fn is_served_beside<T: Send>(&mut self, act: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let acting = scope.spawn(act);
            while !acting.is_finished() {
                self.is_served();
            }
            acting.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

fn attack(mode: &str, port: &str, seed: u64) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hostile"));
    parity::set_environment(&mut command, Arm::Kernel);
    command.args([mode, port, &seed.to_string()]);
    let outcome = bounded::run(command, Duration::from_secs(30));
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{mode}, seed {seed}: {outcome:?}"
    );
    outcome.stdout.trim().to_owned()
}

fn survives(mode: &str, step: &str, own_seed: u64) {
    outlives(echo_server(), (mode, step), own_seed, LASTING);
}

/// What allocators may add to the server's memory, in KiB.
const SLACK_KIB: u64 = 512;

/// Length of an attack, and what the server may hold beyond its resources after a few rounds.
#[derive(Clone, Copy)]
struct Siege {
    rounds: (u32, u32),
    links: usize,
}

/// Limits of most attacks: one segment may remain of the last attack.
const LASTING: Siege = Siege {
    rounds: (15, 100),
    links: 1,
};

fn outlives(
    (server, port): (Peer, String),
    (mode, step): (&str, &str),
    own_seed: u64,
    siege: Siege,
) {
    let rounds = by_scale(siege.rounds.0, siege.rounds.1);
    let mut rng = Rng::new(seed(own_seed));
    let mut bystander = Bystander::start(&port);
    bystander.is_served();
    let mut before = None;
    for round in 0..rounds {
        let seed = rng.below(1 << 40);
        let reached = bystander.is_served_beside(|| attack(mode, &port, seed));
        // Otherwise the test would pass with a library that never upgrades.
        assert_eq!(
            reached,
            format!("reached {step}"),
            "{mode}, round {round}, seed {seed}"
        );
        bystander.is_served();
        if round == 4 {
            before = Some(server.census());
        }
    }
    let before = before.expect("there were rounds");
    let what = format!("attacks by {mode}");
    before.assert_no_growth(&server.census(), siege.links, SLACK_KIB, &what);
}

#[test]
fn a_silent_visitor_changes_nothing() {
    survives("silent", "the visit", 21);
}

#[test]
fn nonsense_in_the_handshake_changes_nothing() {
    survives("nonsense", "the visit", 22);
}

#[test]
fn wrong_proposals_are_refused() {
    survives("proposals", "the visit", 23);
}

#[test]
fn wrong_descriptors_are_refused() {
    survives("descriptors", "the visit", 24);
}

#[test]
fn corruption_of_a_segment_that_the_peer_made_is_survived() {
    survives("made", "the segment", 25);
}

#[test]
fn a_segment_that_the_peer_made_may_change_at_any_moment() {
    survives("storm-made", "the segment", 33);
}

#[test]
fn a_segment_that_the_victim_made_may_change_at_any_moment() {
    survives("storm-given", "the segment", 34);
}

#[test]
fn a_peer_with_a_segment_for_each_connection_is_declined_in_time() {
    let siege = Siege {
        rounds: (6, 30),
        links: 4, // Unused segments are kept for the next connection.
    };
    outlives(echo_server(), ("segments", "a refusal"), 29, siege);
}

#[test]
fn a_peer_that_wants_all_its_wait_slots_woken_goes_back_to_tcp() {
    survives("bells", "the version", 30);
}

/// A peer cannot make the victim's thread wait for a lock: the victim's own decisions do not depend
/// on memory that the peer can write.
#[test]
fn thread_ids_in_the_victim_s_block_delay_no_call() {
    survives("locked", "the end", 28);
}

#[test]
fn corruption_of_a_segment_that_the_victim_made_is_survived() {
    survives("given", "the segment", 26);
}

/// No event wakes the sender: it runs one barrier and then checks from time to time.
#[test]
fn a_sender_goes_on_after_its_peer_has_left_a_receive_without_notice() {
    let mut server = Peer::start(compile::tool("crowd"), &["listen", "recv"], Arm::Library);
    let port = server.expect("port");
    for seed in 0..by_scale(3, 20) {
        assert_eq!(attack("dawdling", &port, seed), "reached the answer");
    }
}

/// No peer can cause a barrier that takes milliseconds. A peer that has not joined the fast
/// barriers must acknowledge the switch.
#[test]
fn a_peer_outside_the_barriers_gets_none() {
    let mut server = Peer::start(compile::tool("crowd"), &["listen", "recv"], Arm::Library);
    let port = server.expect("port");
    assert_eq!(attack("outside", &port, 1), "reached no answer");
}

/// The thread that ends the connection waits for the peer for a limited time, then resets it.
#[test]
fn a_peer_that_recalls_and_takes_nothing_is_reset() {
    for end in ["close", "shutdown"] {
        let server = server_that(&["listen", "epoll", end]);
        outlives(server, ("stalled", "the end"), 31, LASTING);
    }
}

#[test]
fn a_process_ends_beside_a_peer_that_recalls_and_takes_nothing() {
    for seed in 0..by_scale(3, 20) {
        let (server, port) = server_that(&["listen", "epoll", "exit"]);
        assert_eq!(attack("stalled", &port, seed), "reached the server's end");
        assert!(server.finish().1.success());
    }
}

/// The bytes that one call sends by TCP for a recall are limited.
#[test]
fn a_peer_that_recalls_without_end_is_reset() {
    survives("endless", "the end", 32);
}

/// With a peer of another version, either of which may offer, both stay on TCP and show the reason.
#[test]
fn another_version_is_declined_and_shown() {
    let (server, port) = echo_server();
    let mut bystander = Bystander::start(&port);
    for (mode, seen) in [("newer", 1), ("newer-host", 2)] {
        assert_eq!(attack(mode, &port, 0), "reached the version", "{mode}");
        let shown = Census::shown(server.pid());
        let reason = |failure: &&(Reason, u64)| failure.0 == Reason::VersionMismatch;
        let count = shown.failures.iter().find(reason).map_or(0, |f| f.1);
        assert!(count >= seen, "{mode}: {:?}", shown.failures);
        bystander.is_served();
    }
}

fn endpoint(address: [u8; 4], port: &str) -> Endpoint {
    let mut mapped = [0; 16];
    mapped[10..12].copy_from_slice(&[0xff, 0xff]);
    mapped[12..].copy_from_slice(&address);
    Endpoint {
        address: mapped,
        port: port.parse().expect("a port"),
    }
}

/// The abstract name of a connection's offer, without the leading zero byte.
fn offer_name(tuple: &Tuple) -> String {
    tuple
        .key()
        .iter()
        .fold("saiga-offer-".to_owned(), |name, byte| {
            format!("{name}{byte:02x}")
        })
}

fn other_user(way: &str, name: &str) -> Peer {
    let tool: PathBuf = compile::tool("squatter");
    let mut command = Command::new(tool);
    parity::set_environment(&mut command, Arm::Kernel);
    command.args([way, name]);
    Peer::spawn(command)
}

/// A connection from `source` to the server, and the name of its offer.
fn talker(port: &str, source: [u8; 4], target: [u8; 4], arm: Arm) -> (Peer, String) {
    let text = |address: [u8; 4]| std::net::Ipv4Addr::from(address).to_string();
    let (source_text, target_text) = (text(source), text(target));
    let args = [source_text.as_str(), &target_text, port];
    let mut talker = Peer::start(compile::tool("talker"), &args, arm);
    let own = talker.expect("port");
    let tuple = Tuple {
        local: endpoint(source, &own),
        remote: endpoint(target, port),
    };
    (talker, offer_name(&tuple))
}

#[test]
fn a_squatter_on_the_name_gets_nothing() {
    let (low, high) = ([127, 0, 0, 1], [127, 0, 0, 2]);
    // The end that offers is once the server, once the client; the squatter takes the name first.
    for (source, target) in [(low, high), (high, low)] {
        let (_server, port) = echo_server();
        let (mut client, name) = talker(&port, source, target, Arm::Library);
        let mut squatter = other_user("sit", &name);
        squatter.expect("sitting");
        client.tell("talk 300");
        assert_eq!(
            client.line().as_deref(),
            Some("kernel"),
            "the connection stays on TCP, and works"
        );
        squatter.hang_up();
        let gotten = squatter.expect("visitors");
        assert!(
            gotten.ends_with("bytes 0 descriptors 0"),
            "visitors {gotten}"
        );
        // Another connection between the same processes is not affected.
        let (mut next, _) = talker(&port, source, target, Arm::Library);
        next.tell("talk 300");
        assert_eq!(next.line().as_deref(), Some("moved"));
    }
}

#[test]
fn a_visitor_of_another_user_gets_nothing() {
    let (low, high) = ([127, 0, 0, 1], [127, 0, 0, 2]);
    let (_server, port) = echo_server();
    // The client runs without the library but has the mark, so the server's offer waits for it.
    let (mut client, name) = talker(&port, high, low, Arm::Kernel);
    client.tell("mark");
    client.tell("talk 30");
    client.expect("kernel");
    let offer = listener(&name);
    assert!(offer.is_some(), "{name} has no listener");
    let mut visitor = other_user("visit", &name);
    visitor.expect("visiting");
    client.tell("talk 300");
    client.expect("kernel");
    visitor.hang_up();
    assert_eq!(visitor.expect("visitors"), "1 bytes 0 descriptors 0");
    // A visitor of another user does not end the offer.
    assert_eq!(listener(&name), offer);
}

/// The inode of the socket that listens on an abstract name (`man 5 proc_net_unix`).
fn listener(name: &str) -> Option<String> {
    const LISTENS: &str = "00010000"; // __SO_ACCEPTCON
    let all = std::fs::read_to_string("/proc/net/unix").expect("a readable file");
    all.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ours = words.last() == Some(&format!("@{name}").as_str());
        (ours && words[3] == LISTENS).then(|| words[6].to_owned())
    })
}
