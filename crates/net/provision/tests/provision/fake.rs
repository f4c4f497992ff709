//! A machine of two NUMA nodes with three network cards and a drive, in a directory.
//!
//! A write to one of the kernel's files has the effects of the real one: a driver's link comes and
//! goes, pages are given until the memory ends.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use saiga_process::root::Root;
use saiga_provision::pages::Node;
use saiga_provision::{Machine, PciAddress, PrepareError, Prepared, Undone, Wanted};
use saiga_provision::{UndoError, prepare, undo};

/// A card with the driver `ixgbe`, alone in its group; its interface is down and has nothing.
pub(crate) const CARD: &str = "0000:04:00.0";
/// Two functions of one card, in one group: the interfaces `eth1` and `eth2`.
pub(crate) const TWINS: [&str; 2] = ["0000:05:00.0", "0000:05:00.1"];
/// An NVMe drive.
pub(crate) const DRIVE: &str = "0000:06:00.0";
/// Every card, with its IOMMU group and its interface.
const CARDS: [(&str, u32, &str); 3] = [
    (CARD, 11, "eth0"),
    (TWINS[0], 12, "eth1"),
    (TWINS[1], 12, "eth2"),
];
/// The modules that come with vfio-pci, in the order of loading, each with the modules that it
/// needs.
const MODULES: [(&str, &[&str]); 4] = [
    ("vfio", &[]),
    ("vfio_iommu_type1", &["vfio"]),
    ("vfio_pci_core", &["vfio"]),
    ("vfio_pci", &["vfio", "vfio_pci_core"]),
];
/// Pages of a node for which there is memory.
pub(crate) const MEMORY: u64 = 100;
pub(crate) const MIB: u64 = 1 << 20;

/// The machine.
pub(crate) struct Fake {
    folder: tempfile::TempDir,
    root: Root,
    /// The number of the change at which the process is killed: nothing after it has an effect.
    pub(crate) killed: Option<usize>,
    /// Changes that it has accepted.
    pub(crate) done: usize,
    /// The number of a change that it refuses, alone.
    pub(crate) refused: Option<usize>,
    /// What netlink says of interfaces.
    pub(crate) network: BTreeMap<String, Vec<String>>,
    pub(crate) has_module: bool,
}

