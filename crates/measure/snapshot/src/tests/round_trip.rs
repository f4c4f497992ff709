//! Take, damage and restore: every property of every kind of file comes back.

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use super::fixture::{Fixture, damage, quiet, restore};
use super::oracle::state_of;
use crate::{Check, LinkedFiles, Options, Snapshot, check_ready, compare_parts, verify};

#[test]
fn a_damaged_tree_is_restored() {
    let fixture = Fixture::full();
    let before = state_of(&fixture.parts);
    let snapshot = fixture.take().unwrap();
    assert_eq!(state_of(&fixture.parts), before, "a take changes nothing");
    damage(&fixture);
    assert_ne!(state_of(&fixture.parts), before);
    restore(&snapshot).unwrap();
    assert_eq!(state_of(&fixture.parts), before);
    check_ready(&fixture.parts).unwrap();
}

#[test]
fn missing_parts_are_made_again() {
    let fixture = Fixture::full();
    let before = state_of(&fixture.parts);
    let snapshot = fixture.take().unwrap();
    for part in &fixture.parts {
        fs::remove_dir_all(part).unwrap();
    }
    restore(&snapshot).unwrap();
    assert_eq!(state_of(&fixture.parts), before);
}

#[test]
fn a_restore_with_any_check_brings_everything_back() {
    for check in [Check::Auto, Check::Quick, Check::Full] {
        let fixture = Fixture::full();
        let before = state_of(&fixture.parts);
        let snapshot = fixture.take().unwrap();
        damage(&fixture);
        let options = Options {
            check,
            ..Options::default()
        };
        crate::restore(&snapshot, &options, &quiet).unwrap();
        assert_eq!(state_of(&fixture.parts), before, "{check:?}");
    }
}

/// One of four pieces of a file was changed, so one piece is written.
#[test]
fn only_differing_pieces_are_written() {
    let fixture = Fixture::bare(1);
    let (table, other) = (fixture.part(0).join("table"), fixture.part(0).join("other"));
    fs::write(&table, vec![5; 4 << 20]).unwrap();
    fs::write(&other, vec![6; 1 << 20]).unwrap();
    let snapshot = fixture.take().unwrap();
    let untouched = restore(&snapshot).unwrap();
    assert_eq!(untouched.written_bytes, 0);
    let inode = fs::metadata(&table).unwrap().ino();
    let file = fs::OpenOptions::new().write(true).open(&table).unwrap();
    file.write_all_at(b"!", (2 << 20) + 5).unwrap();
    drop(file);
    let restored = restore(&snapshot).unwrap();
    assert_eq!(restored.written_bytes, 1 << 20);
    assert_eq!(restored.bytes, 5 << 20);
    assert_eq!(fs::metadata(&table).unwrap().ino(), inode);
    assert_eq!(fs::read(&table).unwrap(), vec![5; 4 << 20]);
}

/// Size and modification time are unchanged; only the content differs.
#[test]
fn a_change_of_content_alone_is_found() {
    let fixture = Fixture::bare(1);
    let table = fixture.part(0).join("table");
    fs::write(&table, "clean").unwrap();
    let when = fs::metadata(&table).unwrap().modified().unwrap();
    let snapshot = fixture.take().unwrap();
    fs::write(&table, "dirty").unwrap();
    fs::File::open(&table).unwrap().set_modified(when).unwrap();
    restore(&snapshot).unwrap();
    assert_eq!(fs::read(&table).unwrap(), b"clean");
}

#[test]
fn holes_stay_holes_and_reserved_space_stays_reserved() {
    let fixture = Fixture::full();
    let reserved = fixture.part(0).join("redo");
    let file = fs::File::create(&reserved).unwrap();
    let none = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&file, none, 0, 2 << 20).unwrap();
    file.write_all_at(b"log", 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let blocks = |name: &str| fs::metadata(fixture.part(0).join(name)).unwrap().blocks() * 512;
    let (sparse, redo) = (blocks("sparse"), blocks("redo"));
    assert!(sparse < 1 << 20 && redo >= 2 << 20, "{sparse} {redo}");
    let snapshot = fixture.take().unwrap();
    // Zeros replace a hole, and a hole replaces reserved space.
    fs::write(fixture.part(0).join("sparse"), vec![0; 4 << 20]).unwrap();
    let file = fs::File::create(&reserved).unwrap();
    file.set_len(2 << 20).unwrap();
    drop(file);
    restore(&snapshot).unwrap();
    assert_eq!(blocks("sparse"), sparse);
    assert!(blocks("redo") >= redo);
    // The copy occupies no more space than the original.
    let files = fs::read_dir(snapshot.dir().join("files")).unwrap();
    let largest = files.map(|file| file.unwrap().metadata().unwrap());
    let sparse_copy = largest
        .filter(|meta| meta.size() == 4 << 20)
        .map(|meta| meta.blocks() * 512);
    assert_eq!(sparse_copy.collect::<Vec<_>>(), [sparse]);
}

