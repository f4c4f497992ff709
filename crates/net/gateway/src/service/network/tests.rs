//! Plans of an interface with VLANs: which addresses are served, and with which tags.

use saiga_interface::{Address, AddressFlags, NeighbourState, NextHop, RouteKind, Scope};

use super::*;
use crate::settings::Settings;

const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// An interface with one address, the route to its network, and the neighbour 9 there.
fn interface(index: u32, tags: Tags, network: &str) -> saiga_interface::Interface {
    let own: ipnet::IpNet = format!("{network}.1/24").parse().unwrap();
    saiga_interface::Interface {
        link: saiga_interface::Link {
            index,
            name: format!("eth{index}").into(),
            mac: Some(MAC),
            mtu: 1500,
            is_up: false,
            has_carrier: true,
            kind: String::new(),
            xdp_program: None,
            vlan: None,
        },
        tags,
        addresses: vec![Address {
            address: own.addr(),
            network: own.trunc(),
            scope: Scope::Global,
            flags: AddressFlags::default(),
        }],
        routes: vec![saiga_interface::Route {
            destination: own.trunc(),
            kind: RouteKind::Unicast,
            next_hop: NextHop::Link,
            preferred_source: None,
            metric: 0,
            is_selective: false,
        }],
        neighbours: vec![Neighbour {
            interface: index,
            address: address(&format!("{network}.9")),
            mac: Some(Mac([2, 0, 0, 0, 0, 9])),
            state: NeighbourState::Reachable,
        }],
    }
}

/// An interface with the VLANs 5 and 6, and VLAN 5 with the tag of a provider.
fn snapshot() -> Snapshot {
    let mut provider = Tag::vlan(5);
    provider.kind = saiga_wire::ethernet::EtherType::PROVIDER_VLAN;
    Snapshot {
        device: interface(2, Tags::None, "10.0.0"),
        vlans: vec![
            interface(3, Tags::One(provider), "10.3.0"),
            interface(4, Tags::One(Tag::vlan(6)), "10.6.0"),
            interface(5, Tags::One(Tag::vlan(5)), "10.5.0"),
        ],
        refused: Vec::new(),
    }
}

/// The plan of a device with these keys.
fn planned(keys: &str, snapshot: Snapshot) -> Plan {
    let text = format!("[[device]]\ninterface = \"eth2\"\n{keys}\n[[serve]]\nport = 7\n");
    let settings = Settings::parse(&text).unwrap();
    plan(&settings.devices[0], &settings.serve, snapshot)
}

#[test]
fn the_addresses_and_neighbours_of_one_vlan_are_served() {
    for (keys, index, tags, network) in [
        ("", 2, Tags::None, "10.0.0"),
        ("vlan = 5", 5, Tags::One(Tag::vlan(5)), "10.5.0"),
        ("vlan = 6\nmtu = 1400", 4, Tags::One(Tag::vlan(6)), "10.6.0"),
    ] {
        let plan = planned(keys, snapshot());
        let [interface] = plan.network.interfaces.as_slice() else {
            panic!("{keys}: {plan:?}");
        };
        assert_eq!(interface.link, Link::Ethernet { mac: MAC, tags });
        assert_eq!(
            interface.mtu,
            if keys.contains("1400") { 1400 } else { 1500 }
        );
        let served = SocketAddr::new(address(&format!("{network}.1")), 7);
        assert_eq!(plan.served, [served]);
        assert_eq!(plan.index(0), Some(index));
        let neighbour = address(&format!("{network}.9"));
        assert_eq!(plan.neighbours, [(0, neighbour, Mac([2, 0, 0, 0, 0, 9]))]);
    }
}

/// Own addresses, with the neighbours of the VLAN.
#[test]
fn own_addresses_are_those_of_the_vlan() {
    let keys = "vlan = 5\naddresses = \"10.9.0.1/24\"\nroutes = \"default via 10.9.0.254\"";
    let plan = planned(keys, snapshot());
    let interface = &plan.network.interfaces[0];
    let tags = Tags::One(Tag::vlan(5));
    assert_eq!(interface.link, Link::Ethernet { mac: MAC, tags });
    assert_eq!(plan.served, ["10.9.0.1:7".parse().unwrap()]);
    assert_eq!(plan.network.routes.len(), 1);
    assert_eq!((plan.index(0), plan.neighbours.len()), (Some(5), 1));
    plan.network.check().unwrap();
}

/// Its interface was removed: nothing is served, and nothing of the interface below.
#[test]
fn a_vlan_without_an_interface_is_not_served() {
    for keys in ["vlan = 7", "vlan = 7\naddresses = \"10.9.0.1/24\""] {
        let plan = planned(keys, snapshot());
        assert_eq!(plan.network, Network::default());
        assert_eq!((plan.served.len(), plan.neighbours.len()), (0, 0));
        plan.network.check().unwrap();
    }
}

#[test]
fn the_frames_of_a_tap_device_have_the_tag() {
    let text = "[[device]]\nkind = \"tap\"\ninterface = \"tap0\"\nvlan = 5\n\
                addresses = \"10.9.0.1/24\"\n[[serve]]\nport = 7\n";
    let settings = Settings::parse(text).unwrap();
    let info = Info {
        name: "tap0".to_owned(),
        queue: 0,
        mac: Some(MAC),
        mtu: 1500,
        offload: saiga_netdev::Offload::NONE,
    };
    let network = of_settings(&settings.devices[0], &info);
    let tags = Tags::One(Tag::vlan(5));
    assert_eq!(
        network.interfaces[0].link,
        Link::Ethernet { mac: MAC, tags }
    );
}
