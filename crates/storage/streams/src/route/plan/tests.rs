//! Plans for simulated hosts: the commands for each server, and the reasons against a plan.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;

const DIR: &str = "/srv/db";

/// A simulated host with one NVMe drive, whose only namespace is mounted at `/srv`.
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
        // The number of the disk is that of its subsystem, not that of the controller.
        let disk = "sys/devices/pci/nvme1/nvme0n1";
        machine.file("sys/devices/pci/nvme1/cntlid", "65\n");
        machine.file(&format!("{disk}/size"), &format!("{}\n", gib * (GIB / 512)));
        machine.file(&format!("{disk}/queue/logical_block_size"), "512\n");
        machine.file(&format!("{disk}/nsid"), "3\n");
        fs::create_dir_all(machine.root.path().join("srv/db")).unwrap();
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

    /// Runs commands of a plan on the files of this host. Commands for drives and services do
    /// nothing.
    fn shell(&self, commands: &str) {
        let root = self.root.path().display().to_string();
        let mut commands = commands.replace("mkfs.", "mkfs ");
        for place in [
            "/srv",
            "/mnt/",
            "/etc/fstab",
            "/another-drive",
            "/sys/class",
        ] {
            commands = commands.replace(place, &format!("{root}{place}"));
        }
        let quiet = "mkfs mount umount findmnt blkid systemctl saiga".split(' ');
        let quiet: String = quiet.map(|name| format!("{name}() {{ :; }}\n")).collect();
        let nvme = "nvme() { case $1 in delete-ns) rm -rf \"$ROOT\"/srv \"$ROOT\"/mnt ;; esac; }\n";
        fs::create_dir_all(self.root.path().join("etc")).unwrap();
        let script = format!("set -e\nROOT={root}\n{quiet}{nvme}{commands}");
        let out = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(out.status.success(), "{out:?}: {script}");
    }

    /// Asserts that a plan for MySQL fails with a message that contains `expected`.
    fn refuses(&self, expected: &str) {
        let error = self.plan(MYSQL).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }

    fn mounts(&self, points: &[&str]) {
        let line = |point: &&str| format!("1 0 259:1 / {point} rw - ext4 /dev/nvme0n1 rw\n");
        let text: String = points.iter().map(line).collect();
        self.file("proc/self/mountinfo", &text);
    }

    /// Makes the plan for a database with `files`, whose sizes are in GiB.
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

/// Asserts that `plan` contains all `parts` in this order. The last byte of a part may be the first
/// of the next.
fn assert_order(plan: &str, parts: &[&str]) {
    let mut rest = plan;
    for part in parts {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("{part:?} is missing or too early in {plan}"));
        rest = &rest[at + part.trim_end_matches('\n').len()..];
    }
}

#[test]
fn the_plan_for_mysql_saves_deletes_and_moves() {
    let plan = Machine::new(1000).plan(MYSQL).unwrap();
    assert_order(
        &plan,
        &[
            "# STEP 4 DELETES EVERYTHING ON /dev/nvme1, that is all of /srv on nvme0n1;",
            "\nnvme list-ns /dev/nvme1 --all\n",
            "\nSERVICE=mysql\n",
            "SELECT @@innodb_directories; SELECT FILE_NAME FROM information_schema.FILES",
            "\nsystemctl stop \"$SERVICE\"\n",
            "\ncp -a /srv/db/. \"$BACKUP\"/\n",
            "\ndiff -r --no-dereference /srv/db \"$BACKUP\"\n",
            "\n# 4. FROM HERE ON THE DATA ARE IN THE BACKUP ONLY.",
            "\nsystemctl daemon-reload\numount /srv\nnvme delete-ns /dev/nvme1 --namespace-id=3\n",
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
            "/srv/db xfs discard 0 0\" >>/etc/fstab\nsystemctl daemon-reload\nmount /mnt/doublewrite\n",
            "\nmount /srv/db\n",
            "\nfindmnt -n -o SOURCE /mnt/doublewrite  # must name `disk 1`\n",
            "\nfindmnt -n -o SOURCE /srv/db  # must name `disk 6`\n",
            "\nfind \"$BACKUP\" -mindepth 1 -maxdepth 1 \\( -name '#ib_*.dblwr' -o -name '#ib_*.bdblwr' \\) -exec cp -a -t /mnt/doublewrite {} +\n",
            "\\( -name '#innodb_redo' -o -name 'ib_logfile*' \\) -exec cp -a -t /mnt/redo {} +\n",
            "\\( -name 'prod.[0-9]*' -o -name 'prod.index' -o -name 'prod.state' \\) -exec cp -a -t /mnt/log {} +\n",
            "! -name 'prod.index' ! -name 'prod.state' -exec cp -a -t /srv/db {} +\n",
            "\nsed -i 's|^.*/|/mnt/log/|' /mnt/log/prod.index\n",
            "Remove log_bin_index",
            "\n# innodb_doublewrite_dir = /mnt/doublewrite\n",
            "# innodb_log_group_home_dir = /mnt/redo\n",
            "# innodb_undo_directory = /mnt/undo\n",
            "# log_bin = /mnt/log/prod\n",
            "\nsystemctl start \"$SERVICE\"\n",
            "\nsaiga streams check /srv/db --rules mysql --for 1m\n",
        ],
    );
    assert!(!plan.contains("/dev/nvme0 "), "{plan}");
    // Namespaces that are not attached to this host are not deleted.
    assert!(!plan.contains("0xffffffff"), "{plan}");
    // The backup is never in a directory of the drive that is erased.
    assert!(
        !plan.contains("BACKUP=/srv") && !plan.contains("BACK=/srv"),
        "{plan}"
    );
}

