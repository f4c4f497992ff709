//! What a follower tells about changes.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _};

use netlink_sys::{Socket, SocketAddr};
use saiga_interface::{
    Cause, Changes, Follower, Neighbour, NeighbourState, Snapshot, SnapshotError, network,
};
use saiga_wire::ethernet::Mac;

use crate::namespace::{follow, in_namespace, ip, ip_batch, pair, settled_pair, until};
use crate::snapshots::{take, unicast};

/// The neighbour that marks a point in the sequence of changes.
const SENTINEL: &str = "192.0.2.99";

/// Waits for a cause, or a stronger one, and takes the snapshot that it asks for.
#[track_caller]
fn renewed(follower: &mut Follower, cause: Cause) -> Snapshot {
    until(follower, |changes| changes.cause >= Some(cause));
    follower.renew().unwrap()
}

/// Runs a test with a settled pair, and a follower of `v0`.
fn following(test: impl FnOnce(Follower) + Send + 'static) {
    in_namespace(|| test(settled_pair()));
}

/// Adds and removes a neighbour, which is told without a cause, and returns everything told up to
/// it.
fn changes_up_to_now(follower: &mut Follower) -> Changes {
    ip(&format!(
        "neighbour add {SENTINEL} lladdr 02:00:00:00:00:99 dev v0"
    ));
    ip(&format!("neighbour delete {SENTINEL} dev v0"));
    let is_last = |one: &Neighbour| {
        one.address.to_string() == SENTINEL && one.state == NeighbourState::Absent
    };
    until(follower, |changes| changes.neighbours.iter().any(is_last))
}

#[test]
fn nothing_is_told_when_nothing_has_changed() {
    following(|mut follower| {
        assert_eq!(follower.read().unwrap(), Changes::default());
        assert_eq!(changes_up_to_now(&mut follower).cause, None);
    });
}

#[test]
fn addresses_come_and_go() {
    following(|mut follower| {
        for (address, count) in [("10.0.0.1/24", 2), ("fd00::1/64", 3)] {
            ip(&format!("address add {address} dev v0"));
            let snapshot = renewed(&mut follower, Cause::Addresses);
            assert_eq!(snapshot.device.addresses.len(), count, "{address}");
        }
        // The kernel removes these routes with the address, and does not announce the second.
        ip("route add 10.9.0.0/16 dev v0 src 10.0.0.1");
        renewed(&mut follower, Cause::Routes);
        ip("address delete 10.0.0.1/24 dev v0");
        let snapshot = renewed(&mut follower, Cause::Addresses);
        let texts = snapshot
            .device
            .addresses
            .iter()
            .map(|one| one.address.to_string());
        assert!(!texts.into_iter().any(|one| one == "10.0.0.1"));
        assert_eq!(unicast(&snapshot.device), ["fd00::/64 metric 256"]);
    });
}

#[test]
fn routes_come_and_go() {
    following(|mut follower| {
        for route in [
            "10.9.0.0/16 dev v0",
            "fd09::/64 dev v0",
            "blackhole 203.0.113.0/24",
        ] {
            ip(&format!("route add {route}"));
            let with = renewed(&mut follower, Cause::Routes);
            ip(&format!("route delete {route}"));
            let without = renewed(&mut follower, Cause::Routes);
            let count = |one: &Snapshot| unicast(&one.device).len() + one.refused.len();
            assert_eq!((count(&with), count(&without)), (1, 0), "{route}");
        }
    });
}

#[test]
fn mtu_name_and_mac_address_change() {
    following(|mut follower| {
        ip("link set v0 mtu 1400");
        assert_eq!(renewed(&mut follower, Cause::Link).device.link.mtu, 1400);
        ip("link set v0 address 02:00:00:00:00:77");
        let mac = renewed(&mut follower, Cause::Link).device.link.mac;
        assert_eq!(mac, Some(Mac([2, 0, 0, 0, 0, 0x77])));
        ip("link set v0 name renamed");
        let snapshot = renewed(&mut follower, Cause::Link);
        assert_eq!(snapshot.device.link.name, OsStr::new("renamed"));
        assert_eq!(take("renamed").device.link, snapshot.device.link);
    });
}

#[test]
fn a_link_goes_down_and_up() {
    following(|mut follower| {
        ip("address add 10.0.0.1/24 dev v0");
        ip("route add 10.9.0.0/16 via 10.0.0.254");
        renewed(&mut follower, Cause::Addresses);
        ip("link set v0 down");
        let down = renewed(&mut follower, Cause::Link);
        assert!(!down.device.link.is_up);
        assert_eq!(unicast(&down.device), [] as [&str; 0]);
        assert_eq!(network(&down).network.interfaces, []);
        ip("link set v0 up");
        let up = renewed(&mut follower, Cause::Link);
        assert!(up.device.link.is_up);
        assert_eq!(unicast(&up.device), ["10.0.0.0/24 from 10.0.0.1 metric 0"]);
    });
}

/// The other end of the wire is down.
#[test]
fn a_carrier_is_lost_and_found() {
    following(|mut follower| {
        let mut carrier = |wanted| {
            let mut snapshot = renewed(&mut follower, Cause::Link);
            while snapshot.device.link.has_carrier != wanted {
                snapshot = renewed(&mut follower, Cause::Link);
            }
            snapshot.device.link.is_up
        };
        ip("link set v1 down");
        assert!(carrier(false));
        ip("link set v1 up");
        assert!(carrier(true));
    });
}

