//! Local users without rights beside a gateway: none can pose as a client.
//!
//! The rule and the local route concern packets from the served address and port. The tests show
//! what a user can send with them, and that the source is never the address of another host.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;

use rustix::process::Uid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_keep_capabilities, set_thread_uid,
};
use saiga_anchor::Anchors;
use saiga_trials::snapshot::network;
use socket2::{Domain, Protocol, Socket, Type};

use crate::world::{Gateway, REMOTE, SERVER, address, connect_from, established, in_world, up};

const NOBODY: u32 = 65_534;
/// One that every user can execute.
const PYTHON: &str = "/usr/bin/python3";

/// Runs `act` as another user, in the namespace of the calling thread.
fn as_user<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let user = thread::spawn(|| {
        set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
        act()
    });
    user.join().unwrap()
}

fn stream(family: &SocketAddr) -> Socket {
    Socket::new(Domain::for_address(*family), Type::STREAM, None).unwrap()
}

#[test]
fn a_user_cannot_have_a_client_s_address() {
    in_world(|_| {
        for (client, server) in REMOTE.into_iter().zip(SERVER) {
            let gateway = Gateway::new(address(server, 6000));
            let client = address(client, 40_001);
            let (transparent, bound, raw) = as_user(move || {
                let socket = stream(&client);
                let transparent = if client.is_ipv4() {
                    socket.set_ip_transparent_v4(true)
                } else {
                    socket.set_ip_transparent_v6(true)
                };
                let domain = Domain::for_address(client);
                let raw = Socket::new(domain, Type::RAW, Some(Protocol::TCP)).map(drop);
                (transparent, socket.bind(&client.into()), raw)
            });
            assert_eq!(transparent.unwrap_err().kind(), ErrorKind::PermissionDenied);
            assert_eq!(bound.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
            assert_eq!(raw.unwrap_err().kind(), ErrorKind::PermissionDenied);
            drop(gateway);
        }
    });
}

/// A user is root in a user namespace of its own; that gives no right to this host's network.
#[test]
fn a_user_namespace_gives_no_right() {
    in_world(|_| {
        let _routes = up(&[address(SERVER[0], 6000)]);
        let program = "import socket\ns = socket.socket()\ntry:\n  s.setsockopt(0, 19, 1)\n\
                       except PermissionError:\n  print('refused')\n";
        let user = format!("{NOBODY}");
        let arguments = [
            "--reuid",
            &user,
            "--clear-groups",
            "unshare",
            "--map-root-user",
        ];
        let done = Command::new("setpriv")
            .args(arguments)
            .args([PYTHON, "-I", "-c", program])
            .current_dir("/")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert_eq!(
            String::from_utf8_lossy(&done.stdout),
            "refused\n",
            "{errors}"
        );
    });
}

/// Packets that are written to the TUN device could have every source. Root is refused here, and so
/// is every other user.
#[test]
fn the_device_has_no_room_for_a_second_process() {
    in_world(|_| {
        let _routes = up(&[address(SERVER[0], 6000)]);
        let program = "import fcntl, struct, errno\n\
                       for flags in 0x1001, 0x1101, 0x1002:\n\
                       \x20 file = open('/dev/net/tun', 'r+b', buffering=0)\n\
                       \x20 request = struct.pack('16sH22x', b'saigal', flags)\n\
                       \x20 try:\n\
                       \x20   fcntl.ioctl(file, 0x400454ca, request)\n\
                       \x20 except OSError as error:\n\
                       \x20   print(errno.errorcode[error.errno])\n";
        let done = Command::new(PYTHON)
            .args(["-I", "-c", program])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        // As the first queue, as one more queue, and as a TAP device.
        let expected = "EBUSY\nEINVAL\nEINVAL\n";
        assert_eq!(String::from_utf8_lossy(&done.stdout), expected, "{errors}");
    });
}

/// The server's own socket keeps the address for which there is a rule.
#[test]
fn a_user_cannot_have_the_server_s_port() {
    in_world(|_| {
        let gateway = Gateway::new(address(SERVER[0], 6000));
        let served = gateway.served;
        let bound = as_user(move || {
            let socket = stream(&served);
            socket.set_reuse_address(true).unwrap();
            socket.set_reuse_port(true).unwrap();
            socket.bind(&served.into())
        });
        assert_eq!(bound.unwrap_err().kind(), ErrorKind::AddrInUse);
    });
}

/// What the rule permits while no server listens: the SYN of a user comes to this host, not to its
/// destination. An ordinary listener cannot answer it, and a transparent one sees the user's own
/// address.
#[test]
fn a_user_with_the_server_s_port_keeps_its_own_source() {
    in_world(|_| {
        let served = address(SERVER[0], 6000);
        let _routes = up(&[served]);
        let elsewhere = address("198.51.100.7", 7000);
        let open = move || {
            as_user(move || {
                let socket = stream(&served);
                socket.set_reuse_address(true).unwrap();
                socket.bind(&served.into()).unwrap();
                socket.set_nonblocking(true).unwrap();
                let _in_progress = socket.connect(&elsewhere.into());
                socket
            })
        };
        let listener = stream(&elsewhere);
        let listen = |listener: Socket| {
            listener.bind(&address("0.0.0.0", 7000).into()).unwrap();
            listener.listen(8).unwrap();
            listener.set_nonblocking(true).unwrap();
            TcpListener::from(listener)
        };
        let listener = listen(listener);
        drop(open());
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(listener);
        let transparent = stream(&elsewhere);
        transparent.set_ip_transparent_v4(true).unwrap();
        let transparent = listen(transparent);
        let _user = open();
        let (accepted, peer) = transparent.accept().unwrap();
        assert_eq!(peer, served);
        assert_eq!(accepted.local_addr().unwrap(), elsewhere);
    });
}

/// Other ports and other protocols of the served address are not affected.
#[test]
fn the_rule_concerns_one_port_of_tcp() {
    in_world(|_| {
        let served = address(SERVER[0], 6000);
        let _routes = up(&[served]);
        let elsewhere = address("198.51.100.7", 7000);
        let stream = connect_from(address(SERVER[0], 6001), elsewhere).map(drop);
        assert_eq!(stream.unwrap_err().kind(), ErrorKind::NetworkUnreachable);
        let datagram = UdpSocket::bind(served).unwrap().send_to(b"x", elsewhere);
        assert_eq!(datagram.unwrap_err().kind(), ErrorKind::NetworkUnreachable);
    });
}

/// A user that listens on a client's port gets neither the client's anchor nor the server's bytes.
#[test]
fn a_user_s_listener_gets_no_anchor() {
    in_world(|_| {
        let mut gateway = Gateway::new(address(SERVER[0], 6000));
        let client = address(REMOTE[0], 40_001);
        let users = as_user(move || TcpListener::bind(("0.0.0.0", client.port())).unwrap());
        users.set_nonblocking(true).unwrap();
        let (_anchor, accepted) = gateway.open(client);
        assert_eq!(accepted.peer_addr().unwrap(), client);
        assert_eq!(users.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

/// A user cannot open a connection to an anchor: the gateway's end does not listen.
#[test]
fn a_user_cannot_connect_to_a_client_s_address() {
    in_world(|_| {
        let mut gateway = Gateway::new(address(SERVER[0], 6000));
        let served = gateway.served;
        let client = address("203.0.113.9", 40_001);
        let opening = gateway.anchors.connect(client, served).unwrap();
        let _anchor = established(opening);
        let connected = as_user(move || TcpStream::connect(client).map(drop));
        assert_eq!(connected.unwrap_err().kind(), ErrorKind::NetworkUnreachable);
    });
}

/// An unprivileged gateway is told which right it lacks.
#[test]
fn anchors_of_a_process_without_rights_are_refused() {
    in_world(|_| {
        let gateway = Gateway::new(address(SERVER[0], 6000));
        let served = gateway.served;
        let refused = as_user(move || {
            let mut anchors = Anchors::new().unwrap();
            anchors.connect(address(REMOTE[0], 40_001), served)
        });
        let refused = refused.map(drop).unwrap_err().to_string();
        assert!(refused.starts_with("IP_TRANSPARENT"), "{refused}");
        assert!(refused.ends_with("needs CAP_NET_ADMIN"), "{refused}");
    });
}

/// A gateway may give up all other rights after its start. Clients with a privileged port need a
/// second one.
#[test]
fn two_rights_suffice() {
    in_world(|_| {
        let before = network();
        let mut gateway = Gateway::new(address(SERVER[0], 6000));
        let bystander = TcpListener::bind("0.0.0.0:8090").unwrap();
        let worker = thread::spawn(move || {
            set_keep_capabilities(true).unwrap();
            set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
            keep(CapabilitySet::NET_ADMIN | CapabilitySet::NET_BIND_SERVICE);
            gateway.anchors = Anchors::new().unwrap();
            for port in [40_001, 1_234, 8_090, 1_023] {
                let _ends = gateway.open(address(REMOTE[0], port));
            }
            keep(CapabilitySet::NET_ADMIN);
            for port in [40_002, 1_235] {
                let _ends = gateway.open(address(REMOTE[0], port));
            }
            let served = gateway.served;
            let refused = gateway.anchors.connect(address(REMOTE[0], 1_022), served);
            let refused = refused.map(drop).unwrap_err().to_string();
            assert!(refused.ends_with("needs CAP_NET_BIND_SERVICE"), "{refused}");
            gateway.close();
        });
        worker.join().unwrap();
        drop(bystander);
        assert_eq!(network(), before);
    });
}

fn keep(rights: CapabilitySet) {
    let sets = CapabilitySets {
        effective: rights,
        permitted: rights,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).unwrap();
}
