//! Take and restore on a disk that fails once, or from some operation on, at every operation.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::distance;
use super::fixture::{Fixture, damage, quiet, restore};
use super::oracle::state_of;
use crate::disk::{Disk, Op};
use crate::restore::restore_on;
use crate::take::take_on;
use crate::{NotReady, Options, RestoreError, Snapshot, check_ready, verify};

/// Behaviour of a failing disk, with the errno of its failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// A single operation fails.
    Once(i32),
    /// One operation and all later ones fail.
    FromThen(i32),
}

/// Failures, each with the least distance between the operations at which it is tried.
const FAILURES: [(Failure, usize); 3] = [
    (Failure::Once(libc::EIO), 1),
    (Failure::FromThen(libc::EIO), 5),
    (Failure::FromThen(libc::ENOSPC), 1),
];

/// A disk that fails at operation `point`, and the counter of its operations.
fn failing(point: usize, failure: Failure) -> (Disk, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let disk = Disk::gated(move |op| {
        let (fails, errno) = match failure {
            Failure::Once(errno) => (counter.fetch_add(1, SeqCst) == point, errno),
            // On a full disk, reading and removing still work.
            Failure::FromThen(libc::ENOSPC) if !matches!(op, Op::Write | Op::Make) => {
                (false, libc::ENOSPC)
            }
            Failure::FromThen(errno) => (counter.fetch_add(1, SeqCst) >= point, errno),
        };
        if fails {
            Err(io::Error::from_raw_os_error(errno))
        } else {
            Ok(())
        }
    });
    (disk, count)
}

fn one_thread() -> Options {
    Options {
        threads: NonZeroUsize::new(1),
        ..Options::default()
    }
}

/// A small fixture with one file of each kind.
fn fixture() -> Fixture {
    let fixture = Fixture::in_memory(2);
    let (data, space) = (fixture.part(0), fixture.part(1));
    fs::create_dir(data.join("base")).unwrap();
    fs::write(data.join("base/1"), vec![3; 5000]).unwrap();
    super::fixture::sparse(&data.join("sparse"));
    std::os::unix::fs::symlink(&space, data.join("space")).unwrap();
    fs::write(space.join("2"), "two").unwrap();
    fs::hard_link(space.join("2"), data.join("2")).unwrap();
    fixture
}

#[test]
fn a_take_on_a_failing_disk_leaves_no_snapshot() {
    let fixture = fixture();
    let before = state_of(&fixture.parts);
    let options = one_thread();
    for (failure, least) in FAILURES {
        let distance = least.max(distance());
        let mut failed = 0;
        for point in (0..).step_by(distance) {
            let place = fixture.beside(&format!("snapshot-{point}"));
            let (disk, count) = failing(point, failure);
            let taken = take_on(&disk, &fixture.parts, &place, &options, &quiet);
            assert_eq!(state_of(&fixture.parts), before);
            if taken.is_err() {
                failed += 1;
                check_no_snapshot(&fixture, place, &options);
            } else {
                check_whole(&Snapshot::open(&place).unwrap());
                fs::remove_dir_all(&place).unwrap();
            }
            if count.load(SeqCst) <= point {
                break;
            }
        }
        assert!(
            failed * distance / least > 10,
            "{failure:?} failed {failed} times"
        );
    }
}

/// After a failed take there is no snapshot, and a new take succeeds. If only the last flush
/// failed, the snapshot is complete.
fn check_no_snapshot(fixture: &Fixture, place: PathBuf, options: &Options) {
    match Snapshot::open(&place) {
        Ok(snapshot) => check_whole(&snapshot),
        Err(_) => check_whole(&crate::take(&fixture.parts, &place, options, &quiet).unwrap()),
    }
    fs::remove_dir_all(place).unwrap();
}

fn check_whole(snapshot: &Snapshot) {
    assert_eq!(verify(snapshot, &Options::default(), &quiet).unwrap(), []);
}

