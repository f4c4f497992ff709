//! Plans for drives that are made of files: what they say for each server, and when there is none.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;

const DIR: &str = "/srv/db";

/// A machine with one NVMe drive of so many GiB, whose namespace is mounted at `/srv`.
struct Machine {
    root: tempfile::TempDir,
    mount: Mount,
}

impl Machine {
    fn new(gib: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let mount = Mount {
            point: "/srv".into(),
            kind: "ext4".to_owned(),
            source: "/dev/nvme0n1".to_owned(),
            device: (259, 1),
            options: Vec::new(),
        };
        let machine = Self { root, mount };
        // The disk has the number of its subsystem, and the controller another one.
        let disk = "sys/devices/pci/nvme1/nvme0n1";
        machine.file("sys/devices/pci/nvme1/cntlid", "65\n");
        machine.file(&format!("{disk}/size"), &format!("{}\n", gib * (GIB / 512)));
        machine.file(&format!("{disk}/queue/logical_block_size"), "512\n");
        for name in ["sys/class/block/nvme0n1", "sys/dev/block/259:1"] {
            let link = machine.root.path().join(name);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(machine.root.path().join(disk), link).unwrap();
        }
        machine.mounts(&["/srv"]);
        machine
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn mounts(&self, points: &[&str]) {
        let line = |point: &&str| format!("1 0 259:1 / {point} rw - ext4 /dev/nvme0n1 rw\n");
        let text: String = points.iter().map(line).collect();
        self.file("proc/self/mountinfo", &text);
    }

    /// The plan for a database with these files and their GiB.
    fn plan(&self, files: &[(&str, u64)]) -> Result<String, String> {
        let dir = Path::new(DIR);
        let files = files.iter().map(|(file, gib)| (dir.join(file), gib * GIB));
        let data = Data {
            dir,
            mount: &self.mount,
            disk: "nvme0n1",
            files: files.collect(),
        };
        plan(&System::at(self.root.path()), &data).map_err(|error| error.to_string())
    }
}

const MYSQL: &[(&str, u64)] = &[
    ("mysql.ibd", 1),
    ("#ib_16384_0.dblwr", 3),
    ("#innodb_redo/#ib_redo7", 2),
    ("undo_001", 1),
    ("prod.000001", 4),
    ("prod.index", 0),
    ("host-relay-bin.000002", 0),
    ("host-relay-bin.index", 0),
    ("shop/orders.ibd", 200),
];

const MARIADB: &[(&str, u64)] = &[
    ("aria_log_control", 0),
    ("ibdata1", 1),
    ("ib_logfile0", 1),
    ("shop/orders.ibd", 20),
];

const POSTGRES: &[(&str, u64)] = &[
    ("PG_VERSION", 0),
    ("pg_wal/000000010000000000000001", 8),
    ("base/5/16384", 100),
];

/// These are all there, each behind the one before; a line's end may be the next one's beginning.
fn assert_order(plan: &str, parts: &[&str]) {
    let mut rest = plan;
    for part in parts {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("no {part:?} there in {plan}"));
        rest = &rest[at + part.trim_end_matches('\n').len()..];
    }
}

