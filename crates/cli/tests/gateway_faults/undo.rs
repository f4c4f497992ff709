//! What a gateway changes on its host, and that nothing of it is left: rules, routes, addresses,
//! interfaces and sysctls are the same byte for byte.

use saiga_trials::snapshot::sysctls;

use crate::support::said;
use crate::world::{Link, PORT, Wire, in_world};

/// After an orderly end; after a kill and `down`; and after a kill and a second gateway, which ends
/// in order.
#[test]
fn the_host_is_as_before() {
    for wire in Wire::ALL {
        in_world(wire, Link::Veth, |world| {
            let _server = world.redis(PORT, &[]);
            let before = (world.network(), sysctls());
            let assert_undone = |how: &str| {
                assert_eq!(world.network(), before.0, "{how}");
                assert_eq!(sysctls(), before.1, "{how}");
            };
            let gateway = world.gateway();
            assert_ne!(world.network(), before.0, "a gateway has rules");
            world.stop(gateway);
            assert_undone("SIGTERM");

            world.kill(world.gateway());
            assert_ne!(world.network(), before.0, "kill -9 leaves rules");
            let out = said(&mut world.saiga.saiga(&["gateway", "down"]));
            assert_eq!(out.code, Some(0), "{}", out.stderr);
            assert_undone("kill -9 and down");

            world.kill(world.gateway());
            world.stop(world.gateway());
            assert_undone("kill -9 and a second up");
        });
    }
}
