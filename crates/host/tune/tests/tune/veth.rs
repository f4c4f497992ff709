//! Queues and offloads of a real device: a pair of virtual ones with eight queues, as root.

use std::process::Command;

use saiga_process::root::Root;
use saiga_tune::host::{Host, LiveHost};
use saiga_tune::target::{NicSetting, Target};

/// A pair of devices that is removed at the end.
struct Pair(String);

impl Pair {
    fn create() -> Self {
        let pair = Self(format!("sgt{}", std::process::id()));
        let Self(name) = &pair;
        let queues = ["numrxqueues", "8", "numtxqueues", "8"];
        let peer = format!("{name}p");
        let mut words = vec!["link", "add", name];
        words.extend(queues);
        words.extend(["type", "veth", "peer", "name", &peer]);
        words.extend(queues);
        assert!(Command::new("ip").args(words).status().unwrap().success());
        pair
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["link", "delete", &self.0])
            .status();
    }
}

#[test]
fn queues_and_offloads_of_a_device_are_read_and_written() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let pair = Pair::create();
    let mut host = LiveHost::new(Root::host());
    let target = |setting: NicSetting| Target::Nic {
        nic: pair.0.clone(),
        setting,
    };
    let feature = |name: &str| target(NicSetting::Feature(name.to_owned()));
    // Features that veth lets be changed, one in each block of 32.
    for name in ["tx-tcp-segmentation", "rx-gro", "tx-generic-segmentation"] {
        let old = host.read(&feature(name)).unwrap().unwrap();
        let other = if old == "on" { "off" } else { "on" };
        host.write(&feature(name), Some(other)).unwrap();
        assert_eq!(
            host.read(&feature(name)).unwrap().as_deref(),
            Some(other),
            "{name}"
        );
        host.write(&feature(name), Some(&old)).unwrap();
        assert_eq!(host.read(&feature(name)).unwrap(), Some(old), "{name}");
    }
    for setting in [NicSetting::RxQueues, NicSetting::TxQueues] {
        let queues = target(setting);
        let old = host.read(&queues).unwrap().unwrap();
        assert!(old.ends_with(" max 8"), "{old}");
        for count in ["3", "5"] {
            host.write(&queues, Some(count)).unwrap();
            let shown = host.read(&queues).unwrap().unwrap();
            assert_eq!(shown, format!("{count} max 8"));
        }
        assert!(host.write(&queues, Some("9")).is_err());
    }
    let fixed = host.read(&feature("rx-lro")).unwrap().unwrap();
    assert_eq!(fixed, "off [fixed]");
    // A veth has receive and transmit queues, and neither rings nor coalescing.
    for setting in [
        NicSetting::CombinedQueues,
        NicSetting::RxRing,
        NicSetting::RxMicroseconds,
        NicSetting::Rss,
    ] {
        let name = setting.to_string();
        assert_eq!(host.read(&target(setting)).unwrap(), None, "{name}");
    }
    let error = host.write(&feature("none"), Some("on")).unwrap_err();
    assert_eq!(error.to_string(), "`none` is not a value of this setting");
}
