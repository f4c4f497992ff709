//! What messages mean, without a kernel. The tests beside this crate change real interfaces.

use super::*;
use crate::message::Request;

const INDEX: u32 = 3;

fn known() -> Known {
    let device = Link {
        index: INDEX,
        name: "eth0".into(),
        mac: None,
        mtu: 1500,
        is_up: true,
        has_carrier: true,
        vlan: None,
    };
    Known {
        device,
        vlans: Vec::new(),
        addresses: Vec::new(),
    }
}

fn judge(message_type: u16, fields: &[u8], attributes: &[(u16, &[u8])]) -> Changes {
    let add = |request: Request, (kind, value): &(u16, &[u8])| request.with(*kind, value);
    let request = attributes.iter().fold(Request::new(0, 0, fields), add);
    let mut changes = Changes::default();
    known().judge(message_type, &request.finish(0)[16..], &mut changes);
    changes
}

/// Routes for 10.1.0.0/16 that leave through another interface, and others.
#[test]
fn routes_count_if_they_can_leave_here() {
    let (here, elsewhere) = (INDEX.to_ne_bytes(), 4_u32.to_ne_bytes());
    let cases: [(&str, u8, u8, &[(u16, &[u8])], Option<Cause>); 7] = [
        ("here", 254, 1, &[(4, &here)], Some(Cause::Routes)),
        ("elsewhere", 254, 1, &[(4, &elsewhere)], None),
        ("several", 254, 1, &[(9, &[])], Some(Cause::Routes)),
        ("a blackhole", 254, 6, &[], Some(Cause::Routes)),
        (
            "the local table",
            255,
            2,
            &[(4, &here)],
            Some(Cause::Routes),
        ),
        ("another table", 7, 1, &[(4, &here)], None),
        ("a blackhole in another table", 7, 6, &[], None),
    ];
    for (name, table, kind, attributes, expected) in cases {
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
