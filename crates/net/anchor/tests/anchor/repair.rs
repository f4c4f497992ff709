//! What other programs remove or change is noticed, and put back.

use rustix::event::{PollFd, PollFlags, poll};
use saiga_anchor::{RoutesError, Watch};
use saiga_trials::snapshot::ip;

use crate::world::{SERVER, address, in_world, up};

/// Waits until something has changed that concerns the gateway.
fn wait(watch: &mut Watch) {
    while !watch.read().unwrap().is_concerned {
        poll(&mut [PollFd::new(watch, PollFlags::IN)], None).unwrap();
    }
}

/// The rules and the gateway's table; rules of one preference have no order.
fn present() -> Vec<String> {
    let shown = [
        "-4 rule",
        "-6 rule",
        "-4 route show table 79",
        "-6 route show table 79",
    ];
    let mut lines: Vec<String> = Vec::new();
    for shown in shown {
        lines.extend(ip(shown).lines().map(|line| format!("{shown}: {line}")));
    }
    lines.sort();
    lines
}

/// Reads what was announced before now.
fn drain(watch: &mut Watch) -> bool {
    watch.read().unwrap().is_concerned
}

#[test]
fn what_others_take_is_put_back() {
    in_world(|_| {
        let served = SERVER.map(|one| address(one, 6000));
        let mut routes = up(&served);
        routes.leave("192.0.2.7".parse().unwrap()).unwrap();
        routes
            .bring(&[
                ("198.51.100.0/24".parse().unwrap(), served[0].ip()),
                ("2001:db8:5::/64".parse().unwrap(), served[1].ip()),
            ])
            .unwrap();
        let before = present();
        let mut watch = routes.watch().unwrap();
        for (taken, first) in [
            ("-4 rule del pref 100 iif lo sport 6000", "rule pref 100"),
            ("-4 rule del fwmark 79", "rule pref 100 iif lo fwmark 0x4f"),
            ("-6 rule del pref 100", "rule pref 100 iif lo from fd77::1"),
            ("-4 route flush table 79", "route throw 192.0.2.7/32"),
            ("-6 route flush table 79", "route local ::/0 table 79"),
            ("route del throw 192.0.2.7 table 79", "route throw"),
            (
                "route change local 0.0.0.0/0 dev lo table 79",
                "route local 0.0.0.0/0",
            ),
            ("link set saigal down", "route local ::/0 table 79"),
            (
                "address del fd77::1/64 dev vs",
                "route local 2001:db8:5::/64",
            ),
        ] {
            drain(&mut watch);
            ip(taken);
            wait(&mut watch);
            if taken.starts_with("address") {
                // The route has lost its source, and cannot get it back yet.
                let refused = routes.repair(&mut Vec::new()).unwrap_err().to_string();
                assert!(refused.contains("route local 2001:db8:5::/64"), "{refused}");
                drain(&mut watch);
                ip("address add fd77::1/64 dev vs nodad");
                wait(&mut watch);
            }
            let mut missing = Vec::new();
            // An address can be used, and is announced again, a moment after it was added.
            while routes.repair(&mut missing).is_err() {
                wait(&mut watch);
            }
            assert!(
                missing.iter().any(|one| one.starts_with(first)),
                "{taken}: {missing:?}"
            );
            assert_eq!(present(), before, "{taken}");
            let mut missing = Vec::new();
            routes.repair(&mut missing).unwrap();
            assert_eq!(missing, Vec::<String>::new(), "all is there");
        }
    });
}

#[test]
fn changes_of_others_do_not_count() {
    in_world(|_| {
        let routes = up(&[address(SERVER[0], 6000)]);
        let mut watch = routes.watch().unwrap();
        ip("link add other type veth peer name rehto");
        ip("route add 198.51.100.0/24 dev vs table 80");
        ip("route del 198.51.100.0/24 dev vs table 80");
        assert!(!drain(&mut watch));
    });
}

#[test]
fn a_device_that_was_removed_is_named() {
    in_world(|_| {
        let mut routes = up(&[address(SERVER[0], 6000)]);
        let mut watch = routes.watch().unwrap();
        ip("link delete saigal");
        wait(&mut watch);
        let gone = routes.repair(&mut Vec::new()).unwrap_err();
        assert!(
            matches!(&gone, RoutesError::Gone { device } if device == "saigal"),
            "{gone}"
        );
    });
}
