//! `saiga streams check` after a plan: PostgreSQL on two namespaces of a drive that is a folder of
//! recorded pages.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::site::Labeller;
use crate::support::{Installation, Said, said, text};

/// A machine with one drive: the write-ahead log is on namespace 1, the data are on namespace 2.
struct Machine {
    saiga: Installation,
    root: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let saiga = Installation::bare();
        let root = saiga.path("machine");
        let machine = Self { saiga, root };
        machine.file("proc/sys/kernel/osrelease", b"6.12.9\n");
        machine.file("db/PG_VERSION", b"15\n");
        machine.file("mnt/wal/pg_wal/000000010000000000000001", b"x");
        symlink(machine.path("mnt/wal/pg_wal"), machine.path("db/pg_wal")).unwrap();
        let mount = |number: u8, place| {
            let point = machine.path(place);
            let point = point.canonicalize().unwrap();
            let disk = format!("/dev/nvme0n{number}");
            format!(
                "{number} 0 259:{number} / {} rw - xfs {disk} rw\n",
                point.display()
            )
        };
        let mounts = mount(1, "mnt/wal") + &mount(2, "db");
        machine.file("proc/self/mountinfo", mounts.as_bytes());
        for number in [1, 2] {
            machine.namespace(number);
            machine.written(number, 0, 0);
            machine.handle(number, u16::from(number) - 1, 1000);
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Replaces a file atomically.
    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = self.path("new");
        fs::write(&new, bytes).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// A namespace in sysfs, and the log pages that QEMU's drive has for one.
    fn namespace(&self, number: u8) {
        let disk = format!("nvme0n{number}");
        let folder = self.path(&format!("sys/devices/pci/nvme/nvme0/{disk}"));
        fs::create_dir_all(folder.join("queue")).unwrap();
        fs::write(folder.join("nsid"), format!("{number}\n")).unwrap();
        fs::write(folder.join("queue/logical_block_size"), "4096\n").unwrap();
        let names = [
            format!("dev/block/259:{number}"),
            format!("class/block/{disk}"),
        ];
        for name in names {
            let link = self.path("sys").join(name);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&folder, link).unwrap();
        }
        for (page, name) in [
            ("identify-controller", "identify-controller".to_owned()),
            (
                "identify-namespace-2",
                format!("identify-namespace-{number}"),
            ),
            ("feature-1d-group-1", "feature-1d-group-1".to_owned()),
            ("log-20-group-1", "log-20-group-1".to_owned()),
            ("log-21-group-1", "log-21-group-1".to_owned()),
        ] {
            self.file(&format!("dev/{disk}/{name}.bin"), &recorded(page));
        }
    }

    /// Gives a namespace this handle, with `left` blocks left in its unit.
    fn handle(&self, number: u8, handle: u16, left: u64) {
        let mut page = recorded("handles-namespace-2");
        page[18..20].copy_from_slice(&handle.to_le_bytes());
        page[24..32].copy_from_slice(&left.to_le_bytes());
        self.page(number, &page);
    }

    fn page(&self, number: u8, bytes: &[u8]) {
        let name = format!("dev/nvme0n{number}/handles-namespace-{number}.bin");
        self.file(&name, bytes);
    }

    /// Sets the kernel's count of sectors written to a namespace, and of requests in flight.
    fn written(&self, number: u8, sectors: u64, in_flight: u32) {
        let name = format!("sys/devices/pci/nvme/nvme0/nvme0n{number}/stat");
        let text = format!("9 9 9 9 9 9 {sectors} 9 {in_flight} 9 9\n");
        self.file(&name, text.as_bytes());
    }

    fn check(&self, more: &[&str]) -> Command {
        let (data, system) = (self.path("db"), &self.root);
        let words = ["streams", "check", text(&data), "--rules", "postgres"];
        let system = ["--system", text(system)];
        self.saiga.saiga(&[&words, &system[..], more].concat())
    }

    fn says(&self, more: &[&str]) -> Said {
        said(&mut self.check(more))
    }

    /// Follows the writes that `change` makes; returns the exit status and the measured bytes.
    fn follows(&self, change: impl Fn(&Self)) -> (Option<i32>, Value) {
        let mut command = self.check(&["--for", "1h", "--json"]);
        let mut check = Labeller::warning(command.stdout(Stdio::piped()));
        check.wait_for("following 2 reclaim unit handles for 60 min");
        change(self);
        let code = check.end();
        let mut said = String::new();
        let mut stdout = check.child.stdout.take().unwrap();
        stdout.read_to_string(&mut said).unwrap();
        let mut answer: Value = serde_json::from_str(&said).unwrap();
        (code, answer["handles"].take())
    }
}

fn recorded(page: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../storage/waf/recordings/qemu-fdp");
    fs::read(folder.join(page).with_extension("bin")).unwrap()
}