impl Fake {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fake = Self {
            root: Root::at(folder.path().join("root")),
            folder,
            killed: None,
            done: 0,
            refused: None,
            network: BTreeMap::new(),
            has_module: true,
        };
        let all = "/sys/kernel/mm/hugepages/hugepages-2048kB";
        fake.put(&format!("{all}/resv_hugepages"), "0\n");
        for node in 0..2 {
            let pages = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB");
            // Another program uses 3 of 4.
            for (file, value) in [("nr", "4\n"), ("free", "1\n"), ("surplus", "0\n")] {
                fake.put(&format!("{pages}/{file}_hugepages"), value);
            }
        }
        fake.put("/sys/bus/pci/drivers_probe", "");
        for (card, group, interface) in CARDS {
            fake.add_device(card, "0x020000\n", group, "ixgbe");
            let place = format!("devices/pci0000:00/{card}/net/{interface}");
            fake.put(&format!("/sys/{place}/flags"), "0x1002\n");
            let mac = format!("02:00:00:00:{}:0{}\n", &card[5..7], &card[11..]);
            fake.put(&format!("/sys/{place}/address"), &mac);
            fake.link(
                &format!("/sys/class/net/{interface}"),
                &format!("../../{place}"),
            );
        }
        fake.add_device(DRIVE, "0x010802\n", 13, "nvme");
        fake
    }

    fn add_device(&self, address: &str, class: &str, group: u32, driver: &str) {
        let place = format!("devices/pci0000:00/{address}");
        self.put(&format!("/sys/{place}/driver_override"), "(null)\n");
        self.put(&format!("/sys/{place}/class"), class);
        self.put(&format!("/sys/bus/pci/drivers/{driver}/unbind"), "");
        self.link(
            &format!("/sys/bus/pci/devices/{address}"),
            &format!("../../../{place}"),
        );
        let groups = "kernel/iommu_groups";
        let member = format!("/sys/{groups}/{group}/devices/{address}");
        self.link(&member, &format!("../../../../{place}"));
        self.link(
            &format!("/sys/{place}/iommu_group"),
            &format!("../../../{groups}/{group}"),
        );
        self.bind(address, driver);
    }

    pub(crate) fn put(&self, file: &str, value: &str) {
        let path = self.root.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
    }

    pub(crate) fn link(&self, file: &str, target: &str) {
        let path = self.root.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub(crate) fn remove(&self, file: &str) {
        let path = self.root.path(file);
        if path.is_symlink() || path.is_file() {
            fs::remove_file(path).unwrap();
        } else {
            fs::remove_dir_all(path).unwrap();
        }
    }

    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.root.path(file)).unwrap()
    }

    pub(crate) fn driver(&self, card: &str) -> Option<String> {
        self.root
            .link_name(format!("/sys/bus/pci/devices/{card}/driver"))
    }

    /// Loads one module, unless it is loaded.
    pub(crate) fn load_alone(&self, module: &str) {
        let users = format!("/sys/module/{module}/refcnt");
        if !self.root.exists(&users) {
            self.put(&users, "0\n");
            self.count_users(module, |users| users + 1);
        }
    }

    /// Changes the number of users of each module that this one needs.
    fn count_users(&self, module: &str, change: fn(u32) -> u32) {
        let (_, needed) = MODULES.iter().find(|(name, _)| *name == module).unwrap();
        for name in *needed {
            let file = format!("/sys/module/{name}/refcnt");
            let users = change(self.text(&file).trim().parse().unwrap());
            self.put(&file, &format!("{users}\n"));
        }
    }

    fn bind(&self, device: &str, driver: &str) {
        let target = format!("../../../bus/pci/drivers/{driver}");
        self.link(&format!("/sys/devices/pci0000:00/{device}/driver"), &target);
    }

    /// Where the record is.
    pub(crate) fn record(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    pub(crate) fn prepare(&mut self, wanted: &Wanted) -> Result<Prepared, PrepareError> {
        let record = self.record();
        prepare(self, wanted, &record)
    }

    pub(crate) fn undo(&mut self) -> Result<Undone, UndoError> {
        let record = self.record();
        undo(self, &record)
    }

    /// Every file with its bytes, and every link with its target.
    pub(crate) fn tree(&self) -> Vec<String> {
        let mut tree = Vec::new();
        let root = self.root.path("/");
        walk(&root, &root, &mut tree);
        tree.sort();
        tree
    }

    /// What a write does beside changing the file.
    fn act(&mut self, file: &str, value: &str) -> io::Result<()> {
        let word = value.trim();
        if file == "/sys/bus/pci/drivers_probe" {
            return self.probe(word);
        }
        if let Some(device) = file.strip_suffix("/driver/unbind") {
            self.remove(&format!("{device}/driver"));
        } else if file.ends_with("/driver_override") {
            let name = if word.is_empty() { "(null)" } else { word };
            self.put(file, &format!("{name}\n"));
        } else if let Some(folder) = file.strip_suffix("/nr_hugepages") {
            self.set_pages(folder, word.parse().unwrap());
        } else {
            return Err(io::Error::other(format!(
                "{file} is not expected to be written"
            )));
        }
        Ok(())
    }

    /// Pages in use stay, as surplus pages. They count as pages of the pool again when it grows.
    fn set_pages(&self, folder: &str, wanted: u64) {
        let number = |file: &str| self.text(&format!("{folder}/{file}")).trim().parse::<u64>();
        let used = number("nr_hugepages").unwrap() - number("free_hugepages").unwrap();
        let all = wanted.min(MEMORY).max(used);
        let surplus = used.saturating_sub(wanted);
        for (file, value) in [("nr", all), ("free", all - used), ("surplus", surplus)] {
            self.put(&format!("{folder}/{file}_hugepages"), &format!("{value}\n"));
        }
    }

    /// The driver for which the device is reserved takes it, else that of its class.
    fn probe(&mut self, device: &str) -> io::Result<()> {
        let folder = format!("/sys/bus/pci/devices/{device}");
        let wanted = self.text(&format!("{folder}/driver_override"));
        let driver = match wanted.trim() {
            "(null)" => "ixgbe",
            name => name,
        };
        let is_loaded = self.root.exists(format!("/sys/bus/pci/drivers/{driver}"));
        if self.driver(device).is_none() && is_loaded {
            self.bind(device, driver);
        }
        Ok(())
    }

    /// Counts a change.
    fn count(&mut self) -> io::Result<()> {
        if self.killed.take_if(|at| *at == self.done).is_some() {
            resume_unwind(Box::new("killed"));
        }
        if self.refused.take_if(|at| *at == self.done).is_some() {
            return Err(io::Error::other("the kernel refuses"));
        }
        self.done += 1;
        Ok(())
    }

    /// Runs a call that is killed at the change with this number, counted from here.
    pub(crate) fn kill<T>(&mut self, at: usize, call: impl FnOnce(&mut Self) -> T) {
        self.killed = Some(self.done + at);
        let _killed = catch_unwind(AssertUnwindSafe(|| call(self)));
        self.killed = None;
    }
}