#[test]
fn the_way_back_for_mysql_verifies_its_backup_and_deletes_the_namespaces() {
    let plan = Machine::new(1000).plan(MYSQL).unwrap();
    assert_order(
        &plan,
        &[
            "\n# The way back",
            "\nsystemctl stop \"$SERVICE\"\n",
            "\nfindmnt --target \"$BACK\"\n",
            "\ncp -a /mnt/doublewrite \"$BACK\"/doublewrite\n",
            "\ncp -a /srv/db \"$BACK\"/data\n",
            "\ndiff -r --no-dereference /mnt/doublewrite \"$BACK\"/doublewrite\n",
            "\ndiff -r --no-dereference /srv/db \"$BACK\"/data\n",
            "# FROM HERE ON THE DATA ARE IN THE BACKUP ONLY.",
            "\nsystemctl daemon-reload\numount /mnt/doublewrite /mnt/redo /mnt/undo /mnt/temporary /mnt/log /srv/db\n\
             nvme delete-ns /dev/nvme1 --namespace-id=1\n\
             nvme delete-ns /dev/nvme1 --namespace-id=2\n\
             nvme delete-ns /dev/nvme1 --namespace-id=3\n\
             nvme delete-ns /dev/nvme1 --namespace-id=4\n\
             nvme delete-ns /dev/nvme1 --namespace-id=5\n\
             nvme delete-ns /dev/nvme1 --namespace-id=6\n\
             nvme fdp feature /dev/nvme1 --endgrp-id=1 --disable\n\
             nvme create-ns /dev/nvme1 --nsze=2097152000 --ncap=2097152000 --block-size=512\n",
            "\nmkfs.ext4 \"$(disk 1)\"\n",
            "\nsystemctl daemon-reload\nmount -t ext4 \"$(disk 1)\" /srv\nfindmnt -n -o SOURCE /srv  # must name `disk 1`\n",
            "\ncp -a \"$BACK\"/data/. /srv/db/\n",
            "\nfind \"$BACK\"/log -mindepth 1 -maxdepth 1 -exec cp -a -t /srv/db {} +\n",
            "\nsed -i 's|^.*/|./|' /srv/db/prod.index\nsystemctl start \"$SERVICE\"\n",
        ],
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
    // This server has no binary log, and must not start one.
    for other in [
        "log_bin = ",
        "innodb_undo_directory = ",
        "innodb_doublewrite_dir",
    ] {
        assert!(!plan.contains(other), "{other}: {plan}");
    }
}

#[test]
fn postgres_finds_its_write_ahead_log_by_a_link() {
    let plan = Machine::new(1000).plan(POSTGRES).unwrap();
    assert_order(
        &plan,
        &[
            "# wal: 31 GiB\n",
            "# data: 969 GiB\n",
            "\\( -name 'pg_wal' \\) -exec cp -a -t /mnt/wal {} +\n",
            "\nln -s /mnt/wal/pg_wal /srv/db/pg_wal\n",
            "\nrm /srv/db/pg_wal  # the link\nfind \"$BACK\"/wal -mindepth 1 -maxdepth 1 -exec cp -a -t /srv/db {} +\n",
        ],
    );
    assert!(!plan.contains("[mysqld]"), "{plan}");
}

/// A shell accepts commands, comments and quotes of every plan.
#[test]
fn every_plan_is_valid_shell() {
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

/// Directories stand for file systems: `nvme delete-ns` removes them, and `mount` does nothing.
#[test]
fn the_commands_move_every_file_and_move_it_back() {
    for (files, moved) in [
        (MYSQL, "mnt/redo/#innodb_redo"),
        (POSTGRES, "mnt/wal/pg_wal"),
    ] {
        let machine = Machine::new(1000);
        let root = machine.root.path();
        for (file, _) in files {
            machine.file(&format!("srv/db/{file}"), file);
        }
        let index = root.join("srv/db/prod.index");
        let absolute = root.join("srv/db/prod.000001").display().to_string() + "\n";
        if files == MYSQL {
            fs::write(&index, absolute).unwrap();
        }
        machine.shell("cp -a /srv/db \"$ROOT\"/before");
        let plan = machine.plan(files).unwrap();
        let (there, back) = plan.split_once("\n# The way back").unwrap();

        machine.shell(there);
        assert!(root.join(moved).is_dir(), "{plan}");
        let moved_index = root.join("mnt/log/prod.index");
        if files == MYSQL {
            let log = root.join("mnt/log/prod.000001").display().to_string() + "\n";
            assert_eq!(fs::read_to_string(moved_index).unwrap(), log);
            fs::write(root.join("before/prod.index"), "./prod.000001\n").unwrap();
        }
        machine.shell(&format!("# {back}"));
        machine.shell("diff -r --no-dereference \"$ROOT\"/before /srv/db");
    }
}

/// `mkfs.xfs -L` accepts 12 characters; the streams of the rules have the same names.
#[test]
fn part_names_are_stream_names_and_valid_labels() {
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
        let engine = Engine::of(&files).unwrap();
        assert_eq!(engine.rules(), set);
        let parts = engine.parts(&files);
        for part in parts {
            let mut streams = rules.iter().filter_map(|rule| rule.stream.as_deref());
            assert!(
                streams.any(|stream| stream == part.name),
                "{set} {}",
                part.name
            );
            assert!(part.name.len() <= 12 && engine::is_plain(part.name));
            assert!(layout::PARTS.contains(&part.name), "{}", part.name);
        }
    }
}

/// The paths of relay logs are in tables, and of two binary logs one is obsolete.
#[test]
fn an_ambiguous_log_stays() {
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
         leave 190 GiB of 220 GiB for the tables, which take 214 GiB with their file system"
    );
    // The first drive has 213 GiB left, the second 214 GiB.
    assert!(Machine::new(245).plan(MYSQL).is_err());
    assert!(Machine::new(246).plan(MYSQL).is_ok());
}

