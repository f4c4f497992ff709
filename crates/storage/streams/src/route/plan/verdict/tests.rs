//! Layouts and verdicts on simulated hosts: the places of a server's parts, and the verdict for
//! each answer of the drive.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;
use crate::route::{System, layout};

/// A simulated host whose file systems are directories, each on a namespace of its own.
struct Machine {
    root: tempfile::TempDir,
    mounts: Vec<String>,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            root: tempfile::tempdir().unwrap(),
            mounts: vec!["1 0 8:1 / / rw - ext4 /dev/sda1 rw\n".to_owned()],
        };
        machine.disk("pci/ata/sda", "8:1");
        machine.file("sys/devices/pci/nvme/nvme0/cntlid", "1\n");
        machine
    }

    /// Creates the host after a plan for MySQL, with file systems of the type `kind`.
    fn mysql(kind: &str) -> Self {
        let mut machine = Self::new();
        let files = [
            ("mnt/doublewrite", "#ib_16384_0.dblwr"),
            ("mnt/redo", "#innodb_redo/#ib_redo7"),
            ("mnt/undo", "undo_001"),
            ("mnt/temporary", ""),
            ("mnt/log", "prod.000001"),
            ("db", "mysql.ibd"),
        ];
        for (at, (place, file)) in files.into_iter().enumerate() {
            machine.mount(place, kind, at + 1);
            if !file.is_empty() {
                machine.file(&format!("{place}/{file}"), "x");
            }
        }
        machine.file("mnt/log/prod.index", "");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn disk(&self, device: &str, number: &str) {
        let folder = self.path(&format!("sys/devices/{device}"));
        fs::create_dir_all(&folder).unwrap();
        for link in ["dev/block", "class/block"] {
            let link = self.path(&format!("sys/{link}"));
            fs::create_dir_all(&link).unwrap();
            let name = if link.ends_with("dev/block") {
                number
            } else {
                device.rsplit_once('/').unwrap().1
            };
            let _ = symlink(&folder, link.join(name));
        }
    }

    fn mount(&mut self, place: &str, kind: &str, namespace: usize) {
        let device = format!("pci/nvme/nvme0/nvme0n{namespace}");
        self.disk(&device, &format!("259:{namespace}"));
        self.file(
            &format!("sys/devices/{device}/nsid"),
            &format!("{namespace}\n"),
        );
        let point = self.path(place);
        fs::create_dir_all(&point).unwrap();
        let number = self.mounts.len() + 1;
        self.mounts.push(format!(
            "{number} 1 259:{namespace} / {} rw - {kind} /dev/nvme0n{namespace} rw\n",
            point.display()
        ));
    }

    fn layout_with(&self, others: &[PathBuf]) -> Option<Layout> {
        self.file("proc/self/mountinfo", &self.mounts.concat());
        layout(&System::at(self.path("")), &self.path("db"), others).unwrap()
    }

    fn layout(&self) -> Layout {
        self.layout_with(&[]).unwrap()
    }
}

