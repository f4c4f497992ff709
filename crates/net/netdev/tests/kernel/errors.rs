//! Why devices cannot be opened: each reason has its name, and says what to do.

use std::num::NonZeroU16;

use saiga_netdev::Link;
use saiga_netdev::tap::{OpenError, Origin, Settings, Tap};

use crate::namespace::{has_interface, in_namespaces, ip};
use crate::tap::{MADE, open};

const ATTACHED: Settings<'static> = Settings {
    origin: Origin::Attach,
    ..MADE
};
const TWO: NonZeroU16 = NonZeroU16::new(2).unwrap();

fn refused(settings: &Settings<'_>) -> OpenError {
    Tap::open(settings).unwrap_err()
}

#[test]
fn impossible_names_are_refused() {
    for name in ["sixteen_letters_", "tap%d", "a/b", ""] {
        let error = refused(&Settings { name, ..MADE });
        assert!(matches!(error, OpenError::Name { .. }), "{name}: {error}");
        assert!(error.to_string().contains("use 1 to 15 bytes"));
    }
}

#[test]
fn a_device_that_is_missing_or_exists_is_named() {
    in_namespaces(|| {
        let missing = refused(&ATTACHED);
        assert_eq!(
            missing.to_string(),
            "network interface saiga-test does not exist in this network namespace: \
             create it (ip tuntap add saiga-test mode tap)"
        );
        assert!(!has_interface("saiga-test"));
        let _tap = open(&MADE);
        let exists = refused(&MADE);
        assert!(matches!(exists, OpenError::Exists { .. }), "{exists}");
        assert!(exists.to_string().contains("ip link delete saiga-test"));
    });
}

#[test]
fn an_interface_of_another_kind_is_refused() {
    in_namespaces(|| {
        ip("link add veth-a type veth peer name veth-b");
        ip("tuntap add saiga-tun mode tun");
        for (name, kind) in [("veth-a", "veth"), ("saiga-tun", "tun"), ("lo", "unknown")] {
            let error = refused(&Settings { name, ..ATTACHED });
            assert!(matches!(error, OpenError::OtherKind { .. }), "{error}");
            let end = format!("is not a tap device, but of kind {kind}");
            assert!(error.to_string().ends_with(&end), "{error}");
        }
        let error = refused(&Settings {
            name: "veth-a",
            ..MADE
        });
        assert!(matches!(error, OpenError::Exists { .. }), "{error}");
        let tap = Settings {
            link: Link::Ip,
            name: "saiga-tap",
            ..ATTACHED
        };
        ip("tuntap add saiga-tap mode tap");
        let error = refused(&tap);
        assert!(matches!(error, OpenError::OtherKind { .. }), "{error}");
    });
}

#[test]
fn a_device_in_use_is_busy() {
    in_namespaces(|| {
        ip("tuntap add saiga-test mode tap");
        let tap = open(&ATTACHED);
        let busy = refused(&ATTACHED);
        assert!(matches!(busy, OpenError::Busy { .. }), "{busy}");
        assert!(busy.to_string().contains("end that process"));
        drop(tap);
        open(&ATTACHED);
    });
}

#[test]
fn the_number_of_queues_must_be_possible() {
    in_namespaces(|| {
        ip("tuntap add saiga-test mode tap");
        let error = refused(&Settings {
            queues: TWO,
            ..ATTACHED
        });
        assert!(matches!(error, OpenError::OneQueue { .. }), "{error}");
        assert!(error.to_string().contains("mode tap multi_queue"));
        ip("tuntap add saiga-many mode tap multi_queue");
        for queues in [NonZeroU16::MIN, TWO] {
            let many = Settings {
                name: "saiga-many",
                queues,
                ..ATTACHED
            };
            assert_eq!(Tap::open(&many).unwrap().len(), usize::from(queues.get()));
        }
    });
}

/// A thread that gives up its capabilities may use a device of its user, and no other.
#[test]
fn without_the_right_nothing_is_opened() {
    in_namespaces(|| {
        ip("tuntap add saiga-test mode tap user 65534");
        ip("tuntap add saiga-mine mode tap user 0");
        drop_capabilities();
        for settings in [ATTACHED, MADE] {
            let name = match settings.origin {
                Origin::Make => "saiga-new",
                Origin::Attach => "saiga-test",
            };
            let error = refused(&Settings { name, ..settings });
            assert!(matches!(error, OpenError::Permission { .. }), "{error}");
            assert!(error.to_string().contains("CAP_NET_ADMIN"));
        }
        open(&Settings {
            name: "saiga-mine",
            ..ATTACHED
        });
    });
}

/// Removes all capabilities of the calling thread.
fn drop_capabilities() {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).unwrap();
}
