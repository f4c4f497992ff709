//! The self-test finds what prevents anchors, and undoes its own rule.

use std::net::IpAddr;

use saiga_anchor::{Anchors, Fault, firewall, self_test};
use saiga_trials::snapshot::{ip, network};

use crate::world::{SERVER, address, command, in_world, up};

/// The fault that the self-test finds, with routes for both families.
fn fault() -> Option<Fault> {
    let mut routes = up(&SERVER.map(|server| address(server, 6000)));
    let mut anchors = Anchors::new().unwrap();
    let before = network();
    let found = self_test(&mut routes, &mut anchors);
    assert_eq!(network(), before);
    found.err()
}

/// Adds a chain of nft(8) for received packets with one rule.
fn filter(rule: &str) {
    command("nft", "add table inet t");
    command(
        "nft",
        "add chain inet t c { type filter hook input priority 0 ; }",
    );
    command("nft", &format!("add rule inet t c {rule}"));
}

#[test]
fn without_obstacles_there_is_no_fault() {
    in_world(|_| {
        assert!(fault().is_none());
        filter("iif lo accept");
        assert!(fault().is_none());
    });
}

#[test]
fn a_filter_against_spoofed_sources_on_lo_is_found() {
    in_world(|_| {
        filter("iif lo ip saddr != 127.0.0.0/8 ip saddr != 10.77.0.1 drop");
        let found = fault().unwrap();
        let address: IpAddr = SERVER[0].parse().unwrap();
        assert!(
            matches!(found, Fault::Filtered { address: at } if at == address),
            "{found}"
        );
    });
}

#[test]
fn a_filter_that_rejects_is_found() {
    in_world(|_| {
        filter("iif lo ip6 saddr 2001:db8::/32 reject with tcp reset");
        let found = fault().unwrap();
        let address: IpAddr = SERVER[1].parse().unwrap();
        assert!(
            matches!(found, Fault::Rejected { address: at } if at == address),
            "{found}"
        );
    });
}

#[test]
fn a_rule_before_the_gateway_s_is_found() {
    in_world(|_| {
        ip("route add 192.0.2.0/24 via 10.77.0.2");
        ip("rule add pref 50 from 10.77.0.1 lookup main");
        let found = fault().unwrap();
        let address: IpAddr = SERVER[0].parse().unwrap();
        assert!(
            matches!(found, Fault::Unanswered { address: at } if at == address),
            "{found}"
        );
    });
}

/// The kernel routes a packet again without its ports when its mark has changed.
#[test]
fn a_filter_that_changes_marks_is_found() {
    in_world(|_| {
        command("nft", "add table ip m");
        command(
            "nft",
            "add chain ip m c { type route hook output priority 0 ; }",
        );
        command("nft", "add rule ip m c ip daddr 192.0.2.1 meta mark set 5");
        let found = fault().unwrap();
        let address: IpAddr = SERVER[0].parse().unwrap();
        assert!(
            matches!(found, Fault::Unanswered { address: at } if at == address),
            "{found}"
        );
    });
}

#[test]
fn translation_on_lo_is_found() {
    in_world(|_| {
        command("nft", "add table ip n");
        command(
            "nft",
            "add chain ip n c { type nat hook postrouting priority 100 ; }",
        );
        command(
            "nft",
            "add rule ip n c ip saddr 192.0.2.1 snat to 10.77.0.9",
        );
        let found = fault().unwrap();
        let seen = "10.77.0.9".parse::<IpAddr>().unwrap();
        assert!(
            matches!(found, Fault::Translated { seen: by, .. } if by.ip() == seen),
            "{found}"
        );
    });
}

#[test]
fn an_address_that_the_host_does_not_have_is_found() {
    in_world(|_| {
        let mut routes = up(&[address("10.77.0.99", 6000)]);
        let found = self_test(&mut routes, &mut Anchors::new().unwrap()).unwrap_err();
        let absent = "10.77.0.99".parse::<IpAddr>().unwrap();
        assert!(
            matches!(found, Fault::NotHere { address } if address == absent),
            "{found}"
        );
    });
}

/// The rules that nft(8) prints on this machine.
#[test]
fn a_rule_that_lo_bypasses_is_found() {
    in_world(|_| {
        filter("iif lo accept");
        command(
            "nft",
            "add rule inet t c tcp dport { 22, 6000-6010 } ip saddr 10.0.0.0/8 accept",
        );
        let report = firewall::look(&[6000, 7000]);
        let [found] = &report.bypassed[..] else {
            panic!("{report:?}");
        };
        assert_eq!(found.port, 6000);
        assert!(found.rule.starts_with("rule inet t c handle "), "{found}");
        assert_ne!(found.rule, found.accepted_by);
        assert!(
            report
                .not_read
                .iter()
                .all(|program| program.program != "nft")
        );
    });
}