/// Formats each part and its disks.
fn places(layout: &Layout) -> String {
    let parts = layout.parts.iter().map(|part| {
        let disks = part.places.iter().map(|place| place.disk.clone());
        let disks: Vec<String> = disks.map(Option::unwrap_or_default).collect();
        format!("{} {}", part.name, disks.join("+"))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn handle(number: u16) -> Answer {
    Answer::Handles {
        group: 1,
        default: number,
        is_specified: true,
        all: vec![number, 7],
    }
}

/// Answers with a separate handle for each namespace.
fn own(layout: &Layout) -> Answers {
    let answers = layout.namespaces.iter().zip(0..);
    answers
        .map(|(namespace, number)| (namespace.disk.clone(), handle(number)))
        .collect()
}

fn answered(disk: &str, answer: Answer) -> (Reach, String) {
    let layout = Machine::mysql("xfs").layout();
    let mut answers = own(&layout);
    answers.insert(disk.to_owned(), answer);
    layout.verdict(&answers)
}

#[test]
fn the_parts_of_mysql_are_found_and_have_own_handles() {
    let layout = Machine::mysql("xfs").layout();
    assert_eq!(
        places(&layout),
        "doublewrite nvme0n1, redo nvme0n2, undo nvme0n3, temporary nvme0n4, log nvme0n5, data nvme0n6"
    );
    let namespaces = layout.namespaces.iter();
    let namespaces: Vec<(&str, u32, &str)> = namespaces
        .map(|it| (it.disk.as_str(), it.id, it.drive.as_str()))
        .collect();
    assert_eq!(namespaces[1], ("nvme0n2", 2, "nvme0"));
    let (reach, why) = layout.verdict(&own(&layout));
    assert_eq!(reach, Reach::Yes, "{why}");
    assert_eq!(why, "each of 6 parts has a reclaim unit handle of its own");
}

#[test]
fn parts_without_an_own_handle_are_named() {
    for (disk, answer, reach, expected) in [
        (
            "nvme0n2",
            handle(0),
            Reach::No,
            "doublewrite (nvme0n1) and redo (nvme0n2) share reclaim unit handle 0 of nvme0, endurance group 1",
        ),
        (
            "nvme0n6",
            Answer::None("FDP is off".to_owned()),
            Reach::No,
            "data has no handle of its own on nvme0n6: FDP is off",
        ),
        (
            "nvme0n3",
            Answer::Handles {
                group: 1,
                default: 2,
                is_specified: false,
                all: vec![2],
            },
            Reach::No,
            "undo has no handle of its own on nvme0n3: it was created without a list of handles, and all such namespaces \
             share one",
        ),
        (
            "nvme0n4",
            Answer::Unknown("no right".to_owned()),
            Reach::Unproven,
            "no right",
        ),
        // The same number in another group is another handle.
        (
            "nvme0n2",
            Answer::Handles {
                group: 2,
                default: 0,
                is_specified: true,
                all: vec![0],
            },
            Reach::Yes,
            "each of 6 parts has a reclaim unit handle of its own",
        ),
    ] {
        let verdict = answered(disk, answer);
        assert_eq!(verdict, (reach, expected.to_owned()), "{disk}");
    }
}

#[test]
fn a_missing_answer_is_unproven() {
    let layout = Machine::mysql("xfs").layout();
    let mut answers = own(&layout);
    answers.remove("nvme0n5");
    let (reach, why) = layout.verdict(&answers);
    assert_eq!(reach, Reach::Unproven);
    assert!(
        why.contains("does not have the ID of namespace nvme0n5"),
        "{why}"
    );
    // A shared handle is still a no.
    answers.insert("nvme0n2".to_owned(), handle(0));
    assert_eq!(layout.verdict(&answers).0, Reach::No);
}

/// Only F2FS chooses among the handles of a namespace by hints.
#[test]
fn a_file_system_that_places_by_hints_writes_through_all_handles() {
    let layout = Machine::mysql("f2fs").layout();
    let (reach, why) = layout.verdict(&own(&layout));
    assert_eq!(reach, Reach::No);
    let expected = "doublewrite (nvme0n1) and redo (nvme0n2) and undo (nvme0n3) and temporary (nvme0n4) and log (nvme0n5) and \
                    data (nvme0n6) share reclaim unit handle 7";
    assert!(why.starts_with(expected), "{why}");
}

#[test]
fn a_namespace_without_a_part_that_shares_a_handle_is_named() {
    let mut machine = Machine::mysql("xfs");
    machine.mount("elsewhere", "ext4", 9);
    let layout = machine.layout();
    let mut answers = own(&layout);
    assert_eq!(layout.verdict(&answers).0, Reach::Yes);
    answers.insert("nvme0n9".to_owned(), handle(4));
    let (reach, why) = layout.verdict(&answers);
    assert_eq!(reach, Reach::No);
    assert!(
        why.starts_with("log (nvme0n5) and nvme0n9, which holds no part, share"),
        "{why}"
    );
    // Without data placement, it has no handle.
    answers.insert("nvme0n9".to_owned(), Answer::None(String::new()));
    assert_eq!(layout.verdict(&answers).0, Reach::Yes);
    answers.insert("nvme0n9".to_owned(), Answer::Unknown(String::new()));
    assert_eq!(layout.verdict(&answers).0, Reach::Unproven);
}

/// The server was started without the settings of the plan.
#[test]
fn files_that_returned_to_the_data_directory_are_found_there() {
    let machine = Machine::mysql("xfs");
    machine.file("db/#innodb_redo/#ib_redo8", "x");
    let layout = machine.layout();
    assert!(places(&layout).contains("redo nvme0n6+nvme0n2,"));
    let (reach, why) = layout.verdict(&own(&layout));
    assert_eq!(
        (reach, why.as_str()),
        (Reach::No, "redo and data are on nvme0n6")
    );
    let machine = Machine::mysql("xfs");
    fs::create_dir(machine.path("db/#innodb_temp")).unwrap();
    assert_eq!(machine.layout().verdict(&own(&layout)).0, Reach::Yes);
    machine.file("db/#innodb_temp/temp_1.ibt", "x");
    let (_, why) = machine.layout().verdict(&own(&layout));
    assert_eq!(why, "temporary and data are on nvme0n6");
}

#[test]
fn a_part_without_files_or_namespace_has_no_own_handle() {
    let mut machine = Machine::mysql("xfs");
    let point = machine.path("mnt/doublewrite").display().to_string();
    machine.mounts.retain(|line| !line.contains(&point));
    let layout = machine.layout();
    let (reach, why) = layout.verdict(&own(&layout));
    assert_eq!(reach, Reach::No);
    let expected =
        "doublewrite has no handle of its own on sda: it is not a namespace of an NVMe drive";
    assert_eq!(why, expected);

    let mount = machine.mounts.len();
    machine.mount("mnt/doublewrite", "btrfs", 1);
    let (_, why) = machine.layout().verdict(&own(&layout));
    let expected =
        "doublewrite has no handle of its own on btrfs: it is not a namespace of an NVMe drive";
    assert_eq!(why, expected);

    machine.mounts.truncate(mount);
    fs::remove_dir_all(machine.path("mnt/doublewrite")).unwrap();
    let layout = machine.layout();
    let (reach, why) = layout.verdict(&own(&layout));
    assert_eq!(reach, Reach::Unproven);
    let expected = "no files of doublewrite were found; add their directory to the command line";
    assert_eq!(why, expected);
    machine.file("mnt/doublewrite", "not a directory");
    let (_, why) = machine.layout().verdict(&own(&layout));
    assert!(
        why.contains("and cannot read /") && why.contains("/mnt/doublewrite: Not a directory"),
        "{why}"
    );

    machine.mount("fast", "xfs", 1);
    machine.file("fast/#ib_16384_1.dblwr", "x");
    let layout = machine.layout_with(&[machine.path("fast")]).unwrap();
    assert_eq!(layout.verdict(&own(&layout)).0, Reach::Yes);
}

#[test]
fn files_of_another_server_are_not_parts_of_this_server() {
    let machine = Machine::mysql("xfs");
    machine.file("second/mysql.ibd", "x");
    machine.file("second/#ib_16384_0.dblwr", "x");
    let second = machine.path("second");
    let layout = machine.layout_with(&[second, machine.path("db")]).unwrap();
    assert_eq!(layout, machine.layout());
}

#[test]
fn the_write_ahead_log_of_postgres_is_found_by_its_link() {
    let mut machine = Machine::new();
    machine.mount("mnt/wal", "xfs", 1);
    machine.mount("db", "ext4", 2);
    machine.file("db/PG_VERSION", "15\n");
    machine.file("mnt/wal/pg_wal/000000010000000000000001", "x");
    symlink(machine.path("mnt/wal/pg_wal"), machine.path("db/pg_wal")).unwrap();
    let layout = machine.layout();
    assert_eq!(places(&layout), "wal nvme0n1, data nvme0n2");
    assert_eq!(layout.verdict(&own(&layout)).0, Reach::Yes);
}

#[test]
fn a_server_on_one_disk_or_without_nvme_has_no_layout() {
    let mut machine = Machine::new();
    machine.mount("db", "xfs", 1);
    assert_eq!(machine.layout_with(&[]), None);
    machine.file("db/mysql.ibd", "x");
    machine.file("db/#innodb_redo/#ib_redo7", "x");
    assert_eq!(machine.layout_with(&[]), None);
    let machine = Machine::new();
    machine.file("db/mysql.ibd", "x");
    assert_eq!(machine.layout_with(&[]), None);
}
