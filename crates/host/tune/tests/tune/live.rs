//! The real host code on a tree of files, with a service manager and devices of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use saiga_process::root::Root;
use saiga_tune::apply::apply;
use saiga_tune::confirm::confirm;
use saiga_tune::goal::Goal;
use saiga_tune::host::{Ethtool, Host, LiveHost, Services};
use saiga_tune::plan::plan;
use saiga_tune::readings::Readings;
use saiga_tune::store::Directory;
use saiga_tune::target::{NicSetting, Target};
use saiga_tune::undo::{Conflicts, undo};

use crate::fake::{Fake, identity};
use crate::faults::options;
use crate::machines;

/// Units with a file below the root, and irqbalance.
#[derive(Debug)]
struct Units {
    folder: std::path::PathBuf,
    states: BTreeMap<String, (bool, String)>,
    reloads: usize,
}

impl Services for Units {
    fn active(&self, unit: &str) -> io::Result<Option<String>> {
        let word = |is_active: bool| if is_active { "active" } else { "inactive" }.to_owned();
        Ok(self.states.get(unit).map(|(is_active, _)| word(*is_active)))
    }

    fn enabled(&self, unit: &str) -> io::Result<Option<String>> {
        Ok(self.states.get(unit).map(|(_, state)| state.clone()))
    }

    fn set_active(&mut self, unit: &str, is_active: bool) -> io::Result<()> {
        self.states.get_mut(unit).unwrap().0 = is_active;
        Ok(())
    }

    fn set_enabled(&mut self, unit: &str, state: &str) -> io::Result<()> {
        state.clone_into(&mut self.states.get_mut(unit).unwrap().1);
        Ok(())
    }

    fn reload(&mut self) -> io::Result<()> {
        self.reloads += 1;
        let unit = "saiga-tune.service".to_owned();
        if self.folder.join(&unit).exists() {
            self.states
                .entry(unit)
                .or_insert((false, "disabled".to_owned()));
        } else {
            self.states.remove(&unit);
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Devices(BTreeMap<String, String>);

fn key(nic: &str, setting: &NicSetting) -> String {
    let (nic, setting) = (nic.to_owned(), setting.clone());
    Target::Nic { nic, setting }.to_string()
}

impl Ethtool for Devices {
    fn read(&self, nic: &str, setting: &NicSetting) -> io::Result<Option<String>> {
        Ok(self.0.get(&key(nic, setting)).cloned())
    }

    fn write(&mut self, nic: &str, setting: &NicSetting, value: &str) -> io::Result<()> {
        self.0.insert(key(nic, setting), value.to_owned());
        Ok(())
    }
}

/// The files below a directory, with their texts.
pub(crate) fn tree(dir: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                files.insert(path.display().to_string(), text);
            }
        }
    }
    files
}

/// A host whose files are those of the fake one, below `dir`.
fn host(dir: &Path, fake: &Fake) -> LiveHost<Units, Devices> {
    let root = Root::at(dir.join("root"));
    let mut devices = Devices::default();
    for (name, text) in &fake.values {
        if name.starts_with('/') {
            let path = root.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        } else if name.contains(" of enp3s0") {
            devices.0.insert(name.clone(), text.clone());
        }
    }
    let boot = root.path("/proc/sys/kernel/random/boot_id");
    fs::create_dir_all(boot.parent().unwrap()).unwrap();
    fs::write(boot, "1c1a\n").unwrap();
    let irqbalance = (
        "irqbalance.service".to_owned(),
        (true, "enabled".to_owned()),
    );
    let units = Units {
        folder: root.path("/etc/systemd/system"),
        states: [irqbalance].into(),
        reloads: 0,
    };
    LiveHost::with(root, units, devices)
}

#[test]
fn a_tree_is_tuned_like_a_host() {
    let (machine, dir) = (machines::kunpeng(32), tempfile::tempdir().unwrap());
    let mut host = host(dir.path(), &Fake::of(&machine));
    let before = tree(dir.path());
    assert_eq!(host.boot_id().unwrap(), "1c1a");
    // Values that a plain file takes as they are.
    let mut goal = Goal {
        named: [
            "vm.swappiness=1",
            "nic.rx_usecs=512",
            "nic.rps_cpus@enp3s0-0=3",
        ]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect(),
        is_persistent: true,
        ..Goal::default()
    };
    goal.placement.irqs = [(100, vec![28, 29])].into();
    let readings = Readings::read(&host, &machine, [].into()).unwrap();
    let plan = plan(&machine, &readings, &goal).unwrap();
    assert_eq!(plan.not_applicable, []);
    let mut store = Directory::lock(&dir.path().join("journals")).unwrap();
    let mut started = |_: &str| -> io::Result<()> { Ok(()) };
    let found = identity(&machine);
    let applied = apply(
        &plan,
        &found,
        &mut host,
        &mut store,
        options(Some(9)),
        &mut started,
    );
    let id = applied.unwrap().id;
    confirm(&id, &mut host, &mut store, 1001).unwrap();
    let changed = tree(dir.path());
    let text = |name: &str| &changed[&dir.path().join("root").join(name).display().to_string()];
    assert_eq!(text("proc/irq/100/smp_affinity_list"), "28-29\n");
    assert_eq!(text("proc/sys/vm/swappiness"), "1\n");
    crate::golden::check(
        "saiga-tune.service",
        text("etc/systemd/system/saiga-tune.service"),
    );
    let report = undo(&id, &mut host, &mut store, Conflicts::Report).unwrap();
    assert!(report.is_complete, "{report:#?}");
    let mut after = tree(dir.path());
    after.retain(|path, _| !path.contains("/journals/"));
    assert_eq!(after, before);
    let shown = host.read(&plan.steps[0].target).unwrap();
    assert_eq!(shown.as_deref(), Some("active"), "irqbalance runs again");
}
