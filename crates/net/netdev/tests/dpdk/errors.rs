//! Why DPDK does not begin, and ports cannot be opened: each reason has its name, and says what to
//! do.

use std::fs;
use std::num::NonZeroU16;
use std::path::Path;

use saiga_netdev::dpdk::{Dpdk, DpdkError, Options, Plugin, Settings, Which};
use saiga_wire::ethernet::Mac;

use crate::world::{dpdk, options, plugin, refused};

#[test]
fn a_plugin_that_is_missing_or_foreign_is_named() {
    let error = Plugin::find().unwrap_err();
    assert!(matches!(error, DpdkError::NoPlugin { .. }), "{error}");
    assert!(error.to_string().contains("apt-get install libdpdk-dev"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libsaiga_dpdk.so");
    fs::write(&file, "not a library").unwrap();
    for path in [&file, Path::new("/nowhere/libsaiga_dpdk.so")] {
        let error = Plugin::load(path).unwrap_err();
        assert!(matches!(error, DpdkError::Load { .. }), "{error}");
        assert!(error.to_string().starts_with(path.to_str().unwrap()));
    }
    // A library of another kind.
    let error = Plugin::load(Path::new("libm.so.6")).unwrap_err();
    assert!(matches!(error, DpdkError::Load { .. }), "{error}");
}

#[test]
fn dpdk_begins_once() {
    dpdk();
    let again = Plugin::load(&plugin()).unwrap();
    let error = Dpdk::begin(again, &Settings::default(), |_| {}).unwrap_err();
    assert!(matches!(error, DpdkError::Begun), "{error}");
}

#[test]
fn a_port_that_is_not_there_is_named() {
    for device in [
        "net_nothing0",
        "0000:ff:1f.7",
        "net_af_packet0,iface=nowhere",
    ] {
        let error = refused(&options(device));
        assert!(matches!(error, DpdkError::NoPort { .. }), "{error}");
        assert!(error.to_string().contains(device), "{error}");
    }
    let error = refused(&Options {
        which: Which::Mac(Mac([2, 9, 9, 9, 9, 9])),
        ..options("")
    });
    assert!(error.to_string().contains("02:09:09:09:09:09"), "{error}");
}

#[test]
fn what_a_port_cannot_do_is_named() {
    let error = refused(&Options {
        queues: NonZeroU16::new(17).unwrap(),
        ..options("net_ring_queues")
    });
    assert!(matches!(error, DpdkError::Queues { .. }), "{error}");
    let error = refused(&Options {
        queues: NonZeroU16::new(2).unwrap(),
        ..options("net_memif_two")
    });
    assert!(matches!(error, DpdkError::Spreads { .. }), "{error}");
    let error = refused(&Options {
        frames: 1 << 20,
        ..options("net_null2")
    });
    assert!(matches!(error, DpdkError::Memory { .. }), "{error}");
}
