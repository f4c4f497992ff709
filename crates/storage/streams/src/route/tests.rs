//! Routes on simulated hosts, whose proc and sysfs are files of a temporary directory: every route,
//! on the kernels at which it changes.

use std::fs;

use super::*;

/// A simulated host with one disk, on which `dir` is mounted.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new(release: &str, kind: &str, options: &str, disk: &str) -> Self {
        let machine = Self {
            root: tempfile::tempdir().unwrap(),
        };
        machine.file("proc/sys/kernel/osrelease", release);
        let dir = machine.dir();
        fs::create_dir(&dir).unwrap();
        let (device, source) = if disk.is_empty() {
            ("0:40", "none")
        } else {
            ("259:1", "/dev/x")
        };
        let line = format!(
            "1 0 8:1 / / rw - ext4 /dev/root rw\n2 1 {device} / {} rw - {kind} {source} {options}\n",
            dir.display()
        );
        machine.file("proc/self/mountinfo", &line);
        if !disk.is_empty() {
            let folder = machine.path(&format!("sys/devices/pci/{disk}"));
            fs::create_dir_all(folder.join("queue")).unwrap();
            let numbers = machine.path("sys/dev/block");
            fs::create_dir_all(&numbers).unwrap();
            std::os::unix::fs::symlink(&folder, numbers.join("259:1")).unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn dir(&self) -> PathBuf {
        self.path("data")
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Sets the number of write streams of a disk.
    fn streams(self, disk: &str, count: u32) -> Self {
        let name = format!("sys/devices/pci/{disk}/queue/max_write_streams");
        self.file(&name, &format!("{count}\n"));
        self
    }

    /// Stacks `device` on the disk `below`.
    fn stack(&self, device: &str, below: &str) {
        let folder = self.path(&format!("sys/devices/pci/{below}"));
        fs::create_dir_all(&folder).unwrap();
        let slaves = self.path(&format!("sys/devices/pci/{device}/slaves"));
        fs::create_dir_all(&slaves).unwrap();
        std::os::unix::fs::symlink(&folder, slaves.join(below)).unwrap();
    }

    fn report(&self) -> Report {
        probe(&System::at(self.root.path()), &self.dir()).unwrap()
    }
}

#[test]
fn every_route_has_its_kernels() {
    let nvme = "nvme0n1";
    for (release, kind, streams, route, reach) in [
        ("4.12.0", "ext4", None, Route::Nowhere, Reach::No),
        (
            "5.10.0-60.18.oe2203",
            "xfs",
            None,
            Route::Nowhere,
            Reach::No,
        ),
        ("5.18.0", "ext4", None, Route::Nowhere, Reach::No),
        ("6.1.0-13-amd64", "ext4", None, Route::Nowhere, Reach::No),
        ("6.12.9", "f2fs", None, Route::Nowhere, Reach::No),
        ("6.16.0", "f2fs", Some(8), Route::Nowhere, Reach::No),
        ("7.2.12", "ext4", Some(8), Route::Nowhere, Reach::No),
        ("7.2.12", "xfs", Some(8), Route::Nowhere, Reach::No),
        ("7.2.12", "btrfs", Some(8), Route::Nowhere, Reach::No),
        ("7.2.12", "f2fs", Some(8), Route::F2fs, Reach::Yes),
        ("7.2.12", "f2fs", Some(0), Route::Nowhere, Reach::No),
        ("7.2.12", "f2fs", None, Route::Nowhere, Reach::No),
    ] {
        let mut machine = Machine::new(release, kind, "rw", nvme);
        if let Some(count) = streams {
            machine = machine.streams(nvme, count);
        }
        let report = machine.report();
        assert_eq!(
            (report.route, report.reach),
            (route, reach),
            "{release} {kind}: {}",
            report.why
        );
        if reach == Reach::No {
            let headline = report.headline();
            assert!(
                headline.starts_with("hints stop at the block layer on "),
                "{headline}"
            );
        }
    }
}

#[test]
fn the_streams_directive_must_be_enabled() {
    let machine = Machine::new("5.10.0", "xfs", "rw", "nvme0n1");
    let report = machine.report();
    assert!(
        report.why.contains("load nvme_core with streams=1"),
        "{}",
        report.why
    );
    machine.file("sys/module/nvme_core/parameters/streams", "Y\n");
    let report = machine.report();
    assert_eq!(
        (report.route, report.reach),
        (Route::Directive, Reach::Unproven)
    );
    assert!(report.why.contains("NSSA"), "{}", report.why);
    let machine = Machine::new("5.14.0-427.el9.x86_64", "xfs", "rw", "nvme0n1");
    assert!(machine.report().why.contains("is that of a later kernel"));
}

#[test]
fn scsi_and_ufs_take_hints_from_6_9_on() {
    for (release, disk, route, reach) in [
        ("6.8.0", "sda", Route::Nowhere, Reach::No),
        ("6.9.0", "sda", Route::Scsi, Reach::Unproven),
        ("6.9.0", "ufshcd0/sda", Route::Ufs, Reach::Unproven),
    ] {
        let report = Machine::new(release, "ext4", "rw", disk).report();
        assert_eq!(
            (report.route, report.reach),
            (route, reach),
            "{release} {disk}"
        );
    }
    let notes = |release| Machine::new(release, "ext4", "rw", "sda").report().notes;
    assert!(notes("6.12.0")[0].contains("ext4 passes hints of direct writes on"));
    assert_eq!(notes("6.18.0"), Vec::<String>::new());
}

#[test]
fn a_zoned_xfs_places_by_hint_on_any_disk() {
    let stats = |machine: &Machine| {
        let dir = machine.dir().display().to_string();
        let text = format!(
            "device /dev/other mounted on / with fstype ext4\ndevice /dev/x mounted on {dir} with fstype xfs\n\tzone 3, wp 7, hint SHORT\n"
        );
        machine.file("proc/self/mountstats", &text);
    };
    for (release, options, reach) in [
        ("6.15.0", "rw", Reach::Yes),
        ("6.14.0", "rw", Reach::No),
        ("6.15.0", "rw,nolifetime", Reach::No),
    ] {
        let machine = Machine::new(release, "xfs", options, "vda");
        assert_eq!(machine.report().reach, Reach::No, "not zoned");
        stats(&machine);
        assert_eq!(machine.report().reach, reach, "{release} {options}");
    }
}

/// The kernel writes a space as `\\040` in mountinfo and mountstats.
#[test]
fn a_zoned_xfs_may_have_a_mount_point_with_a_space() {
    let machine = Machine::new("6.15.0", "xfs", "rw", "vda");
    let dir = machine.path("my data");
    fs::create_dir(&dir).unwrap();
    let escaped = dir.display().to_string().replace(' ', "\\040");
    machine.file(
        "proc/self/mountinfo",
        &format!("1 0 8:1 / / rw - ext4 /dev/root rw\n2 1 259:1 / {escaped} rw - xfs /dev/x rw\n"),
    );
    machine.file(
        "proc/self/mountstats",
        &format!(
            "device /dev/x mounted on {escaped} with fstype xfs\n\tzone 3, wp 7, hint SHORT\n"
        ),
    );
    let report = probe(&System::at(machine.root.path()), &dir).unwrap();
    assert_eq!(report.reach, Reach::Yes, "{}", report.why);
}

#[test]
fn layers_without_hints_are_named() {
    let loops = Machine::new("7.2.0", "ext4", "rw", "loop3");
    loops.file("sys/devices/pci/loop3/loop/backing_file", "/srv/image\n");
    assert!(
        loops
            .report()
            .headline()
            .contains("the file behind it (/srv/image) is what counts")
    );
    let virtio = Machine::new("7.2.0", "ext4", "rw", "vda").report();
    assert!(
        virtio
            .why
            .contains("the driver of vda does not support hints")
    );
    for (kind, why) in [
        ("tmpfs", "in memory"),
        ("nfs4", "on another host"),
        ("fuse.sshfs", "does not support hints"),
        ("zfs", "no disk was found under this zfs"),
    ] {
        let report = Machine::new("7.2.0", kind, "rw", "").report();
        assert_eq!(report.reach, Reach::No);
        let headline = report.headline();
        assert!(
            headline.starts_with("hints have no effect on "),
            "{headline}"
        );
        assert!(headline.contains(why), "{headline}");
    }
}

#[test]
fn a_partition_is_on_its_disk() {
    let machine = Machine::new("7.2.0", "f2fs", "rw", "nvme0n1/nvme0n1p2").streams("nvme0n1", 4);
    machine.file("sys/devices/pci/nvme0n1/nvme0n1p2/partition", "2\n");
    let report = machine.report();
    assert_eq!(report.disk.unwrap().name, "nvme0n1");
    assert_eq!(report.route, Route::F2fs);
}

/// btrfs has a device number of its own; the source names the disk.
#[test]
fn a_file_system_with_a_number_of_its_own_is_found_by_its_source() {
    let machine = Machine::new("7.2.0", "btrfs", "rw", "nvme0n1").streams("nvme0n1", 4);
    fs::remove_file(machine.path("sys/dev/block/259:1")).unwrap();
    assert_eq!(machine.report().disk, None);
    let names = machine.path("sys/class/block");
    fs::create_dir_all(&names).unwrap();
    std::os::unix::fs::symlink(machine.path("sys/devices/pci/nvme0n1"), names.join("x")).unwrap();
    assert_eq!(machine.report().disk.unwrap().name, "nvme0n1");
}

#[test]
fn an_overlay_is_refused_with_the_directory_to_label_instead() {
    let options = "rw,lowerdir=/l,upperdir=/var/lib/docker/overlay2/abc/diff,workdir=/w";
    let obstacle = Machine::new("6.18.0", "overlay", options, "")
        .report()
        .obstacle();
    let obstacle = obstacle.unwrap();
    assert!(
        obstacle.contains("give it /var/lib/docker/overlay2/abc/diff"),
        "{obstacle}"
    );
    assert_eq!(
        Machine::new("6.18.0", "ext4", "rw", "vda")
            .report()
            .obstacle(),
        None
    );
}

/// The route and the reason on a host whose file system is on `dm-0`.
fn on_a_stack(release: &str, below: &[&str], file: (&str, &str)) -> (Route, String) {
    let machine = Machine::new(release, "xfs", "rw", "dm-0");
    machine.file(file.0, file.1);
    below.iter().for_each(|disk| machine.stack("dm-0", disk));
    let report = machine.report();
    (report.route, report.why)
}

/// Cloned requests keep their hints, so that the disks below decide.
#[test]
fn a_stacked_device_passes_hints_to_disks_that_use_them() {
    const DIRECTIVE: &str = "sys/module/nvme_core/parameters/streams";
    const UUID: &str = "sys/devices/pci/dm-0/dm/uuid";
    let told = (DIRECTIVE, "Y");
    let nvme = &["nvme0n1"][..];
    let (scsi, none) = (Route::Scsi, Route::Nowhere);
    let mixed = &["sda", "vdb"][..];
    for (release, below, file, route, why) in [
        (
            "5.10.0",
            nvme,
            told,
            Route::Directive,
            "dm-0 passes hints on to nvme0n1; streams=1",
        ),
        (
            "5.10.0",
            nvme,
            (DIRECTIVE, "N"),
            none,
            "NVMe driver does not use streams",
        ),
        ("6.1.0", nvme, told, none, "5.18 to 6.8"),
        ("6.18.0", nvme, told, none, "no write streams on to nvme0n1"),
        (
            "6.12.0",
            &["sda", "sdb"],
            told,
            scsi,
            "on to sda, sdb; hints are sent",
        ),
        ("6.12.0", mixed, told, none, "the driver of vdb"),
        (
            "6.12.0",
            &["sda"],
            (UUID, "CRYPT-LUKS2-x"),
            none,
            "requests of its own",
        ),
        (
            "6.12.0",
            &["sda"],
            (UUID, "LVM-x"),
            scsi,
            "dm-0 passes hints on to sda",
        ),
        (
            "6.12.0",
            &[],
            told,
            none,
            "does not list the disks below dm-0",
        ),
    ] {
        let (found, found_why) = on_a_stack(release, below, file);
        assert_eq!(found, route, "{release} {below:?}: {found_why}");
        assert!(found_why.contains(why), "{release} {below:?}: {found_why}");
    }
}

#[test]
fn a_stacked_device_on_another_is_followed() {
    let machine = Machine::new("6.12.0", "xfs", "rw", "dm-0");
    machine.stack("dm-0", "md0");
    machine.stack("md0", "sda");
    machine.stack("md0", "sdb");
    machine.file("sys/devices/pci/md0/md/level", "raid1\n");
    assert_eq!(machine.report().route, Route::Scsi);
    machine.file("sys/devices/pci/md0/md/level", "raid5\n");
    let report = machine.report();
    assert_eq!(report.reach, Reach::No);
    assert!(
        report
            .why
            .contains("md0 writes to sda, sdb by requests of its own"),
        "{}",
        report.why
    );
}

#[test]
fn only_directories_have_a_route() {
    let machine = Machine::new("6.18.0", "ext4", "rw", "vda");
    machine.file("file", "");
    let error = probe(&System::at(machine.root.path()), &machine.path("file")).unwrap_err();
    assert!(
        error.to_string().contains("file is not a directory"),
        "{error}"
    );
}

#[test]
fn invalid_files_are_errors_with_their_name() {
    let machine = Machine::new("nonsense", "ext4", "rw", "vda");
    let error = probe(&System::at(machine.root.path()), &machine.dir()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the kernel's release `nonsense` has no version number"
    );
    let empty = tempfile::tempdir().unwrap();
    let error = probe(&System::at(empty.path()), empty.path()).unwrap_err();
    assert!(error.to_string().contains("osrelease"), "{error}");
}

/// A line of mountinfo from the ID, the parent's ID, the mount point and the type.
fn place_with(mounts: &[(u32, u32, &str, &str)], dir: &str) -> String {
    let machine = Machine::new("6.18.0", "ext4", "rw", "");
    fs::create_dir_all(machine.path(dir)).unwrap();
    let top = machine.path("").display().to_string();
    let line = |(number, below, place, kind): &(u32, u32, &str, &str)| {
        let place = if *place == "/" {
            "/".to_owned()
        } else {
            format!("{top}{place}")
        };
        format!("{number} {below} 0:{number} / {place} rw - {kind} none rw\n")
    };
    let text: String = mounts.iter().map(line).collect();
    machine.file("proc/self/mountinfo", &text);
    let system = System::at(machine.root.path());
    probe(&system, &machine.path(dir)).unwrap().mount.kind
}

#[test]
fn the_topmost_mounts_of_a_path_count() {
    let root = (1, 0, "/", "ext4");
    for (name, mounts, expected) in [
        (
            "one over the other",
            &[root, (2, 1, "a", "xfs"), (3, 2, "a", "tmpfs")][..],
            "tmpfs",
        ),
        (
            "listed in another order",
            &[root, (3, 2, "a", "tmpfs"), (2, 1, "a", "xfs")],
            "tmpfs",
        ),
        (
            "a deeper one",
            &[root, (2, 1, "a", "xfs"), (3, 2, "a/b", "tmpfs")],
            "tmpfs",
        ),
        (
            "a deeper one below a later one",
            &[root, (2, 1, "a/b", "tmpfs"), (3, 1, "a", "xfs")],
            "xfs",
        ),
        (
            "a root over the root",
            &[root, (2, 1, "/", "btrfs")],
            "btrfs",
        ),
        (
            "a name that begins the same",
            &[root, (2, 1, "a/bb", "xfs")],
            "ext4",
        ),
        (
            "a container, whose list is shorter",
            &[(7, 5, "/", "overlay"), (8, 7, "a", "xfs")],
            "xfs",
        ),
        (
            "a root that is not a mount",
            &[(8, 7, "a", "xfs"), (9, 8, "a/b", "tmpfs")],
            "tmpfs",
        ),
    ] {
        assert_eq!(place_with(mounts, "a/b"), expected, "{name}");
    }
}
