//! A process that is killed while it applies or undoes, on a tree of files with a real journal.
//!
//! The test binary runs itself; the child stops at an operation and waits to be killed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use saiga_process::root::Root;
use saiga_topology::machine::Machine;
use saiga_tune::apply::apply;
use saiga_tune::confirm::confirm;
use saiga_tune::goal::Goal;
use saiga_tune::host::{Host, LiveHost};
use saiga_tune::plan::{Plan, plan};
use saiga_tune::readings::Readings;
use saiga_tune::store::{Directory, Store};
use saiga_tune::target::Target;
use saiga_tune::undo::{Conflicts, undo};

use crate::fake::identity;
use crate::faults::options;
use crate::machines;

const DIR: &str = "SAIGA_TUNE_KILLED_DIR";
const AT: &str = "SAIGA_TUNE_KILLED_AT";

/// Blocks before one of the writes to host and journal, until the process is killed.
#[derive(Debug)]
struct Stopping<T> {
    inner: T,
    writes: std::rc::Rc<Cell<usize>>,
    at: usize,
}

impl<T> Stopping<T> {
    fn stop(&self) {
        let number = self.writes.get();
        self.writes.set(number + 1);
        if number == self.at {
            println!("stopped");
            io::stdout().flush().unwrap();
            // The parent never writes; it kills.
            let _ = io::stdin().read(&mut [0]);
        }
    }
}

impl<T: Host> Host for Stopping<T> {
    fn read(&self, target: &Target) -> io::Result<Option<String>> {
        self.inner.read(target)
    }

    fn write(&mut self, target: &Target, text: Option<&str>) -> io::Result<()> {
        self.stop();
        self.inner.write(target, text)
    }

    fn fact(&self, path: &str) -> io::Result<Option<String>> {
        self.inner.fact(path)
    }

    fn names(&self, dir: &str) -> io::Result<Vec<String>> {
        self.inner.names(dir)
    }

    fn boot_id(&self) -> io::Result<String> {
        self.inner.boot_id()
    }

    fn uptime(&self) -> Duration {
        self.inner.uptime()
    }
}

impl<T: Store> Store for Stopping<T> {
    fn ids(&self) -> io::Result<Vec<String>> {
        self.inner.ids()
    }

    fn read(&self, id: &str) -> io::Result<String> {
        self.inner.read(id)
    }

    fn create(&mut self, id: &str, bytes: u64) -> io::Result<()> {
        self.stop();
        self.inner.create(id, bytes)
    }

    fn append(&mut self, id: &str, line: &str) -> io::Result<()> {
        self.stop();
        self.inner.append(id, line)
    }
}

fn host(dir: &Path) -> LiveHost {
    LiveHost::new(Root::at(dir.join("root")))
}

fn machine() -> Machine {
    machines::kunpeng(4)
}

fn new_plan(dir: &Path) -> Plan {
    let goal = Goal {
        named: ["vm.swappiness=1", "kernel.numa_balancing=0"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect(),
        is_persistent: true,
        ..Goal::default()
    };
    let readings = Readings::read(&host(dir), &machine(), [].into()).unwrap();
    plan(&machine(), &readings, &goal).unwrap()
}

/// Files below the root, with their texts.
fn files(dir: &Path) -> BTreeMap<String, String> {
    crate::live::tree(&dir.join("root"))
}

/// What the child does: it applies and undoes, and stops at an operation.
#[test]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let (dir, at) = (Path::new(&dir), std::env::var(AT).unwrap().parse().unwrap());
    let plan = new_plan(dir);
    let writes = std::rc::Rc::new(Cell::new(0));
    let inner = Directory::lock(&dir.join("journals")).unwrap();
    let mut store = Stopping {
        inner,
        writes: writes.clone(),
        at,
    };
    let mut host = Stopping {
        inner: host(dir),
        writes,
        at,
    };
    let mut started = |_: &str| -> io::Result<()> { Ok(()) };
    let found = identity(&machine());
    let applied = apply(
        &plan,
        &found,
        &mut host,
        &mut store,
        options(None),
        &mut started,
    );
    let id = applied.unwrap().id;
    assert!(
        confirm(&id, &mut host, &mut store, 0).is_err(),
        "nothing to confirm"
    );
    undo(&id, &mut host, &mut store, Conflicts::Report).unwrap();
    println!("finished");
}

#[test]
fn undo_finishes_after_a_kill_before_any_write() {
    for at in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path().join("root"));
        for (name, text) in [
            ("/proc/sys/vm/swappiness", "60\n"),
            ("/proc/sys/kernel/numa_balancing", "1\n"),
            ("/proc/sys/kernel/random/boot_id", "1c1a\n"),
        ] {
            let path = root.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let before = files(dir.path());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::child", "--nocapture"])
            .env(DIR, dir.path())
            .env(AT, at.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = String::new();
        let mut stdout = child.stdout.take().unwrap();
        let mut byte = [0];
        while !output.ends_with("stopped\n") && stdout.read(&mut byte).unwrap() == 1 {
            output.push(char::from(byte[0]));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut store = Directory::lock(&dir.path().join("journals")).unwrap();
        for id in store.ids().unwrap() {
            let report = undo(&id, &mut host(dir.path()), &mut store, Conflicts::Report).unwrap();
            assert!(report.is_complete, "{at}: {report:#?}");
        }
        assert_eq!(files(dir.path()), before, "{at}");
        if output.contains("finished") {
            assert!(at > 15, "{at} writes");
            break;
        }
    }
}
