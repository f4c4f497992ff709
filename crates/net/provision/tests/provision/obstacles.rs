//! What cannot be had: it is named, and the machine stays as it was.

use saiga_provision::card::with_mac;
use saiga_provision::pages::Node;
use saiga_provision::{Machine as _, Wanted};

use crate::fake::{CARD, DRIVE, Fake, MIB, TWINS, cards, everything};

/// What is said of the cards, after `change` of the machine. Nothing else has changed.
fn refusal(named: &[&str], change: impl FnOnce(&mut Fake)) -> String {
    let mut fake = Fake::new();
    change(&mut fake);
    let before = fake.tree();
    let wanted = Wanted {
        cards: cards(named),
        ..everything(&fake)
    };
    let error = fake.prepare(&wanted).unwrap_err();
    assert_eq!(fake.tree(), before, "{error}");
    assert!(!fake.record().exists());
    error.to_string()
}

#[test]
fn cards_in_use_are_refused() {
    let eth0 = "/sys/class/net/eth0";
    let up = refusal(&[CARD], |fake| {
        fake.put(&format!("{eth0}/flags"), "0x1003\n")
    });
    assert!(
        up.contains("eth0, which is up") && up.contains("ip link set eth0 down"),
        "{up}"
    );
    let master = refusal(&[CARD], |fake| {
        fake.link(&format!("{eth0}/master"), "../br7")
    });
    assert!(master.contains("belongs to br7"), "{master}");
    let network = refusal(&[CARD], |fake| {
        let has = vec!["10.0.0.1".to_owned(), "route 10.1.0.0/16".to_owned()];
        fake.network.insert("eth0".to_owned(), has);
    });
    assert!(
        network.contains("has 10.0.0.1, route 10.1.0.0/16"),
        "{network}"
    );
    let hidden = refusal(&[CARD], |fake| fake.remove(eth0));
    assert!(hidden.contains("another network namespace"), "{hidden}");
    let functions = refusal(&[CARD], |fake| {
        fake.put(&format!("/sys/bus/pci/devices/{CARD}/sriov_numvfs"), "8\n");
    });
    assert!(functions.contains("8 virtual functions"), "{functions}");
}

#[test]
fn devices_that_are_not_cards_are_refused() {
    let drive = refusal(&[DRIVE], |_| {});
    assert!(drive.contains("0x010802"), "{drive}");
    let absent = refusal(&["0000:09:00.0"], |_| {});
    assert!(absent.contains("no PCI device 0000:09:00.0"), "{absent}");
}

/// A bridge and a device without a driver do not count.
#[test]
fn a_group_goes_as_a_whole() {
    let other = refusal(&TWINS[..1], |_| {});
    assert!(other.contains("0000:05:00.1 (driver ixgbe)"), "{other}");
    let mut fake = Fake::new();
    fake.remove(&format!("/sys/bus/pci/devices/{}/driver", TWINS[1]));
    let bridge = "/sys/kernel/iommu_groups/12/devices/0000:00:01.0";
    fake.put(&format!("{bridge}/class"), "0x060400\n");
    fake.link(&format!("{bridge}/driver"), "../drivers/some-bridge");
    let wanted = Wanted {
        cards: cards(&TWINS[..1]),
        ..Wanted::default()
    };
    fake.prepare(&wanted).unwrap();
    assert_eq!(fake.driver(TWINS[1]), None);
}

#[test]
fn a_card_without_an_iommu_needs_the_unsafe_mode() {
    let group = format!("/sys/bus/pci/devices/{CARD}/iommu_group");
    let parameter = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
    let none = refusal(&[CARD], |fake| fake.remove(&group));
    assert!(none.contains("enable_unsafe_noiommu_mode=1"), "{none}");
    let off = refusal(&[CARD], |fake| {
        fake.remove(&group);
        fake.put(parameter, "N\n");
    });
    assert!(off.contains("intel_iommu=on"), "{off}");
    let mut fake = Fake::new();
    fake.remove(&group);
    fake.put(parameter, "Y\n");
    let wanted = Wanted {
        cards: cards(&[CARD]),
        ..Wanted::default()
    };
    fake.prepare(&wanted).unwrap();
}

