//! Containers that share only a network namespace (a Kubernetes pod, `docker run --network host`):
//! connections between them are local, and are upgraded if each side has a uid for the other's user
//! in its user namespace.

use std::{fs, os::unix::process::CommandExt as _, path::PathBuf, process::Command};

use saiga_status::{Reason, reader::Page};
use saiga_trials::{
    compile,
    parity::Arm::Library,
    peer::Peer,
    sys,
    witness::{EVIDENCE, Evidence, Site, upgrades_of},
};

/// The namespaces that a process does not share, as options of unshare(1); empty: none.
type Apart = &'static [&'static str];

/// A container of an ordinary user, and those that Docker and Kubernetes make with root.
const CONTAINERS: [Apart; 6] = [
    &["--user", "--map-root-user"],
    &[
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
    ],
    &["--mount"],
    &["--pid", "--fork"],
    &["--pid", "--fork", "--mount-proc"],
    &[
        "--pid",
        "--fork",
        "--mount-proc",
        "--ipc",
        "--uts",
        "--cgroup",
    ],
];

/// The containers that the tests may make.
fn containers() -> &'static [Apart] {
    if sys::is_root() {
        &CONTAINERS
    } else {
        &CONTAINERS[..2]
    }
}

/// An ordinary user of Debian's base system, www-data.
const SOMEBODY: u32 = 33;
/// The user that stands for every unknown user.
const NOBODY: u32 = 65_534;

/// Programs that every user can execute, and the messages before their upgrade.
struct Pod {
    site: Site,
    talk: &'static str,
}

impl Pod {
    fn new(evidence: Evidence) -> Self {
        let site = Site::new(evidence);
        for tool in ["crowd", "talker"] {
            let copied = fs::copy(compile::tool(tool), site.path(tool));
            copied.expect("room for a program");
        }
        let talk = match evidence {
            Evidence::None => "talk 300",
            Evidence::Default => "talk 3000",
        };
        Self { site, talk }
    }

    /// `tool` with the unshared namespaces `apart`, as `user` (ours if `None`).
    fn spawn(&self, apart: Apart, user: Option<u32>, tool: &str, words: &[&str]) -> Peer {
        let path: PathBuf = self.site.path(tool);
        let mut command: Command = if apart.is_empty() {
            self.site.command(path, Library)
        } else {
            let mut command = self.site.command("unshare", Library);
            command.args(apart).arg(path);
            command
        };
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        command.args(words);
        Peer::spawn(command)
    }

    /// An echo server and its port.
    fn server(&self, apart: Apart, user: Option<u32>) -> (Peer, String) {
        let mut server = self.spawn(apart, user, "crowd", &["listen"]);
        let port = server.expect("port");
        (server, port)
    }

    /// A client after its messages, and the way of its bytes: "moved" or "kernel".
    fn client(&self, apart: Apart, user: Option<u32>, port: &str) -> (Peer, String) {
        let words = ["127.0.0.1", "127.0.0.1", port];
        let mut client = self.spawn(apart, user, "talker", &words);
        client.expect("port");
        client.tell(self.talk);
        let way = client.line().expect("a result");
        (client, way)
    }
}

/// The process that unshare(1) has forked.
fn inner(outer: &Peer) -> u32 {
    let pid = outer.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("a running process");
    children.trim().parse().expect("one child")
}

/// Whether the process `pid` has kept a connection on TCP because of its peer's user.
fn has_refused(pid: u32) -> bool {
    let page = Page::open(pid).expect("a process under the library");
    let shown = page.snapshot(0).expect("the page can be read");
    let mut reasons = shown.failures.iter().map(|(reason, _)| *reason);
    reasons.any(|reason| reason == Reason::DifferentUser)
}

#[test]
fn containers_of_one_pod_are_joined() {
    for evidence in EVIDENCE {
        let pod = Pod::new(evidence);
        for &apart in containers() {
            for (left, right) in [(apart, &[][..]), (&[], apart), (apart, apart)] {
                let (_server, port) = pod.server(left, None);
                let (_client, way) = pod.client(right, None, &port);
                assert_eq!(way, "moved", "{evidence:?}: {left:?} and {right:?}");
            }
        }
    }
}

/// Two PID namespaces, neither inside the other: each process has PID 0 for the other, like every
/// other unknown process.
#[test]
fn processes_without_numbers_for_each_other_keep_their_connections_apart() {
    const APART: Apart = CONTAINERS[1];
    const COUNT: u64 = 60;
    let pod = Pod::new(Evidence::None);
    let (server, port) = pod.server(APART, None);
    let count = COUNT.to_string();
    let mut clients =
        [(); 2].map(|()| pod.spawn(APART, None, "crowd", &["connect", &port, &count]));
    for client in &mut clients {
        assert_eq!(client.expect("open"), count);
    }
    for client in &mut clients {
        client.tell(&format!("active {count} 200"));
    }
    for client in &mut clients {
        client.expect("done");
    }
    assert_eq!(upgrades_of(inner(&server)), 2 * COUNT);
}

/// A user without a uid in a user namespace is shown as nobody there, like nobody itself.
#[test]
fn a_user_without_a_number_stays_on_tcp() {
    // Without a uid map, every user is nobody inside, including the process's own.
    const UNMAPPED: Apart = &["--user"];
    for evidence in EVIDENCE {
        let pod = Pod::new(evidence);
        let (server, port) = pod.server(UNMAPPED, None);
        let (_client, way) = pod.client(&[], None, &port);
        assert_eq!(way, "kernel", "{evidence:?}");
        assert!(has_refused(server.pid()), "{evidence:?}: the server");

        let (_server, port) = pod.server(&[], None);
        let (client, way) = pod.client(UNMAPPED, None, &port);
        assert_eq!(way, "kernel", "{evidence:?}");
        assert!(has_refused(client.pid()), "{evidence:?}: the client");
    }
}

/// Inside, the container's user is root; outside it has its own uid, and is not root. Needs root,
/// because a normal user cannot use a second uid.
#[test]
fn a_container_of_another_user_is_joined_only_with_that_user_s_processes() {
    const ROOTLESS: Apart = CONTAINERS[0];
    for evidence in EVIDENCE {
        let pod = Pod::new(evidence);
        let (server, port) = pod.server(ROOTLESS, Some(SOMEBODY));
        let (_client, way) = pod.client(&[], None, &port);
        assert_eq!(way, "kernel", "{evidence:?}: root outside");
        assert!(has_refused(server.pid()), "{evidence:?}");
        for apart in [&[], ROOTLESS] {
            let (_client, way) = pod.client(apart, Some(SOMEBODY), &port);
            assert_eq!(way, "moved", "{evidence:?}: the same user, {apart:?}");
        }

        let (_server, port) = pod.server(&[], Some(NOBODY));
        let (client, way) = pod.client(&[], None, &port);
        assert_eq!(way, "kernel", "{evidence:?}: nobody");
        assert!(has_refused(client.pid()), "{evidence:?}");
    }
}
