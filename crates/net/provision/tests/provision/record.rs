//! Records that root has not written: nothing of them has an effect.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;

use saiga_provision::{RecordError, UndoError, hold};

use crate::fake::{CARD, Fake, everything};

/// A line that takes the card from its driver.
fn line() -> String {
    format!(
        r#"{{"begin":{{"card":{{"card":"{CARD}","driver":"vfio-pci","driver_override":"x"}}}}}}"#
    )
}

fn write(record: &Path, text: &str) {
    fs::write(record, text).unwrap();
    fs::set_permissions(record, Permissions::from_mode(0o600)).unwrap();
}

/// The record is refused, and stays with the machine as it is.
fn refused(fake: &mut Fake, what: &str) -> RecordError {
    let before = fake.tree();
    let error = fake.undo().unwrap_err();
    assert_eq!(fake.tree(), before, "{what}");
    assert!(fake.prepare(&everything(fake)).is_err(), "{what}");
    assert_eq!(fake.tree(), before, "{what}");
    assert!(fake.record().symlink_metadata().is_ok(), "{what}");
    match error {
        UndoError::Record(error) => error,
        UndoError::Incomplete { reason, .. } => panic!("{what}: {reason}"),
    }
}

#[test]
fn files_of_others_are_refused() {
    type Spoil = fn(&Path);
    let spoil: [(&str, Spoil); 6] = [
        ("another owner", |file| chown(file, Some(1), None).unwrap()),
        ("writable by a group", |file| {
            fs::set_permissions(file, Permissions::from_mode(0o620)).unwrap();
        }),
        ("a second name", |file| {
            fs::hard_link(file, file.with_extension("second")).unwrap();
        }),
        ("a symbolic link", |file| {
            let target = file.with_extension("target");
            fs::rename(file, &target).unwrap();
            symlink(target, file).unwrap();
        }),
        ("a folder of another user", |file| {
            chown(file.parent().unwrap(), Some(1), None).unwrap();
        }),
        ("a folder for all", |file| {
            let mode = Permissions::from_mode(0o1777);
            fs::set_permissions(file.parent().unwrap(), mode).unwrap();
        }),
    ];
    for (what, spoil) in spoil {
        let mut fake = Fake::new();
        write(&fake.record(), &format!("{}\n", line()));
        spoil(&fake.record());
        let error = refused(&mut fake, what);
        assert!(
            matches!(error, RecordError::Unsafe { .. }),
            "{what}: {error}"
        );
        assert!(hold(&fake.record()).is_err(), "{what}");
    }
}

#[test]
fn contents_that_lead_elsewhere_are_refused() {
    let card = |card: &str, driver: &str| {
        format!(
            r#"{{"begin":{{"card":{{"card":"{card}","driver":null,"driver_override":{driver}}}}}}}"#
        )
    };
    for text in [
        card("../../0000:04:00.0", "null"),
        card(CARD, "\"a b\""),
        card(CARD, "\"../x\""),
        card(CARD, "\"a\\nb\""),
        card(CARD, "\"\""),
        r#"{"begin":{"modules":["../x"]}}"#.to_owned(),
        r#"{"begin":{"pages":{"node":"0/../../..","was":0,"wanted":1}}}"#.to_owned(),
        r#"{"begin":{"pages":{"node":0,"was":-1,"wanted":1}}}"#.to_owned(),
        r#"{"begin":{"pages":{"node":0,"was":4,"wanted":4}}}"#.to_owned(),
        r#"{"made":1}"#.to_owned(),
        r#"{"begin":{"pages":{"node":0,"was":0,"wanted":1,"path":"/etc/passwd"}}}"#.to_owned(),
        "nonsense".to_owned(),
        "x".repeat(70_000),
    ] {
        let mut fake = Fake::new();
        write(&fake.record(), &format!("{text}\n"));
        let error = refused(&mut fake, &text);
        assert!(
            matches!(error, RecordError::Damaged { line: 1, .. }),
            "{error}"
        );
    }
}

/// 655 lines of 50 bytes: the next change would take the record beyond 32 KiB.
#[test]
fn a_full_record_takes_no_change_and_is_undone() {
    let mut fake = Fake::new();
    let before = fake.tree();
    let line = r#"{"begin":{"pages":{"node":0,"was":4,"wanted":5}}}"#;
    let full = format!("{line}\n").repeat(655);
    assert_eq!(full.len(), 32_750);
    write(&fake.record(), &full);
    let error = fake.prepare(&everything(&fake)).unwrap_err().to_string();
    assert!(error.contains("too large"), "{error}");
    assert_eq!(fake.tree(), before);
    assert!(!fake.record().exists());

    write(&fake.record(), &full);
    fake.undo().unwrap();
    assert!(!fake.record().exists());
}

/// A process that is killed while it writes a line has not begun with the change.
#[test]
fn a_line_without_an_end_counts_for_nothing() {
    let mut fake = Fake::new();
    let before = fake.tree();
    write(&fake.record(), &line());
    fake.undo().unwrap();
    assert_eq!(fake.tree(), before);
    assert!(!fake.record().exists());

    drop(fake.prepare(&everything(&fake)).unwrap());
    let record = fs::read_to_string(fake.record()).unwrap();
    write(&fake.record(), &format!("{record}{{\"begin\":{{\"pa"));
    drop(fake.prepare(&everything(&fake)).unwrap());
    assert_eq!(fs::read_to_string(fake.record()).unwrap(), record);
    fake.undo().unwrap();
    assert_eq!(fake.tree(), before);
}

#[test]
fn the_record_is_root_s() {
    let mut fake = Fake::new();
    let prepared = fake.prepare(&everything(&fake)).unwrap();
    let mode = fake.record().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    // The gateway's own descriptor is not writable.
    let record = fake.record().canonicalize().unwrap();
    let entries = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let ours = entries.filter(|entry| {
        let link = Path::new("/proc/self/fd").join(entry.file_name());
        fs::read_link(link).is_ok_and(|target| target == record)
    });
    let flags = ours.map(|entry| fs::read_to_string(entry.path()).unwrap_or_default());
    let flags: Vec<String> = flags.collect();
    assert_eq!(flags.len(), 1, "{flags:?}");
    let access = flags[0]
        .lines()
        .find_map(|line| line.strip_prefix("flags:"));
    assert!(access.unwrap().ends_with('0'), "O_RDONLY: {flags:?}");
    drop(prepared);
}
