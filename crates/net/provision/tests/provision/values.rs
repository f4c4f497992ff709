//! What is changed, and what was changed after that.

use saiga_provision::pages::Node;
use saiga_provision::{Machine as _, UndoError, Wanted, hold};

use crate::fake::{CARD, DRIVE, Fake, MIB, TWINS, cards, everything};

const NODE0: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB";

fn pages(fake: &Fake, mebibytes: u64) -> Wanted {
    let node = Node::numbered(fake.root(), 0).unwrap();
    Wanted {
        pages: vec![(node, mebibytes * MIB)],
        cards: Vec::new(),
    }
}

fn card() -> Wanted {
    Wanted {
        cards: cards(&[CARD]),
        ..Wanted::default()
    }
}

#[test]
fn a_machine_is_prepared_and_given_back() {
    let mut fake = Fake::new();
    let before = fake.tree();
    let prepared = fake.prepare(&everything(&fake)).unwrap();
    // 16 pages are needed, 1 of 4 is free. Node 1 has enough.
    assert_eq!(
        prepared.changes,
        [
            "huge pages of NUMA node 0: 19, before 4",
            "module vfio-pci loaded",
            "0000:04:00.0: driver vfio-pci, before ixgbe",
            "0000:05:00.0: driver vfio-pci, before ixgbe",
            "0000:05:00.1: driver vfio-pci, before ixgbe",
        ]
    );
    assert_eq!(fake.text(&format!("{NODE0}/nr_hugepages")), "19\n");
    for card in [CARD, TWINS[0], TWINS[1]] {
        assert_eq!(fake.driver(card).as_deref(), Some("vfio-pci"));
    }
    assert_eq!(fake.driver(DRIVE).as_deref(), Some("nvme"));
    drop(prepared);
    let undone = fake.undo().unwrap();
    assert_eq!((undone.restored.len(), undone.kept.len()), (5, 0));
    assert_eq!(fake.tree(), before);
    assert!(!fake.record().exists());
    assert_eq!(fake.undo().unwrap(), Default::default());
}

#[test]
fn what_is_there_is_not_changed() {
    let mut fake = Fake::new();
    let before = fake.tree();
    let prepared = fake.prepare(&pages(&fake, 2)).unwrap();
    assert!(prepared.hold.is_none() && prepared.changes.is_empty());
    assert_eq!(fake.tree(), before);
    assert!(!fake.record().exists());
    // A larger page counts as well, unless a program has reserved it.
    let large = NODE0.replace("2048kB", "1048576kB");
    fake.put(&format!("{large}/free_hugepages"), "1\n");
    let reserved = "/sys/kernel/mm/hugepages/hugepages-1048576kB/resv_hugepages";
    for (value, changes) in [("0\n", 0), ("1\n", 1)] {
        fake.put(reserved, value);
        let prepared = fake.prepare(&pages(&fake, 20)).unwrap();
        assert_eq!(prepared.changes.len(), changes, "{value:?}");
    }
}

/// Pages beyond the number that someone has set become pages of that number when it is raised.
#[test]
fn surplus_pages_are_surplus_again() {
    let mut fake = Fake::new();
    for (file, value) in [("free", "0\n"), ("surplus", "2\n")] {
        fake.put(&format!("{NODE0}/{file}_hugepages"), value);
    }
    let before = fake.tree();
    let prepared = fake.prepare(&pages(&fake, 6)).unwrap();
    assert_eq!(prepared.changes, ["huge pages of NUMA node 0: 7, before 2"]);
    assert_eq!(fake.text(&format!("{NODE0}/free_hugepages")), "3\n");
    drop(prepared);
    fake.undo().unwrap();
    assert_eq!(fake.tree(), before);
}

#[test]
fn a_second_start_keeps_the_first_values() {
    let mut fake = Fake::new();
    let before = fake.tree();
    drop(fake.prepare(&pages(&fake, 10)).unwrap());
    let mut more = everything(&fake);
    more.cards.truncate(1);
    drop(fake.prepare(&more).unwrap());
    drop(fake.prepare(&more).unwrap());
    fake.undo().unwrap();
    assert_eq!(fake.tree(), before);
}

/// A card of another driver before, of none, and one that was reserved for another.
#[test]
fn each_binding_is_restored() {
    for (name, driver) in [("ixgbe", Some("ixgbe")), ("(null)", None), ("other", None)] {
        let mut fake = Fake::new();
        let folder = format!("/sys/bus/pci/devices/{CARD}");
        fake.put(&format!("{folder}/driver_override"), &format!("{name}\n"));
        if driver.is_none() {
            fake.remove(&format!("{folder}/driver"));
        }
        let before = fake.tree();
        drop(fake.prepare(&card()).unwrap());
        assert_eq!(fake.driver(CARD).as_deref(), Some("vfio-pci"));
        fake.undo().unwrap();
        assert_eq!(fake.tree(), before, "{name}");
    }
}

