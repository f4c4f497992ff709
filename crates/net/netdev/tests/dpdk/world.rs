//! DPDK of this process, and ports of it.

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use saiga_netdev::Device;
use saiga_netdev::dpdk::{Dpdk, DpdkError, Memory, Options, Plugin, Queue, Settings, Which};
use saiga_wire::virtio::Header;

/// How long a frame may take that must come.
const LIMIT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// The plug-in's file.
pub(crate) fn plugin() -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("libsaiga_dpdk.so");
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tools/dpdk");
    let built = Command::new(tool).arg(&file).status().unwrap();
    assert!(built.success(), "tools/setup test installs DPDK");
    file
}

/// DPDK, begun once.
pub(crate) fn dpdk() -> &'static Dpdk {
    static DPDK: OnceLock<Dpdk> = OnceLock::new();
    DPDK.get_or_init(|| {
        let plugin = Plugin::load(&plugin()).unwrap();
        assert!(plugin.version().starts_with("DPDK 22.11"));
        let settings = Settings {
            memory: Memory::Ordinary { mebibytes: 128 },
            ..Settings::default()
        };
        Dpdk::begin(plugin, &settings, |line| eprintln!("DPDK: {line}")).unwrap()
    })
}

/// Options with one queue and small rings.
pub(crate) fn options(device: &str) -> Options {
    Options {
        which: Which::Device(device.to_owned()),
        queues: NonZeroU16::MIN,
        ring: 256,
        frames: 1024,
        mtu: None,
    }
}

/// A port with one queue.
pub(crate) fn open(device: &str) -> Queue {
    let mut queues = dpdk().open(&options(device)).unwrap();
    assert_eq!(queues.len(), 1);
    queues.remove(0)
}

pub(crate) fn refused(options: &Options) -> DpdkError {
    dpdk().open(options).unwrap_err()
}

/// Waits until the descriptor of a device is readable.
pub(crate) fn wait(device: &dyn Device) {
    let descriptor = device.descriptor();
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    assert_eq!(poll(&mut polled, Some(&LIMIT)).unwrap(), 1);
}

/// Sends a frame, and returns whether there was room.
pub(crate) fn send(device: &mut dyn Device, bytes: &[u8]) -> bool {
    let Some(room) = device.room() else {
        return false;
    };
    room[..bytes.len()].copy_from_slice(bytes);
    device.send(bytes.len(), &Header::NONE);
    true
}

/// The next `count` frames, as soon as the descriptor tells of them.
pub(crate) fn receive(device: &mut dyn Device, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while frames.len() < count {
        wait(device);
        let most = count - frames.len();
        device
            .receive(most, &mut |frame| frames.push(frame.bytes.to_vec()))
            .unwrap();
    }
    frames
}

/// A frame with bytes that tell its place and number.
pub(crate) fn frame(length: usize, number: u8) -> Vec<u8> {
    let bytes = (0..length).map(|at| u8::try_from(at % 251).unwrap() ^ number);
    bytes.collect()
}