/// What was changed before a failure is undone: pages, modules, other cards.
#[test]
fn a_failure_in_the_middle_is_undone() {
    let module = refusal(&[CARD], |fake| fake.has_module = false);
    assert!(module.contains("module vfio-pci not found"), "{module}");
    // A module that comes without its driver.
    let reserved = refusal(&[CARD, TWINS[0], TWINS[1]], |fake| {
        let pages = "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages";
        fake.put(pages, "0\n");
        fake.put(&pages.replace("free", "nr"), "100\n");
    });
    assert!(
        reserved.contains("NUMA node 1 has memory for 100 of 101 huge pages"),
        "{reserved}"
    );
}

#[test]
fn too_little_memory_is_named_with_what_there_is() {
    let mut fake = Fake::new();
    let before = fake.tree();
    let mut wanted = everything(&fake);
    wanted.pages[1].1 = 1024 * MIB;
    let error = fake.prepare(&wanted).unwrap_err().to_string();
    // 512 pages and the 3 in use.
    assert!(
        error.contains("NUMA node 1 has memory for 100 of 515 huge pages"),
        "{error}"
    );
    assert!(
        error.contains("hugepagesz=2M hugepages=1:515") && error.contains("\"ordinary\""),
        "{error}"
    );
    assert_eq!(fake.tree(), before);
}

#[test]
fn nodes_and_sizes_that_do_not_exist_are_named() {
    let fake = Fake::new();
    let node = |number| Node::numbered(fake.root(), number);
    let error = node(2).unwrap_err().to_string();
    assert!(error.starts_with("there is no NUMA node 2"), "{error}");
    fake.remove("/sys/devices/system/node/node1/hugepages/hugepages-2048kB");
    let error = node(1).unwrap_err().to_string();
    assert!(error.contains("no huge pages of 2 MiB"), "{error}");
    // A kernel without nodes has the pages elsewhere.
    fake.remove("/sys/devices/system/node");
    assert_eq!(node(0).unwrap().to_string(), "the machine");
    assert!(node(1).is_err());
}

#[test]
fn cards_of_drivers_that_share_them_stay() {
    let mut fake = Fake::new();
    let driver = format!("/sys/bus/pci/devices/{CARD}/driver");
    fake.remove(&driver);
    fake.link(&driver, "../../../bus/pci/drivers/mlx5_core");
    fake.put("/sys/class/net/eth0/flags", "0x1003\n");
    let before = fake.tree();
    let wanted = Wanted {
        cards: cards(&[CARD]),
        ..Wanted::default()
    };
    assert!(fake.prepare(&wanted).unwrap().hold.is_none());
    assert_eq!(fake.tree(), before);
}

#[test]
fn cards_are_found_by_their_mac_addresses() {
    let fake = Fake::new();
    // A VLAN on a card has its address; a device of virtio is one step further from its card.
    fake.put("/sys/class/net/aaa/address", "02:00:00:00:04:00\n");
    fake.put(
        "/sys/devices/pci0000:00/0000:07:00.0/virtio1/net/eth7/address",
        "02:77\n",
    );
    let target = "../../devices/pci0000:00/0000:07:00.0/virtio1/net/eth7";
    fake.link("/sys/class/net/eth7", target);
    fake.put(
        "/sys/devices/pci0000:00/0000:08:00.0/usb1/1-2/1-2:1.0/net/usb0/address",
        "02:88\n",
    );
    let target = "../../devices/pci0000:00/0000:08:00.0/usb1/1-2/1-2:1.0/net/usb0";
    fake.link("/sys/class/net/usb0", target);
    for (mac, card) in [
        ("02:00:00:00:04:00", Some(CARD)),
        ("02:77", Some("0000:07:00.0")),
        ("02:88", None),
        ("02:99", None),
    ] {
        let found = with_mac(fake.root(), mac).unwrap();
        assert_eq!(found.map(|card| card.to_string()).as_deref(), card, "{mac}");
    }
}
