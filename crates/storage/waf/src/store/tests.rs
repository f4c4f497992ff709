//! The sample file: round trips, refused files, and the effects of other programs and full disks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::moment::Moment;
use crate::source::{Counters, MOST_BYTES, Source, Steps};
use crate::wear::Wear;

fn sample(serial: &str, group: Option<u16>, host: u128) -> Sample {
    Sample {
        taken: Moment {
            unix_ms: 1_795_330_800_123,
            boot: "b".to_owned(),
            since_boot_ms: 77,
        },
        path: "/dev/nvme0".to_owned(),
        drive: DriveId {
            model: "M, \"quoted\"".to_owned(),
            serial: serial.to_owned(),
            group,
        },
        firmware: "1.0".to_owned(),
        source: Source::Ocp,
        steps: Steps {
            host: 512_000,
            media: 1,
        },
        counters: Counters {
            host,
            media: host + 5,
        },
        wear: (host % 2 == 1).then_some(Wear {
            used_percent: 255,
            spare_percent: 99,
            threshold_percent: 10,
            warnings: 5,
            host: MOST_BYTES,
        }),
    }
}

#[test]
fn samples_are_read_back_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("waf.db");
    let samples = [
        sample("1", None, MOST_BYTES),
        sample("1", Some(2), 7),
        sample("2", None, u128::from(u64::MAX) + 1),
        sample("1", None, 0),
    ];
    for sample in &samples {
        Store::open(&path).unwrap().put(sample).unwrap();
    }
    let store = Store::read(&path).unwrap();
    assert_eq!(store.all().unwrap(), samples);
    let last = |index: usize| store.last(&samples[index].drive).unwrap().unwrap();
    assert_eq!(last(0), samples[3]);
    assert_eq!(last(1), samples[1]);
    let stranger = sample("3", None, 0).drive;
    assert_eq!(store.last(&stranger).unwrap(), None);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "no journal stays behind: {names:?}");
}

#[test]
fn other_files_are_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    fs::write(
        &text,
        "no database, and longer than a header of one hundred bytes".repeat(3),
    )
    .unwrap();
    let before = fs::read(&text).unwrap();
    assert!(matches!(
        Store::open(&text),
        Err(StoreError::Foreign { .. })
    ));
    assert!(matches!(
        Store::read(&text),
        Err(StoreError::Foreign { .. })
    ));
    assert_eq!(fs::read(&text).unwrap(), before);

    let other = dir.path().join("other.db");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE t (a)")
        .unwrap();
    assert!(matches!(
        Store::open(&other),
        Err(StoreError::Foreign { .. })
    ));
    assert!(matches!(
        Store::read(&other),
        Err(StoreError::Foreign { .. })
    ));
    let newer = dir.path().join("newer.db");
    drop(Store::open(&newer).unwrap());
    Connection::open(&newer)
        .unwrap()
        .pragma_update(None, "user_version", 3)
        .unwrap();
    let error = Store::open(&newer).unwrap_err();
    assert!(
        matches!(error, StoreError::Version { version: 3, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("use a newer saiga"));
    let missing = Store::read(&dir.path().join("none.db")).unwrap_err();
    assert!(matches!(missing, StoreError::Missing { .. }));
    assert!(!dir.path().join("none.db").exists());
}

/// A reader uses the file unchanged; a writer adds the columns.
#[test]
fn a_file_of_the_first_version_is_read_and_continued() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("waf.db");
    Store::open(&path)
        .unwrap()
        .put(&sample("1", None, 2))
        .unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "ALTER TABLE sample DROP COLUMN life_used_percent;
             ALTER TABLE sample DROP COLUMN spare_percent;
             ALTER TABLE sample DROP COLUMN spare_threshold_percent;
             ALTER TABLE sample DROP COLUMN critical_warning;
             ALTER TABLE sample DROP COLUMN life_host_bytes;
             PRAGMA user_version = 1;",
        )
        .unwrap();
    let before = fs::read(&path).unwrap();
    let store = Store::read(&path).unwrap();
    assert_eq!(store.all().unwrap(), [sample("1", None, 2)]);
    drop(store);
    assert_eq!(fs::read(&path).unwrap(), before);
    let mut store = Store::open(&path).unwrap();
    store.put(&sample("1", None, 3)).unwrap();
    let both = [sample("1", None, 2), sample("1", None, 3)];
    assert!(both[1].wear.is_some());
    assert_eq!(Store::read(&path).unwrap().all().unwrap(), both);
}