#[test]
fn an_interface_is_removed() {
    following(|mut follower| {
        ip("link delete v0");
        until(&mut follower, |changes| changes.cause == Some(Cause::Gone));
        let error = follower.renew().unwrap_err();
        assert!(matches!(error, SnapshotError::NoInterface { name } if name == "v0"));
        // Another interface of that name is not the same.
        pair();
        assert!(matches!(
            follower.renew(),
            Err(SnapshotError::NoInterface { .. })
        ));
        assert_eq!(follow("v0").1.device.link.name, OsStr::new("v0"));
    });
}

#[test]
fn other_interfaces_and_repetitions_are_not_told() {
    following(|mut follower| {
        ip("link set v1 mtu 1400");
        ip("address add 10.1.0.1/24 dev v1");
        ip("route add 10.9.0.0/16 dev v1");
        ip("neighbour add 10.1.0.2 lladdr 02:00:00:00:00:05 dev v1");
        ip("route add 10.8.0.0/16 dev v0 table 77");
        // A port that leaves its bridge is announced as removed, in the family of bridges.
        ip("link add name b0 type bridge");
        ip("link set v0 master b0");
        ip("link set v0 nomaster");
        let changes = changes_up_to_now(&mut follower);
        assert_eq!(changes.cause, None);
        let mut neighbours = changes.neighbours.iter();
        assert!(neighbours.all(|one| one.address.to_string() == SENTINEL));
        ip("address add fd00::1/64 dev v0 nodad valid_lft 1000 preferred_lft 900");
        renewed(&mut follower, Cause::Addresses);
        changes_up_to_now(&mut follower);
        // As when a router announces the prefix again.
        ip("address change fd00::1/64 dev v0 nodad valid_lft 2000 preferred_lft 1900");
        let cause = changes_up_to_now(&mut follower).cause;
        assert!(cause < Some(Cause::Addresses), "{cause:?}");
    });
}

#[test]
fn too_many_changes_are_told_as_one() {
    following(|mut follower| {
        let mut lines = String::new();
        for _ in 0..2000 {
            lines += "address add 10.0.0.1/24 dev v0\naddress delete 10.0.0.1/24 dev v0\n";
        }
        ip_batch(&lines);
        let changes = until(&mut follower, |changes| {
            changes.cause == Some(Cause::Overrun)
        });
        assert_eq!(changes.cause, Some(Cause::Overrun));
        // The socket goes on, and the snapshot has what was not told.
        let snapshot = follower.renew().unwrap();
        assert_eq!(snapshot.device.addresses.len(), 1);
        while follower.read().unwrap() != Changes::default() {}
        ip("address add 10.0.0.2/24 dev v0");
        let snapshot = renewed(&mut follower, Cause::Addresses);
        assert_eq!(snapshot.device.addresses.len(), 2);
    });
}

/// Snapshots are taken while the tables change. The last one is right.
#[test]
fn a_follower_catches_up_with_changes() {
    following(|mut follower| {
        let mut lines = String::new();
        for number in 0..3000 {
            let (high, low) = (number / 200, number % 200);
            lines += &format!("route add 10.{high}.{low}.0/24 dev v0\n");
            if number % 3 != 0 {
                lines += &format!("route delete 10.{high}.{low}.0/24 dev v0\n");
            }
        }
        let (mut last, mut is_stale) = (None, false);
        std::thread::scope(|scope| {
            // A thread inherits the namespace.
            let writer = scope.spawn(|| ip_batch(&lines));
            loop {
                let is_over = writer.is_finished();
                is_stale |= follower.read().unwrap().cause.is_some();
                if !is_stale && is_over {
                    break;
                }
                match follower.renew() {
                    Ok(snapshot) => (last, is_stale) = (Some(snapshot), false),
                    Err(SnapshotError::Unsteady { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        assert_eq!(unicast(&last.unwrap().device).len(), 1000);
    });
}

/// `RTM_DELLINK` of an interface, without `NLM_F_REQUEST`, so that the kernel does not act on it.
fn removal(index: u32) -> Vec<u8> {
    let mut bytes = [0; 32];
    bytes[0] = 32;
    bytes[4] = 17;
    bytes[20..24].copy_from_slice(&index.to_ne_bytes());
    bytes.to_vec()
}

#[test]
fn the_kernel_alone_is_believed() {
    following(|mut follower| {
        let forged = removal(take("v0").device.link.index);
        let mut stranger = Socket::new(netlink_sys::protocols::NETLINK_ROUTE).unwrap();
        stranger.bind_auto().unwrap();
        // A process with CAP_NET_ADMIN can send to the group, where other sockets receive it.
        let group = SocketAddr::new(0, 1);
        let mut witness = Socket::new(netlink_sys::protocols::NETLINK_ROUTE).unwrap();
        witness.bind(&group).unwrap();
        stranger.send_to(&forged, &group, 0).unwrap();
        let mut received = [0; 64];
        witness
            .recv(&mut &mut received[..], libc::MSG_DONTWAIT)
            .unwrap();
        assert_eq!(received[..32], forged);
        // The socket of the follower takes nothing that is sent to it alone.
        let to = SocketAddr::new(port_of(&follower), 0);
        let refused = stranger.send_to(&forged, &to, 0).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        assert_eq!(changes_up_to_now(&mut follower).cause, None);
        ip("link delete v0");
        until(&mut follower, |changes| changes.cause == Some(Cause::Gone));
    });
}

/// The port of the follower's socket, from the list of netlink sockets.
fn port_of(follower: &Follower) -> u32 {
    let descriptor = follower.as_fd().as_raw_fd();
    let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap();
    let link = link.to_str().unwrap();
    let inode = link.trim_start_matches("socket:[").trim_end_matches(']');
    let list = std::fs::read_to_string("/proc/thread-self/net/netlink").unwrap();
    let rows = list
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut rows = rows.filter(|row| row.last() == Some(&inode));
    rows.next().unwrap()[2].parse().unwrap()
}