#[test]
fn the_plan_for_mysql_saves_deletes_moves_and_leads_back() {
    let plan = Machine::new(1000).plan(MYSQL).unwrap();
    assert_order(
        &plan,
        &[
            "# STEP 4 DELETES EVERYTHING ON /dev/nvme1, that is all of /srv on nvme0n1;",
            "\nSERVICE=mysql\n",
            "\nsystemctl stop \"$SERVICE\"\n",
            "\ncp -a /srv/db/. \"$BACKUP\"/\n",
            "\ndiff -r --no-dereference /srv/db \"$BACKUP\"\n",
            "\n# 4. FROM HERE ON THE DATA ARE IN THE BACKUP ONLY.",
            "\numount /srv\nnvme delete-ns /dev/nvme1 --namespace-id=0xffffffff\n",
            "# doublewrite: 6 GiB\n\
             nvme create-ns /dev/nvme1 --nsze=1572864 --ncap=1572864 --block-size=4096 --endg-id=1 --nphndls=1 --phndls=0\n\
             nvme attach-ns /dev/nvme1 --namespace-id=1 --controllers=65\n",
            "# redo: 4 GiB\n",
            "# undo: 31 GiB\n",
            "# temporary: 31 GiB\n",
            "# log: 31 GiB\n",
            "# data: 897 GiB\n",
            "--phndls=5\n",
            "/sys/class/block/nvme0n*",
            "\nmkfs.xfs -L doublewrite \"$(disk 1)\"\n",
            "\nmkfs.xfs -L data \"$(disk 6)\"\nmkdir -p /srv/db\n",
            "\nfind \"$BACKUP\" -mindepth 1 -maxdepth 1 \\( -name '#ib_*.dblwr' -o -name '#ib_*.bdblwr' \\) -exec cp -a -t /mnt/doublewrite {} +\n",
            "\\( -name '#innodb_redo' -o -name 'ib_logfile*' \\) -exec cp -a -t /mnt/redo {} +\n",
            "\\( -name 'prod.[0-9]*' -o -name 'prod.index' -o -name 'prod.state' \\) -exec cp -a -t /mnt/log {} +\n",
            "! -name 'prod.index' ! -name 'prod.state' -exec cp -a -t /srv/db {} +\n",
            "\nsed -i 's|^\\./|/mnt/log/|' /mnt/log/prod.index\n",
            "\n# innodb_doublewrite_dir = /mnt/doublewrite\n",
            "# innodb_log_group_home_dir = /mnt/redo\n",
            "# innodb_undo_directory = /mnt/undo\n",
            "# log_bin = /mnt/log/prod\n",
            "\nsystemctl start \"$SERVICE\"\n",
            "\nnvme fdp status \"$(disk 1)\" --human-readable  # doublewrite\n",
            "\n# The way back",
            "\nsystemctl stop \"$SERVICE\"\n",
            "\ncp -a /srv/db/. \"$BACK\"/\n",
            "\ncp -a /mnt/doublewrite/. \"$BACK\"/\n",
            "\nsed -i 's|^/mnt/log/|./|' \"$BACK\"/prod.index\n",
            "\nnvme delete-ns /dev/nvme1 --namespace-id=0xffffffff\n\
             nvme fdp feature /dev/nvme1 --endgrp-id=1 --disable\n\
             nvme create-ns /dev/nvme1 --nsze=2097152000 --ncap=2097152000 --block-size=512\n",
            "\nmkfs.ext4 \"$(disk 1)\"\n",
            "\ncp -a \"$BACK\"/. /srv/db/\n",
        ],
    );
    assert!(!plan.contains("/dev/nvme0 "), "{plan}");
    // No backup is on the drive that is erased, whatever is mounted there.
    assert!(
        !plan.contains("BACKUP=/srv") && !plan.contains("BACK=/srv"),
        "{plan}"
    );
}

#[test]
fn mariadb_has_its_doublewrite_area_in_its_system_tablespace() {
    let plan = Machine::new(100).plan(MARIADB).unwrap();
    assert_order(
        &plan,
        &[
            "\nSERVICE=mariadb\n",
            "\\( -name 'ibdata*' \\) -exec cp -a -t /mnt/doublewrite {} +\n",
            "\n# innodb_data_home_dir = /mnt/doublewrite\n",
            "# innodb_temp_data_file_path = ../temporary/ibtmp1:12M:autoextend\n",
        ],
    );
    // It has neither of them, and would begin to write a binary log.
    for other in [
        "log_bin = ",
        "innodb_undo_directory = ",
        "innodb_doublewrite_dir",
    ] {
        assert!(!plan.contains(other), "{other}: {plan}");
    }
}

#[test]
fn postgres_finds_its_log_by_a_link() {
    let plan = Machine::new(1000).plan(POSTGRES).unwrap();
    assert_order(
        &plan,
        &[
            "# wal: 31 GiB\n",
            "# data: 969 GiB\n",
            "\\( -name 'pg_wal' \\) -exec cp -a -t /mnt/wal {} +\n",
            "\nln -s /mnt/wal/pg_wal /srv/db/pg_wal\n",
            "\nrm \"$BACK\"/pg_wal  # the link\ncp -a /mnt/wal/. \"$BACK\"/\n",
        ],
    );
    assert!(!plan.contains("[mysqld]"), "{plan}");
}

/// Commands, comments and quotes: nothing is left open.
#[test]
fn a_shell_reads_every_plan() {
    for files in [MYSQL, MARIADB, POSTGRES] {
        let plan = Machine::new(1000).plan(files).unwrap();
        let mut shell = Command::new("sh")
            .arg("-n")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = shell.stdin.take().unwrap();
        input.write_all(plan.as_bytes()).unwrap();
        drop(input);
        assert!(shell.wait().unwrap().success(), "{plan}");
    }
}

