//! Frames to and from the kernel: with and without offloads, with and without a link layer, on a
//! device that is taken down or removed.

use std::num::NonZeroU16;

use saiga_netdev::tap::{Origin, Settings, Tap};
use saiga_netdev::{Device, DeviceError, Link};
use saiga_wire::virtio::Header;

use crate::host::{Host, converse};
use crate::namespace::{has_interface, in_namespaces, ip, ping, set_up};

/// A device that is made, with offloads and one queue.
pub(crate) const MADE: Settings<'static> = Settings {
    name: "saiga-test",
    link: Link::Ethernet,
    origin: Origin::Make,
    queues: NonZeroU16::MIN,
    has_offloads: true,
};
/// Bytes of the largest frame that is not a super-segment.
const MTU_FRAME: usize = 1_514;

/// A device with one queue.
pub(crate) fn open(settings: &Settings<'_>) -> Tap {
    let mut queues = Tap::open(settings).unwrap();
    assert_eq!(queues.len(), 1);
    queues.remove(0)
}

/// Serves on a device while the kernel sends pings and a megabyte on each version of IP.
fn conversation(settings: &Settings<'_>) -> Host<Tap> {
    let mut host = Host::new(open(settings));
    set_up(settings.name);
    host.serve_during(|| {
        ping();
        converse(1);
        converse(1_000_000);
    });
    host
}

#[test]
fn with_offloads_super_segments_pass_both_ways() {
    in_namespaces(|| {
        let host = conversation(&MADE);
        let seen = host.seen;
        assert!(seen.largest_received > 2 * MTU_FRAME, "{seen:?}");
        assert!(seen.largest_sent > 2 * MTU_FRAME, "{seen:?}");
        assert!(seen.open > 0);
        let counters = host.device.counters();
        assert_eq!(counters.drops, Default::default());
        for traffic in [counters.received, counters.sent] {
            assert!(traffic.bytes > 2_000_000, "{counters:?}");
            assert!(traffic.frames >= traffic.batches && traffic.batches > 0);
        }
    });
}

#[test]
fn without_offloads_frames_are_complete() {
    in_namespaces(|| {
        let host = conversation(&Settings {
            has_offloads: false,
            ..MADE
        });
        let seen = host.seen;
        assert_eq!(seen.largest_received, MTU_FRAME);
        assert_eq!(seen.largest_sent, MTU_FRAME);
        assert_eq!(seen.open, 0);
        assert_eq!(host.device.counters().drops, Default::default());
    });
}

#[test]
fn a_tun_device_has_no_link_layer() {
    in_namespaces(|| {
        let host = conversation(&Settings {
            link: Link::Ip,
            ..MADE
        });
        assert_eq!(host.device.info().mac, None);
        assert!(host.seen.largest_received > 2 * MTU_FRAME);
        assert!(host.seen.largest_sent > 2 * MTU_FRAME);
    });
}

#[test]
fn a_device_tells_its_properties() {
    in_namespaces(|| {
        ip("tuntap add saiga-test mode tap");
        ip("link set saiga-test address 02:00:00:00:00:0a mtu 9000");
        let tap = open(&Settings {
            origin: Origin::Attach,
            ..MADE
        });
        let info = tap.info();
        assert_eq!((info.name.as_str(), info.queue), ("saiga-test", 0));
        assert_eq!(info.mtu, 9_000);
        assert_eq!(info.mac.unwrap().to_string(), "02:00:00:00:00:0b");
        drop(tap);
        assert!(has_interface("saiga-test"));
        let made = open(&Settings {
            name: "saiga-made",
            ..MADE
        });
        assert!(has_interface("saiga-made"));
        drop(made);
        assert!(!has_interface("saiga-made"));
    });
}

#[test]
fn a_device_that_was_down_goes_on() {
    in_namespaces(|| {
        let mut host = Host::new(open(&MADE));
        set_up(MADE.name);
        host.serve_during(ping);
        ip("link set saiga-test down");
        send(&mut host.device, 100);
        host.device.flush().unwrap();
        assert_eq!(host.device.counters().drops.down, 1);
        // What the kernel sent before is still there; then there is nothing, and no error.
        while host.device.receive(64, &mut |_| {}).unwrap() > 0 {}
        set_up_again();
        host.serve_during(|| converse(1_000));
    });
}

/// Setting a device down has removed its addresses of IPv6.
fn set_up_again() {
    ip("link set saiga-test up");
    ip("address add fd09::1/64 dev saiga-test nodad");
}

#[test]
fn a_device_that_was_removed_is_gone() {
    in_namespaces(|| {
        let mut tap = open(&MADE);
        set_up(MADE.name);
        ip("link delete saiga-test");
        let gone = tap.receive(64, &mut |_| {}).unwrap_err();
        assert!(matches!(gone, DeviceError::Gone { .. }), "{gone}");
        assert_eq!(gone.to_string(), "network interface saiga-test was removed");
        send(&mut tap, 100);
        let gone = tap.flush().unwrap_err();
        assert!(matches!(gone, DeviceError::Gone { .. }), "{gone}");
    });
}

#[test]
fn what_the_kernel_refuses_is_counted() {
    in_namespaces(|| {
        let mut tun = open(&Settings {
            link: Link::Ip,
            ..MADE
        });
        set_up(MADE.name);
        // A packet of version 0 of IP, and a frame that is longer than the room.
        send(&mut tun, 40);
        tun.send(saiga_netdev::LARGEST_FRAME_BYTES + 1, &Header::NONE);
        tun.flush().unwrap();
        let counters = tun.counters();
        assert_eq!(counters.drops.refused, 2);
        assert_eq!(counters.sent, Default::default());
    });
}

/// Sends a frame of zeros.
fn send(tap: &mut Tap, length: usize) {
    tap.room().unwrap()[..length].fill(0);
    tap.send(length, &Header::NONE);
}