/// A process killed right after the creation leaves an empty file.
#[test]
fn an_empty_file_becomes_a_sample_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("waf.db");
    fs::write(&path, "").unwrap();
    let error = Store::read(&path).unwrap_err();
    assert!(matches!(error, StoreError::Empty { .. }), "{error}");
    assert!(error.to_string().contains("waf.db is empty"), "{error}");
    Store::open(&path)
        .unwrap()
        .put(&sample("1", None, 1))
        .unwrap();
    assert_eq!(Store::read(&path).unwrap().all().unwrap().len(), 1);
}

#[test]
fn a_locked_file_is_an_error_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("waf.db");
    Store::open(&path)
        .unwrap()
        .put(&sample("1", None, 1))
        .unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = Store::open(&path)
        .and_then(|mut store| store.put(&sample("1", None, 2)))
        .unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(error.is_temporary());
    holder.execute_batch("COMMIT").unwrap();
    Store::open(&path)
        .unwrap()
        .put(&sample("1", None, 3))
        .unwrap();
    assert_eq!(Store::read(&path).unwrap().all().unwrap().len(), 2);
}

#[test]
fn invalid_values_are_named() {
    for (column, value) in [
        ("host_bytes", "'-1'"),
        ("media_bytes", "'1e3'"),
        ("host_bytes", "'340282366920938463463374607431768211455'"),
        ("host_step", "'0'"),
        ("source", "'guess'"),
        ("endurance_group", "70000"),
        ("model", "char(27) || '[2J'"),
        ("life_used_percent", "256"),
        ("spare_percent", "NULL"),
        ("life_host_bytes", "'many'"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("waf.db");
        Store::open(&path)
            .unwrap()
            .put(&sample("1", None, 1))
            .unwrap();
        let change = format!("UPDATE sample SET {column} = {value}");
        Connection::open(&path)
            .unwrap()
            .execute_batch(&change)
            .unwrap();
        let error = Store::read(&path).unwrap().all().unwrap_err();
        assert!(matches!(error, StoreError::Row { .. }), "{error}");
        assert!(error.to_string().contains(column), "{error}");
    }
}

/// The state after a power failure during a large change: half of the change in the file, and the
/// journal.
#[test]
fn half_a_change_is_rolled_back_by_the_next_reader() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("waf.db");
    Store::open(&path)
        .unwrap()
        .put(&sample("1", None, 1))
        .unwrap();
    let whole = fs::read(&path).unwrap();
    let writer = Connection::open(&path).unwrap();
    writer.pragma_update(None, "cache_size", 1).unwrap();
    writer
        .execute_batch(
            "BEGIN; UPDATE sample SET host_bytes = '7';
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
             INSERT INTO sample SELECT NULL, 0, 'b', 0, 'p', 'm', 's', NULL, 'f', 'fdp', '1', '1', '1', '1',
                 NULL, NULL, NULL, NULL, NULL FROM n;",
        )
        .unwrap();
    let cut = tempfile::tempdir().unwrap();
    for name in ["waf.db", "waf.db-journal"] {
        fs::copy(dir.path().join(name), cut.path().join(name)).unwrap();
    }
    let path = cut.path().join("waf.db");
    assert_ne!(
        fs::read(&path).unwrap(),
        whole,
        "nothing of the change is in the file yet"
    );
    let all = Store::read(&path).unwrap().all().unwrap();
    assert_eq!(all, [sample("1", None, 1)]);
}
