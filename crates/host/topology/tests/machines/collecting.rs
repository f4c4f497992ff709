//! Archives: written, read back, and refused when forged.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use saiga_process::root::Root;
use saiga_topology::collect::{CollectError, collect};
use saiga_topology::machine::Machine;
use saiga_topology::read::read;
use saiga_topology::unpack::Sysroot;
use tar::{Builder, EntryType, Header};

use crate::recorded;

/// Collects a machine and reads it from the archive; both machines.
fn round_trip(root: &Root, dir: &Path) -> (Machine, Machine) {
    let archive = dir.join("machine.tar.gz");
    let collected = collect(root, &archive).unwrap();
    assert_eq!(
        fs::metadata(&archive).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    assert_eq!(
        fs::metadata(&archive).unwrap().len(),
        collected.bytes as u64
    );
    let again = read(Sysroot::open(&archive).unwrap().root()).unwrap();
    (collected.machine, again)
}

#[test]
fn machines_are_the_same_after_a_round_trip() {
    for (name, tree) in [
        ("kunpeng", recorded::kunpeng()),
        ("r910", recorded::r910()),
        ("offline", recorded::offline()),
        ("small vm", recorded::small_vm()),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (before, mut after) = round_trip(&tree.root(), dir.path());
        if name == "kunpeng" {
            let line = "iommu.passthrough=1 root=/dev/sda1 rw ip=removed";
            assert_eq!(after.system.command_line, line);
            after
                .system
                .command_line
                .clone_from(&before.system.command_line);
        }
        assert_eq!(before, after, "{name}");
    }
}

#[test]
fn this_machine_is_the_same_after_a_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let (before, mut after) = round_trip(&Root::host(), dir.path());
    after
        .system
        .command_line
        .clone_from(&before.system.command_line);
    for (old, new) in before.disks.iter().zip(&mut after.disks) {
        // The name of this host may be part of a directory.
        assert_eq!(old.mounts.len(), new.mounts.len());
        new.mounts.clone_from(&old.mounts);
    }
    assert_eq!(before, after);
}

#[test]
fn an_archive_has_no_identifiers_and_is_never_overwritten() {
    let tree = recorded::kunpeng();
    let id = "18e645be-29c9-445c-9958-2a641ab0cd99";
    tree.write(
        "/proc/cmdline",
        &format!(
            "root=UUID={id} db.password=hunter2 name=numabox9 boot=UUID=A1B2-C3D4 \
             rd.luks.name={id}=vault5 rd.luks.uuid=luks-18e645be x=iqn.2001-04.com.acme:disk7 \
             log=logs.acme.com.au"
        ),
    );
    tree.write("/proc/sys/kernel/hostname", "numabox9");
    tree.write("/sys/class/net/eth0/address", "ab:cd:ef:01:23:45");
    tree.files(
        "/sys/class/dmi/id",
        &[("product_serial", "SN12345"), ("product_uuid", id)],
    );
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("machine.tar.gz");
    collect(&tree.root(), &archive).unwrap();
    let unpacked = flate2::read::GzDecoder::new(File::open(&archive).unwrap());
    let text = std::io::read_to_string(std::io::BufReader::new(unpacked)).unwrap();
    for secret in [
        id, "hunter2", "numabox9", "ab:cd:ef", "SN12345", "ceph1", "A1B2", "vault5", "18e645be",
        "acme",
    ] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(text.contains("TaiShan") || text.contains("0xd01"));

    let before = fs::read(&archive).unwrap();
    let error = collect(&tree.root(), &archive).unwrap_err();
    assert!(matches!(error, CollectError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&archive).unwrap(), before);
    let other = dir.path().join("other.tar.gz");
    let error = collect(&Root::at(dir.path()), &other)
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("is missing: not the root of a machine") && !other.exists(),
        "{error}"
    );
}

/// Writes an archive with one entry for each type, path and link target.
fn forged(archive: &Path, entries: &[(EntryType, &str, &str)]) {
    let file = GzEncoder::new(File::create(archive).unwrap(), Compression::fast());
    let mut builder = Builder::new(file);
    for (kind, path, target) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(0);
        header.set_mode(0o644);
        // `set_path` refuses what this test needs.
        let name = &mut header.as_gnu_mut().unwrap().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_link_name_literal(target).unwrap();
        header.set_cksum();
        builder.append(&header, std::io::empty()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap();
}

#[test]
fn forged_archives_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("forged.tar.gz");
    let outside = dir.path().join("outside");
    let outside = outside.to_str().unwrap();
    for (entries, reason) in [
        (
            vec![(EntryType::Regular, "../above", "")],
            "../above: not a path below the root",
        ),
        (
            vec![(EntryType::Regular, "/etc/x", "")],
            "/etc/x: not a path below the root",
        ),
        (
            vec![(EntryType::Link, "sys", "/etc/passwd")],
            "sys: not a file, directory or symbolic link",
        ),
        (
            vec![(EntryType::Fifo, "sys", "")],
            "sys: not a file, directory or symbolic link",
        ),
        (
            vec![
                (EntryType::Symlink, "a", outside),
                (EntryType::Symlink, "a/b", "c"),
            ],
            "a/b: below a link",
        ),
    ] {
        forged(&archive, &entries);
        let error = Sysroot::open(&archive).unwrap_err().to_string();
        assert!(
            error.contains("is not an archive of saiga topology collect"),
            "{error}"
        );
        assert!(error.ends_with(reason), "{error}");
    }
    fs::write(&archive, "text").unwrap();
    let error = Sysroot::open(&archive).unwrap_err().to_string();
    assert!(error.contains("is not an archive"), "{error}");
    let error = Sysroot::open(&PathBuf::from("/nonexistent"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "/nonexistent: No such file or directory (os error 2)"
    );
}