#[test]
fn a_restore_on_a_failing_disk_is_finished_by_the_next_restore() {
    let fixture = fixture();
    let before = state_of(&fixture.parts);
    let snapshot = fixture.take().unwrap();
    for (failure, least) in FAILURES {
        let distance = least.max(distance());
        let (mut untouched, mut unfinished) = (0, 0);
        for point in (0..).step_by(distance) {
            harm(&fixture);
            let harmed = state_of(&fixture.parts);
            let (disk, count) = failing(point, failure);
            match restore_on(&disk, &snapshot, &one_thread(), &quiet) {
                Ok(_) => assert_eq!(state_of(&fixture.parts), before, "{failure:?} at {point}"),
                Err(_) => match check_ready(&fixture.parts) {
                    // Only the flush after the removal of the last mark failed.
                    Ok(()) if state_of(&fixture.parts) == before => {}
                    Ok(()) => {
                        untouched += 1;
                        assert_eq!(state_of(&fixture.parts), harmed, "{failure:?} at {point}");
                    }
                    Err(NotReady::Unfinished { .. } | NotReady::Begun(_)) => unfinished += 1,
                    Err(other) => panic!("{other}"),
                },
            }
            if count.load(SeqCst) <= point {
                break;
            }
            restore(&snapshot).unwrap();
            assert_eq!(state_of(&fixture.parts), before, "{failure:?} at {point}");
        }
        let some_untouched = untouched > 0 || failure == Failure::FromThen(libc::ENOSPC);
        assert!(
            some_untouched && unfinished * distance / least > 8,
            "{failure:?} {untouched} {unfinished}"
        );
    }
}

/// The equivalent of [`damage`] for the small fixture.
fn harm(fixture: &Fixture) {
    let (data, space) = (fixture.part(0), fixture.part(1));
    fs::write(data.join("base/1"), "changed").unwrap();
    fs::write(data.join("stranger"), "new").unwrap();
    fs::write(data.join("sparse"), vec![1; 1 << 20]).unwrap();
    fs::remove_file(space.join("2")).unwrap();
    fs::remove_file(data.join("space")).unwrap();
    fs::create_dir(data.join("space")).unwrap();
}

/// A disk that reports success and stores other bytes.
#[test]
fn a_restore_fails_if_other_bytes_are_read_back() {
    let fixture = Fixture::full_in_memory();
    let snapshot = fixture.take().unwrap();
    damage(&fixture);
    let table = fixture.part(0).join("base/1/1259");
    let flips = table.clone();
    let disk = Disk::gated(move |op| {
        if op == Op::Flush && flips.metadata()?.len() == 3 * (1 << 20) + 17 {
            use std::os::unix::fs::FileExt as _;
            let when = flips.metadata()?.modified()?;
            let file = fs::OpenOptions::new().write(true).open(&flips)?;
            file.write_all_at(b"rot", 1 << 20)?;
            file.set_modified(when)?;
        }
        Ok(())
    });
    let error = restore_on(&disk, &snapshot, &one_thread(), &quiet).unwrap_err();
    let RestoreError::Partial { dirs, why } = error else {
        panic!("{error}");
    };
    assert_eq!(dirs, fixture.parts);
    let RestoreError::Differs(difference) = *why else {
        panic!("{why}");
    };
    assert_eq!(
        (difference.path, difference.what),
        (table, "content differs")
    );
    assert!(matches!(
        check_ready(&fixture.parts),
        Err(NotReady::Unfinished { .. })
    ));
}

/// A file is written to while it is copied.
#[test]
fn a_take_fails_if_a_file_changes_during_the_copy() {
    let fixture = Fixture::full_in_memory();
    let table = fixture.part(1).join("16400");
    let writes = table.clone();
    let disk = Disk::gated(move |op| match op {
        Op::Write => fs::write(&writes, "a server at work"),
        Op::Inspect | Op::Read | Op::Make | Op::Remove | Op::SetMetadata | Op::Flush => Ok(()),
    });
    let place = fixture.place();
    let error = take_on(&disk, &fixture.parts, &place, &one_thread(), &quiet).unwrap_err();
    let expected = format!("{} changed while it was copied", table.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(!place.exists());
}