impl Machine for Fake {
    fn root(&self) -> &Root {
        &self.root
    }

    fn write(&mut self, file: &str, value: &str) -> io::Result<()> {
        self.count()?;
        assert!(self.root.exists(file), "{file} does not exist");
        self.act(file, value)
    }

    fn load(&mut self, module: &str) -> io::Result<()> {
        self.count()?;
        assert_eq!(module, "vfio-pci");
        if !self.has_module {
            return Err(io::Error::other("module vfio-pci not found"));
        }
        for (module, _) in MODULES {
            self.load_alone(module);
        }
        self.put("/sys/bus/pci/drivers/vfio-pci/unbind", "");
        Ok(())
    }

    fn unload(&mut self, module: &str) -> io::Result<()> {
        self.count()?;
        let users = self.text(&format!("/sys/module/{module}/refcnt"));
        assert_eq!(users, "0\n", "{module} is in use");
        self.remove(&format!("/sys/module/{module}"));
        self.count_users(module, |users| users - 1);
        if module == "vfio_pci" {
            self.remove("/sys/bus/pci/drivers/vfio-pci");
        }
        Ok(())
    }

    fn network(&self, interface: &str) -> io::Result<Vec<String>> {
        Ok(self.network.get(interface).cloned().unwrap_or_default())
    }
}

fn walk(root: &Path, folder: &Path, tree: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().display();
        if path.is_symlink() {
            tree.push(format!(
                "{name} -> {}",
                fs::read_link(&path).unwrap().display()
            ));
        } else if path.is_dir() {
            walk(root, &path, tree);
        } else {
            tree.push(format!("{name}: {:?}", fs::read_to_string(&path).unwrap()));
        }
    }
}

pub(crate) fn cards(addresses: &[&str]) -> Vec<PciAddress> {
    let parsed = addresses.iter().map(|address| address.parse().unwrap());
    parsed.collect()
}

/// Memory of both nodes, and all cards.
pub(crate) fn everything(fake: &Fake) -> Wanted {
    let node = |number| Node::numbered(fake.root(), number).unwrap();
    Wanted {
        pages: vec![(node(0), 32 * MIB), (node(1), 2 * MIB)],
        cards: cards(&[CARD, TWINS[0], TWINS[1]]),
    }
}