#[test]
fn a_drive_with_other_data_is_refused() {
    let machine = Machine::new(1000);
    machine.mounts(&["/srv", "/"]);
    machine.refuses("/ is on it too");
    machine.mounts(&["/srv", "/home"]);
    machine.refuses("/home is on it too");
    let machine = Machine::new(1000);
    machine.file("sys/devices/pci/nvme1/nvme0n2/size", "2048\n");
    machine.refuses("2 namespaces (nvme0n1, nvme0n2)");
    let machine = Machine::new(1000);
    for part in ["p1", "p2"] {
        machine.file(
            &format!("sys/devices/pci/nvme1/nvme0n1/nvme0n1{part}/partition"),
            "1\n",
        );
    }
    machine.refuses("2 partitions (nvme0n1p1, nvme0n1p2)");
    let machine = Machine::new(1000);
    fs::remove_file(
        machine
            .root
            .path()
            .join("sys/devices/pci/nvme1/nvme0n1/size"),
    )
    .unwrap();
    machine.refuses("has no valid size");
    let machine = Machine::new(1000);
    fs::remove_file(
        machine
            .root
            .path()
            .join("sys/devices/pci/nvme1/nvme0n1/nsid"),
    )
    .unwrap();
    machine.refuses("does not have the ID of the namespace");
}

/// The server may have files on the mount without a link to them: `DATA DIRECTORY`, `log_bin`.
#[test]
fn a_mount_with_more_than_the_data_directory_is_refused() {
    for (file, beside) in [
        ("srv/fast/t.MYD", "/srv/fast"),
        ("srv/binlogs/prod.000001", "/srv/binlogs"),
        ("srv/.hidden", "/srv/.hidden"),
    ] {
        let machine = Machine::new(1000);
        machine.file(file, "");
        machine.refuses(&format!("{beside} is on it too"));
    }
    let machine = Machine::new(1000);
    machine.file("srv/lost+found/1", "");
    assert!(machine.plan(MYSQL).is_ok());

    let machine = Machine::new(1000);
    fs::remove_dir_all(machine.root.path().join("srv")).unwrap();
    machine.refuses("/srv cannot be read");
    let machine = Machine::new(1000);
    machine.file(
        "proc/self/mountinfo",
        "1 0 259:1 /a /srv rw - ext4 /dev/nvme0n1 rw\n",
    );
    machine.refuses("only /a of its file system is mounted at /srv");
    machine.file(
        "proc/self/mountinfo",
        "1 0 259:1 / /srv rw - ext4 /dev/nvme0n1 rw\n2 1 0:9 / /srv/db/t rw - tmpfs none rw\n",
    );
    machine.refuses("/srv/db/t is mounted below /srv");
}

