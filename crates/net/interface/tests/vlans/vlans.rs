//! VLAN interfaces that ip(8) has made.

use saiga_interface::{Cause, Follower, Snapshot, network};
use saiga_wire::ethernet::{EtherType, Tag, Tags};

use crate::namespace::{follow, in_namespace, ip, pair, settled_pair, until};

/// Two kinds of tags, two tags, three tags, and a VLAN on another interface.
pub(crate) fn tags_are_those_of_the_frames() {
    in_namespace(|| {
        pair();
        ip("link add link v0 name v0.7 type vlan id 7");
        ip("link add link v0 name outer type vlan id 8 protocol 802.1ad");
        ip("link add link outer name inner type vlan id 9");
        ip("link add link inner name deepest type vlan id 10");
        ip("link add link v1 name foreign type vlan id 7");
        ip("link set v0.7 up");
        ip("address add 10.7.0.1/24 dev v0.7");
        let snapshot = follow("v0").1;
        let outer = Tag {
            kind: EtherType::PROVIDER_VLAN,
            control: 8,
        };
        let found = snapshot.vlans.iter().map(|one| (one.tags, one.link.is_up));
        let found: Vec<_> = found.collect();
        let inner = Tag::vlan(9);
        let expected = [
            (Tags::One(Tag::vlan(7)), true),
            (Tags::One(outer), false),
            (Tags::Two { outer, inner }, false),
        ];
        assert_eq!(found, expected);
        let translation = network(&snapshot);
        let index = snapshot.vlans[0].link.index;
        assert_eq!(translation.number(index), Some(1));
        let addresses = &translation.network.interfaces[1].addresses;
        assert_eq!(addresses, &["10.7.0.1/24".parse().unwrap()]);
        // As an interface of its own, the VLAN has frames without tags.
        let alone = follow("v0.7").1;
        assert_eq!(alone.device.tags, Tags::None);
        assert_eq!(alone.device.link.index, index);
    });
}

pub(crate) fn changes_are_told() {
    in_namespace(|| {
        let mut follower = settled_pair();
        ip("link add link v1 name foreign type vlan id 7");
        ip("link add link v0 name v0.7 type vlan id 7");
        assert_eq!(renewed(&mut follower, Cause::Link).vlans.len(), 1);
        ip("link set v0.7 up");
        assert!(renewed(&mut follower, Cause::Link).vlans[0].link.is_up);
        ip("address add 10.7.0.1/24 dev v0.7");
        let vlan = &renewed(&mut follower, Cause::Addresses).vlans[0];
        let mut addresses = vlan.addresses.iter();
        assert!(addresses.any(|one| one.address.to_string() == "10.7.0.1"));
        ip("neighbour add 10.7.0.2 lladdr 02:00:00:00:00:07 dev v0.7");
        let changes = until(&mut follower, |changes| !changes.neighbours.is_empty());
        assert_eq!(changes.neighbours[0].interface, vlan.link.index);
        ip("link add link v0.7 name inner type vlan id 8");
        assert_eq!(renewed(&mut follower, Cause::Link).vlans.len(), 2);
        ip("link delete v0.7");
        assert_eq!(renewed(&mut follower, Cause::Link).vlans, []);
    });
}

/// Waits for a cause, or a stronger one, and takes the snapshot that it asks for.
#[track_caller]
fn renewed(follower: &mut Follower, cause: Cause) -> Snapshot {
    until(follower, |changes| changes.cause >= Some(cause));
    follower.renew().unwrap()
}