/// `mkfs.xfs -L` takes 12 characters; the rules have the same names.
#[test]
fn parts_have_names_of_streams_that_are_labels() {
    for (set, files) in [
        ("mysql", MYSQL),
        ("mariadb", MARIADB),
        ("postgres", POSTGRES),
    ] {
        let rules = crate::rules::builtin::find(set).unwrap().rules;
        let files: Vec<_> = files
            .iter()
            .map(|(file, _)| (PathBuf::from(file), 1))
            .collect();
        let parts = Engine::of(&files).unwrap().parts(&files);
        for part in parts {
            let mut streams = rules.iter().filter_map(|rule| rule.stream.as_deref());
            assert!(
                streams.any(|stream| stream == part.name),
                "{set} {}",
                part.name
            );
            assert!(part.name.len() <= 12 && engine::is_plain(part.name));
        }
    }
}

/// The names of relay logs stand in tables, and of two binary logs one is of another time.
#[test]
fn a_log_that_is_not_known_for_sure_stays() {
    for more in ["old.index", "bin'og.index"] {
        let numbered = more.replace("index", "000001");
        let mut files = MARIADB.to_vec();
        files.extend([(more, 0), (numbered.as_str(), 1)]);
        if more == "old.index" {
            files.extend([("prod.index", 0), ("prod.000001", 1)]);
        }
        let plan = Machine::new(100).plan(&files).unwrap();
        assert!(!plan.contains("log_bin = "), "{plan}");
    }
}

#[test]
fn namespaces_that_do_not_fit_are_refused_with_their_sizes() {
    let error = Machine::new(220).plan(MYSQL).unwrap_err();
    assert_eq!(
        error,
        "the namespaces do not fit nvme0n1: doublewrite 6 GiB, redo 4 GiB, undo 6 GiB, temporary 6 GiB, log 8 GiB \
         leave 190 GiB of 220 GiB for the tables, which take 201 GiB"
    );
    assert!(Machine::new(240).plan(MYSQL).is_ok());
}

#[test]
fn what_else_is_on_the_drive_is_not_deleted() {
    let refused = |machine: &Machine, expected: &str| {
        let error = machine.plan(MYSQL).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    let machine = Machine::new(1000);
    machine.mounts(&["/srv", "/"]);
    refused(&machine, "/ is on it too");
    machine.mounts(&["/srv", "/home"]);
    refused(&machine, "/home is on it too");
    let machine = Machine::new(1000);
    machine.file("sys/devices/pci/nvme1/nvme0n2/size", "2048\n");
    refused(&machine, "2 namespaces (nvme0n1, nvme0n2)");
    let machine = Machine::new(1000);
    for part in ["p1", "p2"] {
        machine.file(
            &format!("sys/devices/pci/nvme1/nvme0n1/nvme0n1{part}/partition"),
            "1\n",
        );
    }
    refused(&machine, "2 partitions (nvme0n1p1, nvme0n1p2)");
    let machine = Machine::new(1000);
    fs::remove_file(
        machine
            .root
            .path()
            .join("sys/devices/pci/nvme1/nvme0n1/size"),
    )
    .unwrap();
    refused(&machine, "does not say its size");
}

#[test]
fn a_partition_is_made_again_on_the_way_back() {
    let machine = Machine::new(1000);
    machine.file("sys/devices/pci/nvme1/nvme0n1/nvme0n1p1/partition", "1\n");
    let plan = machine.plan(POSTGRES).unwrap();
    assert_order(
        &plan,
        &[
            "\nsfdisk --dump /dev/nvme0n1 >\"$BACKUP.partitions\"\n",
            "# 4. ",
            "\nsfdisk \"$(disk 1)\" <\"$BACKUP.partitions\"  # that of step 3\nmkfs.ext4 \"$(disk 1)\"p1\n",
        ],
    );
}

#[test]
fn there_is_no_plan_for_what_is_elsewhere_or_unknown() {
    let machine = Machine::new(1000);
    let error = |files: &[(&str, u64)]| machine.plan(files).unwrap_err();
    let redis = error(&[("appendonlydir/appendonly.aof.1.incr.aof", 1)]);
    assert!(redis.contains("fails across file systems"), "{redis}");
    let unknown = error(&[("000012.log", 1)]);
    assert!(unknown.contains("this is none of them"), "{unknown}");
    let mut files = POSTGRES.to_vec();
    files.push(("/fast/tablespace/PG_15/5/1", 1));
    let outside = error(&files);
    assert!(
        outside.contains("/fast/tablespace/PG_15/5/1 belongs to it by a link"),
        "{outside}"
    );
    let data = Data {
        dir: Path::new("/srv/$(reboot)"),
        mount: &machine.mount,
        disk: "nvme0n1",
        files: Vec::new(),
    };
    let odd = plan(&System::at(machine.root.path()), &data).unwrap_err();
    assert!(odd.to_string().contains("a shell reads"), "{odd}");
}
