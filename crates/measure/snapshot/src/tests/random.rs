//! Property test: after random changes a restore brings back a random tree.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;

use super::fixture::{Fixture, quiet, restore};
use super::oracle::state_of;
use crate::{Check, Options, compare_parts};

/// One change of a tree. An impossible change (such as a file below a file) has no effect.
#[derive(Debug, Clone)]
enum Change {
    Folder(Name),
    Write(Name, u8, usize),
    /// Writes 300 bytes at an offset, which makes a hole before them or changes the file.
    Poke(Name, u64, u8),
    Truncate(Name, u64),
    Remove(Name),
    Symlink(Name, Name),
    HardLink(Name, Name),
    Rename(Name, Name),
    Mode(Name, u32),
    Touch(Name, u32),
}

/// Index of a part, and a few components from a small alphabet, so that names collide.
type Name = (usize, Vec<u8>);

const ALPHABET: [&[u8]; 6] = [b"a", b"b", b"c", b"\xff", b"new\nline", b"base"];

fn name() -> impl Strategy<Value = Name> {
    (0..2_usize, vec(0..6_u8, 1..4))
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => name().prop_map(Change::Folder),
        3 => (name(), any::<u8>(), 0..9000_usize).prop_map(|(n, b, l)| Change::Write(n, b, l)),
        3 => (name(), 0..3_000_000_u64, any::<u8>()).prop_map(|(n, o, b)| Change::Poke(n, o, b)),
        1 => (name(), 0..2_000_000_u64).prop_map(|(n, l)| Change::Truncate(n, l)),
        2 => name().prop_map(Change::Remove),
        1 => (name(), name()).prop_map(|(n, t)| Change::Symlink(n, t)),
        2 => (name(), name()).prop_map(|(n, t)| Change::HardLink(n, t)),
        1 => (name(), name()).prop_map(|(n, t)| Change::Rename(n, t)),
        1 => (name(), 0..0o10000_u32).prop_map(|(n, m)| Change::Mode(n, m)),
        1 => (name(), any::<u32>()).prop_map(|(n, t)| Change::Touch(n, t)),
    ]
}

fn path(fixture: &Fixture, (part, name): &Name) -> PathBuf {
    let mut path = fixture.part(*part);
    for letter in name {
        let letter = ALPHABET.get(usize::from(*letter)).unwrap();
        path.push(std::ffi::OsStr::from_bytes(letter));
    }
    path
}

fn apply(fixture: &Fixture, change: &Change) {
    let path = |name| path(fixture, name);
    // An impossible change has no effect.
    let _ = match change {
        Change::Folder(name) => fs::create_dir_all(path(name)),
        Change::Write(name, byte, len) => fs::write(path(name), vec![*byte; *len]),
        Change::Poke(name, offset, byte) => poke(&path(name), *offset, *byte),
        Change::Truncate(name, len) => {
            let file = fs::OpenOptions::new().write(true).open(path(name));
            file.and_then(|file| file.set_len(*len))
        }
        Change::Remove(name) => match fs::symlink_metadata(path(name)) {
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(path(name)),
            _ => fs::remove_file(path(name)),
        },
        Change::Symlink(name, target) => symlink(path(target), path(name)),
        Change::HardLink(name, target) => fs::hard_link(path(target), path(name)),
        Change::Rename(name, target) => fs::rename(path(target), path(name)),
        Change::Mode(name, mode) => {
            fs::set_permissions(path(name), fs::Permissions::from_mode(*mode))
        }
        Change::Touch(name, when) => {
            let when = std::time::Duration::new((*when).into(), *when % 1_000_000_000);
            let file = fs::File::open(path(name));
            file.and_then(|file| file.set_modified(std::time::UNIX_EPOCH + when))
        }
    };
}

fn poke(path: &Path, offset: u64, byte: u8) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.write_all_at(&[byte; 300], offset)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_tree_comes_back_from_any_damage(
        made in vec(change(), 0..40),
        damage in vec(change(), 0..40),
        is_quick: bool,
    ) {
        let fixture = Fixture::in_memory(2);
        made.iter().for_each(|change| apply(&fixture, change));
        let before = state_of(&fixture.parts);
        let snapshot = fixture.take().unwrap();
        damage.iter().for_each(|change| apply(&fixture, change));
        let damaged = state_of(&fixture.parts);
        let options = Options {
            check: if is_quick { Check::Quick } else { Check::Auto },
            ..Options::default()
        };
        let differences = compare_parts(&snapshot, &Options::default(), &quiet).unwrap();
        prop_assert_eq!(differences.is_empty(), damaged == before, "{:?}", differences);
        crate::restore(&snapshot, &options, &quiet).unwrap();
        prop_assert_eq!(state_of(&fixture.parts), before);
        prop_assert_eq!(compare_parts(&snapshot, &Options::default(), &quiet).unwrap(), []);
        // A second restore has nothing to write.
        prop_assert_eq!(restore(&snapshot).unwrap().written_bytes, 0);
    }
}
