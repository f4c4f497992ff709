//! A port whose other end is the kernel.

use saiga_netdev::{Device as _, Drops};
use saiga_wire::offload::Fill;

use crate::host::{Host, converse, converse_with};
use crate::namespace::{STACK, has_interface, in_namespaces, ip, ping, set_up};
use crate::world::open;

/// The driver forms checksums and divides super-segments, and the kernel accepts all of them. The
/// driver takes super-segments of IPv4 only, and counts the link layer to the MTU.
#[test]
fn the_kernel_is_at_the_other_end_of_a_tap_port() {
    in_namespaces(|| {
        let port = open("net_tap0,iface=dpdk0");
        let info = port.info().clone();
        assert_eq!((info.name.as_str(), info.queue), ("net_tap0", 0));
        assert_eq!(info.mtu, 1500);
        assert_eq!(info.offload.checksum, Fill::PseudoHeader);
        assert!(info.offload.segmentation.is_some());
        let mut host = Host::new(port);
        set_up("dpdk0");
        assert!(has_interface("dpdk0"));
        ip("link set dpdk0 mtu 1480");
        host.serve_during(|| {
            ping();
            converse(1);
            converse_with(STACK[0], 1_000_000);
        });
        assert!(host.seen.largest_sent > 3_000, "{:?}", host.seen);
        let counters = host.device.counters();
        assert_eq!(counters.drops, Drops::default());
        for traffic in [counters.received, counters.sent] {
            assert!(traffic.bytes > 1_000_000, "{counters:?}");
            assert!(traffic.frames >= traffic.batches && traffic.batches > 0);
        }
    });
}
