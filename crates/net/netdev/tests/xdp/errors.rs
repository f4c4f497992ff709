//! Why an interface or a queue is not opened, and that the reason is named.

use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use saiga_netdev::xdp::{BusyPoll, Copies, Interface, OpenError, Options, XdpMode};

use crate::world::{World, run, syn_of};

fn small() -> Options {
    Options {
        slots: 64,
        ..Options::default()
    }
}

/// With memory for so many frames.
fn with_frames(count: u32) -> Options {
    Options {
        frame_count: Some(count),
        ..small()
    }
}

fn refusal(world: &World, name: &str, options: &Options) -> OpenError {
    world
        .host
        .within(|| Interface::open(name, options))
        .expect_err("must be refused")
}

#[test]
fn what_cannot_be_opened_is_named() {
    let world = World::new();
    world.host.within(|| {
        let link = [
            "link", "add", "big", "mtu", "9000", "type", "veth", "peer", "name", "peer",
        ];
        run("ip", &link);
    });
    let slots = |slots| Options {
        slots,
        ..Options::default()
    };
    for (name, options, expected) in [
        ("none", small(), "there is no network interface none"),
        (
            "a-name-of-16-byte",
            small(),
            "there is no network interface",
        ),
        ("lo", small(), "lo is not an Ethernet interface"),
        (
            "big",
            small(),
            "big has an MTU of 9000 bytes, but a frame of 2048 bytes holds",
        ),
        ("vs", slots(100), "100 slots for each ring are not possible"),
        ("vs", slots(32), "32 slots"),
        ("vs", slots(65_536), "65536 slots"),
        ("vs", with_frames(127), "127 frames are not possible"),
    ] {
        let error = refusal(&world, name, &options).to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn an_interface_has_one_program_and_a_queue_one_socket() {
    let world = World::new();
    let (interface, queue) = world.open(&small());
    let error = refusal(&world, "vs", &small());
    assert!(matches!(error, OpenError::Occupied { .. }), "{error}");
    let generic = Options {
        mode: Some(XdpMode::Generic),
        ..small()
    };
    let error = refusal(&world, "vs", &generic);
    assert!(matches!(error, OpenError::Occupied { .. }), "{error}");
    let error = world.queue(&interface, 0).unwrap_err();
    assert!(
        matches!(error, OpenError::QueueInUse { queue: 0, .. }),
        "{error}"
    );
    let error = world.queue(&interface, 1).unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::NoQueue {
                queue: 1,
                queues: 1,
                ..
            }
        ),
        "{error}"
    );
    drop(queue);
    world.queue(&interface, 0).unwrap();
}

#[test]
fn a_driver_without_zero_copy_is_named() {
    let world = World::new();
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let options = Options {
            copies: Copies::Never,
            mode: Some(mode),
            ..small()
        };
        let interface = world
            .host
            .within(|| Interface::open("vs", &options))
            .unwrap();
        let error = world.queue(&interface, 0).unwrap_err();
        assert!(matches!(error, OpenError::NoZeroCopy { .. }), "{error}");
    }
}

/// macvlan runs no program in its driver.
#[test]
fn the_core_runs_the_program_if_the_driver_cannot() {
    let world = World::new();
    world.host.within(|| {
        run(
            "ip",
            &["link", "add", "link", "vs", "name", "mv", "type", "macvlan"],
        );
    });
    let interface = world
        .host
        .within(|| Interface::open("mv", &small()))
        .unwrap();
    assert_eq!(interface.mode(), XdpMode::Generic);
    assert!(interface.native_error().is_some());
    drop(interface);
    let native = Options {
        mode: Some(XdpMode::Native),
        ..small()
    };
    let error = refusal(&world, "mv", &native).to_string();
    assert!(
        error.contains("mv: cannot attach an XDP program"),
        "{error}"
    );
}

#[test]
fn busy_polling_receives() {
    let world = World::new();
    let options = Options {
        busy_poll: Some(BusyPoll {
            micros: 20,
            budget: 64,
        }),
        copies: Copies::Always,
        ..small()
    };
    let (_interface, mut queue) = world.open(&options);
    assert!(!queue.is_zero_copy());
    let client = world.syn("10.77.0.1:7");
    syn_of(&mut queue, &client);
}

/// The three capabilities are enough, and each is needed.
#[test]
fn missing_rights_are_named() {
    let needed = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW | CapabilitySet::BPF;
    let world = World::new();
    let open = |rights: CapabilitySet, options: Options| {
        world.host.within(move || {
            restrict(rights);
            let interface = Interface::open("vs", &options)?;
            interface.open_queue(0).map(drop)
        })
    };
    for missing in [
        CapabilitySet::NET_ADMIN,
        CapabilitySet::NET_RAW,
        CapabilitySet::BPF,
    ] {
        let error = open(needed - missing, small()).unwrap_err();
        assert!(matches!(error, OpenError::NotPermitted { .. }), "{error}");
        assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}");
    }
    // Root's threads with CAP_IPC_LOCK, those of other tests, are not limited.
    let limit = Rlimit {
        current: Some(1 << 20),
        maximum: rustix::process::getrlimit(Resource::Memlock).maximum,
    };
    rustix::process::setrlimit(Resource::Memlock, limit).unwrap();
    open(needed, small()).unwrap();
    let error = open(needed, Options::default()).unwrap_err();
    assert!(
        matches!(error, OpenError::Memlock { bytes: 8_388_608 }),
        "{error}"
    );
    let error = open(needed, with_frames(1024)).unwrap_err();
    assert!(
        matches!(error, OpenError::Memlock { bytes: 2_097_152 }),
        "{error}"
    );
}

/// Leaves only some rights to the calling thread.
fn restrict(rights: CapabilitySet) {
    let sets = CapabilitySets {
        effective: rights,
        permitted: rights,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, sets).unwrap();
}