#[test]
fn extended_attributes_and_acls_come_back() {
    let fixture = Fixture::bare(1);
    let table = fixture.part(0).join("table");
    fs::write(&table, "x").unwrap();
    let set = |name: &str, value: &[u8]| {
        rustix::fs::setxattr(&table, name, value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    set("user.kept", b"\x00value");
    // An ACL: user::rw-, user:12345:r--, group::r--, mask::r--, other::---.
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in [
        (1_u16, 6_u16, u32::MAX),
        (2, 4, 12345),
        (4, 4, u32::MAX),
        (16, 4, u32::MAX),
        (32, 0, u32::MAX),
    ] {
        acl.extend(tag.to_le_bytes());
        acl.extend(rights.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    set("system.posix_acl_access", &acl);
    let snapshot = fixture.take().unwrap();
    rustix::fs::removexattr(&table, "user.kept").unwrap();
    rustix::fs::removexattr(&table, "system.posix_acl_access").unwrap();
    set("user.stranger", b"1");
    restore(&snapshot).unwrap();
    let get = |name: &str| {
        let mut value = vec![0; 200];
        let len = rustix::fs::getxattr(&table, name, &mut value)?;
        value.truncate(len);
        Ok::<_, rustix::io::Errno>(value)
    };
    assert_eq!(get("user.kept"), Ok(b"\x00value".to_vec()));
    assert_eq!(get("system.posix_acl_access"), Ok(acl));
    assert_eq!(get("user.stranger"), Err(rustix::io::Errno::NODATA));
}

/// A file of the part has got a hard link outside, whose content must not change.
#[test]
fn a_hard_link_outside_keeps_its_content() {
    let fixture = Fixture::bare(1);
    let (table, outside) = (fixture.part(0).join("table"), fixture.beside("outside"));
    fs::write(&table, "old").unwrap();
    let snapshot = fixture.take().unwrap();
    fs::write(&table, "new").unwrap();
    fs::hard_link(&table, &outside).unwrap();
    restore(&snapshot).unwrap();
    assert_eq!(fs::read(&table).unwrap(), b"old");
    assert_eq!(fs::read(&outside).unwrap(), b"new");
}

/// A folder and a file of the part were replaced by symbolic links that lead out of it.
#[test]
fn a_link_to_the_outside_is_replaced_and_not_followed() {
    let fixture = Fixture::full();
    let outside = fixture.beside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "precious").unwrap();
    let before = state_of(&fixture.parts);
    let snapshot = fixture.take().unwrap();
    fs::remove_dir_all(fixture.part(0).join("base")).unwrap();
    std::os::unix::fs::symlink(&outside, fixture.part(0).join("base")).unwrap();
    fs::remove_file(fixture.part(0).join("PG_VERSION")).unwrap();
    std::os::unix::fs::symlink(outside.join("precious"), fixture.part(0).join("PG_VERSION"))
        .unwrap();
    restore(&snapshot).unwrap();
    assert_eq!(state_of(&fixture.parts), before);
    assert_eq!(fs::read(outside.join("precious")).unwrap(), b"precious");
}

#[test]
fn equal_data_have_equal_fingerprints() {
    let (one, other) = (Fixture::bare(1), Fixture::bare(1));
    for fixture in [&one, &other] {
        fs::create_dir(fixture.part(0).join("base")).unwrap();
        fs::write(fixture.part(0).join("base/1"), "rows").unwrap();
    }
    let first = one.take().unwrap().fingerprint();
    assert_eq!(other.take().unwrap().fingerprint(), first);
    fs::write(other.part(0).join("base/1"), "cows").unwrap();
    let again = other.beside("again");
    let options = Options::default();
    let changed = crate::take(&other.parts, &again, &options, &quiet).unwrap();
    assert_ne!(changed.fingerprint(), first);
    assert_eq!(
        Snapshot::open(&again).unwrap().fingerprint(),
        changed.fingerprint()
    );
}

#[test]
fn files_that_are_left_out_are_noted() {
    let fixture = Fixture::bare(1);
    let part = fixture.part(0);
    let _socket = std::os::unix::net::UnixListener::bind(part.join("mysqld.sock")).unwrap();
    let mode = rustix::fs::Mode::RUSR;
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, part.join("pipe"), fifo, mode, 0).unwrap();
    fs::write(part.join("postmaster.pid"), "999999999\n/data\n").unwrap();
    fs::write(part.join("table"), "rows").unwrap();
    fs::hard_link(part.join("table"), fixture.beside("outside")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", part.join("server.crt")).unwrap();
    drop(_socket);
    let leave = Options {
        linked_files: LinkedFiles::Leave,
        ..Options::default()
    };
    let snapshot = fixture.take_with(&leave).unwrap();
    let notes = snapshot.notes().join("\n");
    let root = part.display();
    for expected in [
        format!("{root}/mysqld.sock is left out: it is a socket"),
        format!("{root}/pipe is left out: it is a FIFO"),
        format!("{root}/postmaster.pid is left out: its server did not end cleanly"),
        format!("{root}/table has hard links outside"),
        format!("{root}/server.crt leads to /etc/passwd, which is not in the snapshot"),
    ] {
        assert!(notes.contains(&expected), "{expected} in {notes}");
    }
    assert_eq!(snapshot.notes().len(), 5, "{notes}");
    restore(&snapshot).unwrap();
    let mut left: Vec<_> = fs::read_dir(&part)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["server.crt", "table"]);
}

#[test]
fn damage_to_a_snapshot_is_found_before_anything_is_touched() {
    let fixture = Fixture::full();
    let snapshot = fixture.take().unwrap();
    let full = Options::default();
    let quick = Options {
        check: Check::Quick,
        ..full
    };
    assert_eq!(verify(&snapshot, &full, &quiet).unwrap(), []);
    assert_eq!(verify(&snapshot, &quick, &quiet).unwrap(), []);
    assert_eq!(compare_parts(&snapshot, &full, &quiet).unwrap(), []);
    let stored = snapshot.dir().join("files/0000000");
    let when = fs::metadata(&stored).unwrap().modified().unwrap();
    let file = fs::OpenOptions::new().write(true).open(&stored).unwrap();
    let mut byte = [0];
    std::os::unix::fs::FileExt::read_exact_at(&fs::File::open(&stored).unwrap(), &mut byte, 0)
        .unwrap();
    file.write_all_at(&[byte[0] ^ 1], 0).unwrap();
    file.set_modified(when).unwrap();
    drop(file);
    let damages = verify(&snapshot, &full, &quiet).unwrap();
    assert_eq!(damages.len(), 1);
    assert_eq!(damages[0].what, "content differs");
    assert_eq!(damages[0].stored, stored);
    for part in &fixture.parts {
        fs::remove_dir_all(part).unwrap();
        fs::create_dir(part).unwrap();
        fs::write(part.join("what is there"), "stays").unwrap();
    }
    let error = restore(&snapshot).unwrap_err().to_string();
    assert!(error.contains("the snapshot is damaged"), "{error}");
    check_ready(&fixture.parts).unwrap();
    for part in &fixture.parts {
        assert_eq!(fs::read(part.join("what is there")).unwrap(), b"stays");
    }
    // A quick check finds a truncated file.
    let file = fs::OpenOptions::new().write(true).open(&stored).unwrap();
    file.set_len(1).unwrap();
    assert_eq!(
        verify(&snapshot, &quick, &quiet).unwrap()[0].what,
        "size differs"
    );
}

#[test]
fn every_difference_is_reported() {
    let fixture = Fixture::full();
    let snapshot = fixture.take().unwrap();
    damage(&fixture);
    let differences = compare_parts(&snapshot, &Options::default(), &quiet).unwrap();
    let root = fixture.beside("");
    let lines: Vec<String> = differences
        .iter()
        .map(|difference| difference.to_string().replace(root.to_str().unwrap(), ""))
        .collect();
    let expected = [
        "part0: mode differs",
        "part0/PG_VERSION: mode differs",
        "part0/base: owner differs",
        "part0/base/1/1259: size differs",
        "part0/base/1/PG_VERSION: hard link to another file",
        "part0/empty: file type differs",
        "part0/sparse: modification time differs",
        "part0/stranger: not in the snapshot",
        "part0/tablespace: file type differs",
        "part0/tablespace/deep: not in the snapshot",
        "part1/16400: missing",
        "part1/PG_VERSION: hard link to another file",
    ];
    assert_eq!(lines, expected);
}