#[test]
fn a_mount_point_in_use_is_refused() {
    let machine = Machine::new(1000);
    machine.file(
        "etc/fstab",
        "# UUID=1 /mnt/redo xfs\nUUID=2 / ext4 defaults 0 1\n",
    );
    fs::create_dir_all(machine.root.path().join("mnt/redo")).unwrap();
    assert!(machine.plan(MYSQL).is_ok());
    machine.file("mnt/undo/undo_001", "");
    machine.refuses("/mnt/undo, and that is a directory that is not empty");
    machine.file(
        "etc/fstab",
        "UUID=2 / ext4\nUUID=1\t/mnt/redo/  xfs discard 0 0\n",
    );
    machine.refuses("/mnt/redo, and that is already in /etc/fstab");
    machine.file(
        "proc/self/mountinfo",
        "1 0 259:1 / /srv rw - ext4 /dev/nvme0n1 rw\n\
         2 0 8:1 / /mnt/doublewrite rw - xfs /dev/sda rw\n",
    );
    machine.refuses("/mnt/doublewrite, and that is already a mount point");
    let machine = Machine::new(1000);
    machine.file("mnt/log", "");
    machine.refuses("/mnt/log, and that cannot be read");
    for dir in ["/mnt", "/mnt/redo", "/mnt/redo/db"] {
        let why = places::taken(
            &System::at(machine.root.path()),
            Path::new(dir),
            Path::new("/mnt/redo"),
        );
        assert_eq!(why.as_deref(), Some("overlaps the data directory"), "{dir}");
    }
}

#[test]
fn links_to_other_directories_are_found() {
    use std::os::unix::fs::symlink;

    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let dir = root.join("db");
    fs::create_dir_all(dir.join("shop")).unwrap();
    fs::create_dir(root.join("fast")).unwrap();
    fs::write(root.join("fast/t.MYD"), "").unwrap();
    fs::write(dir.join("own"), "").unwrap();
    symlink("../own", dir.join("shop/inside")).unwrap();
    symlink("nothing", dir.join("shop/nowhere")).unwrap();
    assert_eq!(outside(&dir).unwrap(), Vec::<PathBuf>::new());
    symlink(root.join("fast/t.MYD"), dir.join("shop/t.MYD")).unwrap();
    symlink("../fast", dir.join("tables")).unwrap();
    assert_eq!(
        outside(&dir).unwrap(),
        [root.join("fast"), root.join("fast/t.MYD")]
    );
    symlink("circle", dir.join("circle")).unwrap();
    assert_eq!(outside(&dir).unwrap_err().0, dir.join("circle"));
}

#[test]
fn the_way_back_restores_a_partition() {
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
fn unknown_servers_and_files_in_other_directories_are_refused() {
    let machine = Machine::new(1000);
    let error = |files: &[(&str, u64)]| machine.plan(files).unwrap_err();
    let redis = error(&[("appendonlydir/appendonly.aof.1.incr.aof", 1)]);
    assert!(redis.contains("fails across file systems"), "{redis}");
    let unknown = error(&[("000012.log", 1)]);
    assert!(
        unknown.contains("it is not the data directory of"),
        "{unknown}"
    );
    let mut files = POSTGRES.to_vec();
    files.push(("/fast/tablespace/PG_15/5/1", 1));
    let outside = error(&files);
    assert!(
        outside.contains("/fast/tablespace/PG_15/5/1 belongs to it by a link"),
        "{outside}"
    );
    let mut files = MARIADB.to_vec();
    files.push(("shop/orders.isl", 0));
    let table = error(&files);
    assert!(
        table.contains("/srv/db/shop/orders.isl is in another directory"),
        "{table}"
    );
    let data = Data {
        dir: Path::new("/srv/$(reboot)"),
        mount: &machine.mount,
        disk: "nvme0n1",
        files: Vec::new(),
    };
    let odd = plan(&System::at(machine.root.path()), &data).unwrap_err();
    assert!(
        odd.to_string().contains("with a meaning to a shell"),
        "{odd}"
    );
}
