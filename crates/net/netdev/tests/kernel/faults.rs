//! TCP of the kernel and of the stack over a device with faults.

use std::time::Instant;

use saiga_netdev::Link;
use saiga_netdev::fault::{Chance, Faults, Faulty, Loss, Path, Reordering, Settings};
use saiga_netdev::tap;

use crate::host::{Host, converse};
use crate::namespace::{in_namespaces, set_up};
use crate::tap::{MADE, open};

const FAULTS: Faults = Faults {
    path: Path {
        jitter_us: 500,
        loss: Loss::Random(Chance::per_mille(30)),
        duplication: Chance::per_mille(30),
        reordering: Reordering::Behind {
            chance: Chance::per_mille(30),
            packets: 3,
            most_us: 5_000,
        },
        ..Path::ideal(1_000)
    },
    corruption: Chance::per_mille(30),
};

/// Without a link layer, no corrupted address of a neighbour stops the conversation.
#[test]
fn every_byte_arrives_in_spite_of_faults() {
    in_namespaces(|| {
        let tun = open(&tap::Settings {
            link: Link::Ip,
            has_offloads: false,
            ..MADE
        });
        set_up(MADE.name);
        let settings = Settings {
            seed: 1,
            receiving: FAULTS,
            sending: FAULTS,
        };
        let begin = Instant::now();
        let faulty = Faulty::new(tun, &settings, move || begin.elapsed()).unwrap();
        let mut host = Host::new(faulty);
        host.serve_during(|| converse(300_000));
        for totals in [host.device.receiving(), host.device.sending()] {
            assert!(totals.path.sent > 400, "{totals:?}");
            assert!(
                totals.path.lost > 0 && totals.path.reordered > 0,
                "{totals:?}"
            );
            assert!(totals.corrupted > 0, "{totals:?}");
            assert_eq!(totals.overflowed, 0);
        }
    });
}