/// `vfio` was loaded before, so it is not among the modules that are unloaded.
#[test]
fn modules_that_were_loaded_before_stay() {
    for loaded in [&["vfio"][..], &["vfio", "vfio_pci_core"]] {
        let mut fake = Fake::new();
        for module in loaded {
            fake.load_alone(module);
        }
        let before = fake.tree();
        drop(fake.prepare(&card()).unwrap());
        assert_ne!(fake.tree(), before);
        fake.undo().unwrap();
        assert_eq!(fake.tree(), before, "{loaded:?}");
    }
}

#[test]
fn what_someone_else_has_changed_stays() {
    let mut fake = Fake::new();
    drop(fake.prepare(&everything(&fake)).unwrap());
    // Fewer than were set, and more than before.
    fake.write(&format!("{NODE0}/nr_hugepages"), "10").unwrap();
    let taken = format!("/sys/bus/pci/devices/{}/driver", TWINS[0]);
    fake.remove(&taken);
    fake.link(&taken, "../../../bus/pci/drivers/other");
    fake.put(
        &format!("/sys/bus/pci/devices/{}/driver_override", TWINS[1]),
        "other\n",
    );
    fake.put("/sys/module/vfio_pci/refcnt", "1\n");
    let undone = fake.undo().unwrap();
    assert_eq!(undone.restored, [format!("{CARD}: driver ixgbe")]);
    let [functions @ .., modules, pages] = undone.kept.as_slice() else {
        panic!("{:?}", undone.kept);
    };
    assert!(functions[0].contains("reserved for other") && functions[1].contains("driver other"));
    assert!(modules.contains("vfio_pci"), "{modules}");
    assert!(pages.contains("10, and not 19"), "{pages}");
    assert_eq!(fake.text(&format!("{NODE0}/nr_hugepages")), "10\n");
    assert!(!fake.record().exists());
}

/// A driver that was unloaded does not take its card back; later it does.
#[test]
fn a_failure_leaves_a_record_with_the_rest() {
    let mut fake = Fake::new();
    let before = fake.tree();
    drop(fake.prepare(&everything(&fake)).unwrap());
    fake.remove("/sys/bus/pci/drivers/ixgbe");
    for _ in 0..2 {
        let error = fake.undo().unwrap_err().to_string();
        assert!(
            error.contains(TWINS[1]) && error.contains("ixgbe"),
            "{error}"
        );
    }
    fake.put("/sys/bus/pci/drivers/ixgbe/unbind", "");
    fake.undo().unwrap();
    assert_eq!(fake.tree(), before);
}

/// Between two attempts, someone takes a card that was given back.
#[test]
fn what_was_undone_is_not_undone_again() {
    let mut fake = Fake::new();
    drop(fake.prepare(&everything(&fake)).unwrap());
    // Three steps for the card that is the last one.
    fake.refused = Some(fake.done + 3);
    let error = fake.undo().unwrap_err();
    let undone = error.undone().unwrap();
    assert_eq!(undone.restored, [format!("{}: driver ixgbe", TWINS[1])]);
    assert!(error.to_string().contains(TWINS[0]), "{error}");
    let device = format!("/sys/bus/pci/devices/{}", TWINS[1]);
    let (name, address) = (format!("{device}/driver_override"), TWINS[1]);
    fake.write(&format!("{device}/driver/unbind"), address)
        .unwrap();
    fake.write(&name, "vfio-pci").unwrap();
    fake.write("/sys/bus/pci/drivers_probe", address).unwrap();
    fake.undo().unwrap();
    assert_eq!(fake.driver(TWINS[1]).as_deref(), Some("vfio-pci"));
    assert_eq!(fake.driver(TWINS[0]).as_deref(), Some("ixgbe"));
}

#[test]
fn nothing_is_undone_while_a_gateway_uses_it() {
    let mut fake = Fake::new();
    let prepared = fake.prepare(&card()).unwrap();
    // A gateway without `--prepare` may use it as well.
    let other = hold(&fake.record()).unwrap();
    let with = fake.tree();
    for keeps in [prepared.hold, other] {
        let error = fake.undo().unwrap_err();
        assert!(matches!(error, UndoError::Record(_)), "{error}");
        assert!(error.to_string().contains("end it first"), "{error}");
        assert!(fake.prepare(&card()).is_err());
        assert_eq!(fake.tree(), with);
        drop(keeps);
    }
    fake.undo().unwrap();
    assert!(hold(&fake.record()).unwrap().is_none());
}
