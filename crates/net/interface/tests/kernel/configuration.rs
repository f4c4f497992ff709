//! What an own interface is given, as ip(8) shows it.

use std::process::Command;

use saiga_interface::{Configuration, NetlinkError, Snapshot};
use saiga_wire::ethernet::Mac;

use crate::namespace::{in_namespace, ip};

/// What ip(8) shows.
fn shown(line: &str) -> String {
    let output = Command::new("ip").args(line.split(' ')).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_interface_gets_its_addresses_and_routes() {
    in_namespace(|| {
        ip("tuntap add tap0 mode tap");
        let index = Snapshot::take("tap0".as_ref()).unwrap().device.link.index;
        let configuration = Configuration {
            index,
            mac: Mac([2, 0, 0, 0, 0, 7]),
            mtu: 1400,
            addresses: ["10.9.0.1/24", "fd09::1/64"]
                .map(|own| own.parse().unwrap())
                .into(),
            routes: [("0.0.0.0/0", "10.9.0.9"), ("fd10::/16", "fd09::9")]
                .map(|(network, router)| (network.parse().unwrap(), router.parse().unwrap()))
                .into(),
        };
        configuration.apply().unwrap();
        let link = shown("link show tap0");
        assert!(
            link.contains("mtu 1400") && link.contains("02:00:00:00:00:07"),
            "{link}"
        );
        assert!(link.contains(",UP"), "{link}");
        let addresses = shown("address show tap0");
        assert!(addresses.contains("inet 10.9.0.1/24 "), "{addresses}");
        assert!(
            addresses.contains("inet6 fd09::1/64 scope global nodad"),
            "{addresses}"
        );
        let route = shown("route show");
        assert!(
            route.contains("default via 10.9.0.9 dev tap0 proto static metric 20000"),
            "{route}"
        );
        let route = shown("-6 route show");
        assert!(
            route.contains("fd10::/16 via fd09::9 dev tap0 proto static metric 20000"),
            "{route}"
        );
        let again = configuration.apply().unwrap_err();
        assert!(matches!(again, NetlinkError::Refused { .. }), "{again}");
        assert!(
            again.to_string().contains("give a TAP device its address"),
            "{again}"
        );
    });
}
