//! What messages mean, without a kernel. The tests beside this crate change real interfaces.

use super::*;
use crate::message::{Attributes, body};

const INDEX: u32 = 3;
const VLAN_INDEX: u32 = 5;

fn known() -> Known {
    let device = Link {
        index: INDEX,
        name: "eth0".into(),
        mac: None,
        mtu: 1500,
        is_up: true,
        has_carrier: true,
        kind: String::new(),
        xdp_program: None,
        vlan: None,
    };
    let vlan = Link {
        index: VLAN_INDEX,
        ..device.clone()
    };
    Known {
        device,
        vlans: vec![vlan],
        addresses: Vec::new(),
    }
}

fn judge(message_type: u16, fields: &[u8], attributes: Attributes<'_>) -> Changes {
    let mut changes = Changes::default();
    known().judge(message_type, &body(fields, attributes), &mut changes);
    changes
}

/// `RTM_NEWLINK` of an Ethernet interface that is up, with `IFLA_LINKINFO` of VLAN 7 if it has a
/// parent.
fn new_link(index: u32, mtu: u32, parent: Option<u32>) -> Changes {
    let mut fields = [0; 16];
    fields[2..4].copy_from_slice(&1_u16.to_ne_bytes());
    fields[4..8].copy_from_slice(&index.to_ne_bytes());
    fields[8..12].copy_from_slice(&0x1_0001_u32.to_ne_bytes());
    let data = body(&[], &[(1, &7_u16.to_ne_bytes()), (5, &[0x81, 0])]);
    let info = body(&[], &[(1, b"vlan\0"), (2, &data)]);
    let (mtu, parent) = (mtu.to_ne_bytes(), parent.map(u32::to_ne_bytes));
    let mut attributes: Vec<(u16, &[u8])> = vec![(3, b"eth0"), (4, &mtu)];
    if let Some(parent) = &parent {
        attributes.extend([(5, &parent[..]), (18, &info[..])]);
    }
    judge(libc::RTM_NEWLINK, &fields, &attributes)
}

#[test]
fn interfaces_count_if_they_have_changed() {
    for (name, index, mtu, parent, expected) in [
        ("as before", INDEX, 1500, None, None),
        ("another MTU", INDEX, 1400, None, Some(Cause::Link)),
        ("a VLAN as before", VLAN_INDEX, 1500, None, None),
        ("a VLAN's MTU", VLAN_INDEX, 1400, None, Some(Cause::Link)),
        ("another interface", 9, 1500, None, None),
        ("a VLAN elsewhere", 9, 1500, Some(8), None),
        ("a new VLAN", 9, 1500, Some(INDEX), Some(Cause::Link)),
        (
            "a VLAN on a VLAN",
            9,
            1500,
            Some(VLAN_INDEX),
            Some(Cause::Link),
        ),
    ] {
        assert_eq!(new_link(index, mtu, parent).cause, expected, "{name}");
    }
    for (index, expected) in [
        (INDEX, Some(Cause::Gone)),
        (VLAN_INDEX, Some(Cause::Link)),
        (9, None),
    ] {
        let mut fields = [0; 16];
        fields[4..8].copy_from_slice(&index.to_ne_bytes());
        assert_eq!(judge(libc::RTM_DELLINK, &fields, &[]).cause, expected);
        // A port of a bridge.
        fields[0] = 7;
        assert_eq!(judge(libc::RTM_DELLINK, &fields, &[]).cause, None);
    }
}

/// Routes for 10.1.0.0/16 that leave through another interface, and others.
#[test]
fn routes_count_if_they_can_leave_here() {
    let (here, elsewhere) = (INDEX.to_ne_bytes(), 4_u32.to_ne_bytes());
    let cases: [(&str, [u8; 2], Attributes<'_>, Option<Cause>); 7] = [
        ("here", [254, 1], &[(4, &here)], Some(Cause::Routes)),
        ("elsewhere", [254, 1], &[(4, &elsewhere)], None),
        ("several", [254, 1], &[(9, &[])], Some(Cause::Routes)),
        ("a blackhole", [254, 6], &[], Some(Cause::Routes)),
        (
            "the local table",
            [255, 2],
            &[(4, &here)],
            Some(Cause::Routes),
        ),
        ("another table", [7, 1], &[(4, &here)], None),
        ("a blackhole in another table", [7, 6], &[], None),
    ];
    for (name, [table, kind], attributes, expected) in cases {
        let fields = [2, 16, 0, 0, table, 0, 0, kind, 0, 0, 0, 0];
        for message_type in [libc::RTM_NEWROUTE, libc::RTM_DELROUTE] {
            let found = judge(message_type, &fields, attributes);
            assert_eq!(found.cause, expected, "{name}");
        }
    }
}

#[test]
fn the_strongest_cause_is_kept() {
    let mut changes = Changes::default();
    for cause in [Cause::Addresses, Cause::Gone, Cause::Routes] {
        changes.add(cause);
    }
    assert_eq!(changes.cause, Some(Cause::Gone));
}

/// The kernel is not expected to send such messages.
#[test]
fn random_messages_do_no_harm() {
    let known = known();
    let mut random = fastrand::Rng::with_seed(19);
    let mut changes = Changes::default();
    for _ in 0..100_000 {
        let mut bytes = vec![0; random.usize(..80)];
        random.fill(&mut bytes);
        // Some begin as a message about the interface, with an attribute of 8 bytes.
        let family = [0, 2, 10][random.usize(..3)];
        let [i0, i1, i2, i3] = INDEX.to_ne_bytes();
        let likely = [
            (0, family),
            (4, i0),
            (5, i1),
            (6, i2),
            (7, i3),
            (12, 8),
            (13, 0),
            (15, 0),
        ];
        for (at, value) in likely.into_iter().skip(random.usize(..8)) {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        known.judge(random.u16(16..31), &bytes, &mut changes);
        for message in messages(&bytes) {
            known.judge(message.message_type(), message.payload(), &mut changes);
        }
    }
    assert!(changes.cause.is_some(), "no message was taken");
}