#[test]
fn parts_with_separate_handles_need_no_hints() {
    let machine = Machine::new();
    let out = machine.says(&[]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let first = out.stdout.lines().next().unwrap();
    assert!(
        first.starts_with("the parts of the server go to FDP namespaces of their own on ")
            && first.ends_with("each of 2 parts has a reclaim unit handle of its own"),
        "{first}"
    );
    let rows = out.stdout.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.join(" ")
    });
    let rows: Vec<String> = rows.collect();
    let wal = format!("wal {} nvme0n1 1 0", machine.path("mnt/wal").display());
    let data = format!("data {} nvme0n2 2 1", machine.path("db").display());
    assert!(rows.contains(&wal) && rows.contains(&data), "{rows:#?}");
    assert!(
        out.stdout
            .ends_with("hints are not needed here and are not checked\n"),
        "{out:?}"
    );
    // The directory of the log contains a part of that server.
    let out = machine.says(&[text(&machine.path("mnt/wal"))]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let expected = format!(": it holds wal of {}\n", machine.path("db").display());
    assert!(out.stdout.contains(&expected), "{out:?}");
    let out = machine.says(&["--plan"]);
    assert_eq!(out.code, Some(2));
    assert!(
        out.stderr
            .contains("it is already carried out: each of 2 parts has"),
        "{out:?}"
    );
}

#[test]
fn a_handle_shared_by_two_parts_is_named() {
    let machine = Machine::new();
    machine.handle(2, 0, 1000);
    let out = machine.says(&["--json"]);
    assert_eq!(out.code, Some(1), "{out:?}");
    let answer: Value = serde_json::from_str(&out.stdout).unwrap();
    let directory = &answer["directories"][0];
    assert_eq!(directory["route"]["route"], "FDP namespaces");
    assert_eq!(directory["route"]["reaches"], "no");
    assert_eq!(
        directory["route"]["why"],
        "wal (nvme0n1) and data (nvme0n2) share reclaim unit handle 0 of nvme0, endurance group 1"
    );
    let data = &directory["parts"][1];
    assert_eq!(data["name"], "data");
    assert_eq!(data["places"][0]["namespace"], 2);
    assert_eq!(data["places"][0]["handle"], 0);
}

/// No file needs a hint, but the check fails.
#[test]
fn unknown_handles_fail_the_check() {
    let machine = Machine::new();
    let rules = machine.path("none.toml");
    let rule = "[[rule]]\npath = \"nothing\"\nhint = \"long\"\nwhy = \"w\"\n";
    fs::write(&rules, rule).unwrap();
    let check = |more: &[&str]| {
        let mut command = machine.saiga.saiga(&["streams", "check"]);
        command.arg(machine.path("db")).arg("--rules").arg(&rules);
        command.arg("--system").arg(&machine.root).args(more);
        said(&mut command)
    };
    assert_eq!(check(&[]).code, Some(0));
    machine.page(1, &[0xff; 4096]);
    let out = check(&[]);
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(
        out.stdout
            .starts_with("the parts of the server may go to FDP namespaces")
            && out
                .stdout
                .contains(": nvme0n1: the list of handles of namespace 1 contains only FFh\n"),
        "{out:?}"
    );
    assert_eq!(check(&["--any-route"]).code, Some(0));
    fs::remove_file(machine.path("dev/nvme0n1/feature-1d-group-1.bin")).unwrap();
    let out = check(&[]);
    assert!(
        out.stdout.contains(
            "wal has no handle of its own on nvme0n1: the recording has no feature-1d-group-1.bin"
        ),
        "{out:?}"
    );
    fs::remove_dir_all(machine.path("dev")).unwrap();
    let out = check(&[]);
    assert_eq!(out.code, Some(1));
    assert!(out.stdout.contains("there is no "), "{out:?}");
}

#[test]
fn bytes_of_a_part_are_counted_at_its_own_handle() {
    let machine = Machine::new();
    let (code, seen) = machine.follows(|machine| {
        machine.written(2, 80, 0);
        machine.handle(2, 1, 990);
    });
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(seen["is_well"], true);
    let data = &seen["parts"][1];
    assert_eq!(data["part"], "data");
    assert_eq!(data["written_bytes"], 40960);
    assert_eq!(data["handle_bytes"], 40960);
    assert_eq!(data["left_bytes_before"], 4_096_000);
    assert_eq!(data["left_bytes_after"], 4_055_040);
    let wal = &seen["parts"][0];
    assert_eq!(
        (&wal["written_bytes"], &wal["handle_bytes"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn bytes_at_the_wrong_handle_are_a_failure() {
    let machine = Machine::new();
    let wrong = |change: &dyn Fn(&Machine)| {
        machine.written(1, 0, 0);
        machine.handle(1, 0, 1000);
        let (code, seen) = machine.follows(change);
        (code, seen["parts"][0]["is_well"].as_bool().unwrap())
    };
    let elsewhere = wrong(&|machine| machine.written(1, 8, 0));
    assert_eq!(elsewhere, (Some(1), false));
    let foreign = wrong(&|machine| machine.handle(1, 0, 999));
    assert_eq!(foreign, (Some(1), false));
    // The drive has counted a write that the kernel has not completed.
    machine.written(2, 0, 0);
    machine.handle(2, 1, 1000);
    let on_its_way = wrong(&|machine| {
        machine.written(1, 0, 1);
        machine.handle(1, 0, 999);
        machine.written(2, 80, 0);
        machine.handle(2, 1, 990);
    });
    assert_eq!(on_its_way, (Some(0), true));
}

#[test]
fn handles_are_unproven_if_nothing_is_written() {
    let machine = Machine::new();
    machine.written(1, 8, 0);
    let out = machine.says(&["--for", "1ms"]);
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stdout.contains("through handle"), "{out:?}");
    let expected = "nothing was written, so handles are unproven";
    assert!(out.stdout.contains(expected), "{out:?}");
}
