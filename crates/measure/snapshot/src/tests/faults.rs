//! A disk that fails at any one operation, and one that fails from there on.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::forest::{Forest, damage, quiet, restore};
use super::oracle::look;
use crate::disk::{Disk, Op};
use crate::restore::restore_on;
use crate::take::take_on;
use crate::{NotReady, Options, RestoreError, Snapshot, check_ready, verify};

/// How a disk fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// One operation fails, those after it do not.
    Once(i32),
    /// Every operation from then on fails.
    FromThen(i32),
}

/// Each with the distance of the points at which it is tried; a single failure is tried at all.
const FAILURES: [(Failure, usize); 3] = [
    (Failure::Once(libc::EIO), 1),
    (Failure::FromThen(libc::EIO), 5),
    (Failure::FromThen(libc::ENOSPC), 1),
];

/// A disk that fails at operation `point`, and how many operations it has been asked for.
fn failing(point: usize, failure: Failure) -> (Disk, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let disk = Disk::gated(move |op| {
        let (fails, errno) = match failure {
            Failure::Once(errno) => (counter.fetch_add(1, SeqCst) == point, errno),
            // A full disk can still be read and cleaned.
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

/// Small, with one of each kind.
fn forest() -> Forest {
    let forest = Forest::in_memory(2);
    let (data, space) = (forest.part(0), forest.part(1));
    fs::create_dir(data.join("base")).unwrap();
    fs::write(data.join("base/1"), vec![3; 5000]).unwrap();
    super::forest::sparse(&data.join("sparse"));
    std::os::unix::fs::symlink(&space, data.join("space")).unwrap();
    fs::write(space.join("2"), "two").unwrap();
    fs::hard_link(space.join("2"), data.join("2")).unwrap();
    forest
}

#[test]
fn a_take_on_a_failing_disk_is_no_snapshot() {
    let forest = forest();
    let before = look(&forest.parts);
    let options = one_thread();
    for (failure, distance) in FAILURES {
        let mut failed = 0;
        for point in (0..).step_by(distance) {
            let place = forest.beside(&format!("snapshot-{point}"));
            let (disk, count) = failing(point, failure);
            let taken = take_on(&disk, &forest.parts, &place, &options, &quiet);
            assert_eq!(look(&forest.parts), before);
            if taken.is_err() {
                failed += 1;
                check_no_snapshot(&forest, place, &options);
            } else {
                check_whole(&Snapshot::open(&place).unwrap());
                fs::remove_dir_all(&place).unwrap();
            }
            if count.load(SeqCst) <= point {
                break;
            }
        }
        assert!(failed > 10, "{failure:?} failed {failed} times");
    }
}

/// There is none, or, when only the last flush failed, a whole one; and the place can be used.
fn check_no_snapshot(forest: &Forest, place: PathBuf, options: &Options) {
    match Snapshot::open(&place) {
        Ok(snapshot) => check_whole(&snapshot),
        Err(_) => check_whole(&crate::take(&forest.parts, &place, options, &quiet).unwrap()),
    }
    fs::remove_dir_all(place).unwrap();
}

fn check_whole(snapshot: &Snapshot) {
    assert_eq!(verify(snapshot, &Options::default(), &quiet).unwrap(), []);
}

#[test]
fn a_restore_on_a_failing_disk_is_finished_by_the_next() {
    let forest = forest();
    let before = look(&forest.parts);
    let snapshot = forest.take().unwrap();
    for (failure, distance) in FAILURES {
        let (mut untouched, mut unfinished) = (0, 0);
        for point in (0..).step_by(distance) {
            harm(&forest);
            let harmed = look(&forest.parts);
            let (disk, count) = failing(point, failure);
            match restore_on(&disk, &snapshot, &one_thread(), &quiet) {
                Ok(_) => assert_eq!(look(&forest.parts), before, "{failure:?} at {point}"),
                Err(_) => match check_ready(&forest.parts) {
                    // Only the last flush failed: the removal of a mark may not last.
                    Ok(()) if look(&forest.parts) == before => {}
                    Ok(()) => {
                        untouched += 1;
                        assert_eq!(look(&forest.parts), harmed, "{failure:?} at {point}");
                    }
                    Err(NotReady::Unfinished { .. } | NotReady::Begun(_)) => unfinished += 1,
                    Err(other) => panic!("{other}"),
                },
            }
            if count.load(SeqCst) <= point {
                break;
            }
            restore(&snapshot).unwrap();
            assert_eq!(look(&forest.parts), before, "{failure:?} at {point}");
        }
        let untouched_at_all = untouched > 0 || failure == Failure::FromThen(libc::ENOSPC);
        assert!(
            untouched_at_all && unfinished > 8,
            "{failure:?} {untouched} {unfinished}"
        );
    }
}

/// As [`damage`] for the small forest.
fn harm(forest: &Forest) {
    let (data, space) = (forest.part(0), forest.part(1));
    fs::write(data.join("base/1"), "changed").unwrap();
    fs::write(data.join("stranger"), "new").unwrap();
    fs::write(data.join("sparse"), vec![1; 1 << 20]).unwrap();
    fs::remove_file(space.join("2")).unwrap();
    fs::remove_file(data.join("space")).unwrap();
    fs::create_dir(data.join("space")).unwrap();
}

/// A disk that says that it wrote, and holds other bytes.
#[test]
fn what_does_not_read_back_is_not_called_restored() {
    let forest = Forest::full_in_memory();
    let snapshot = forest.take().unwrap();
    damage(&forest);
    let table = forest.part(0).join("base/1/1259");
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
    let RestoreError::Half { dirs, why } = error else {
        panic!("{error}");
    };
    assert_eq!(dirs, forest.parts);
    let RestoreError::Differs(difference) = *why else {
        panic!("{why}");
    };
    assert_eq!((difference.path, difference.what), (table, "its bytes"));
    assert!(matches!(
        check_ready(&forest.parts),
        Err(NotReady::Unfinished { .. })
    ));
}

/// A file that grows while it is copied.
#[test]
fn what_changes_while_it_is_copied_is_no_snapshot() {
    let forest = Forest::full_in_memory();
    let table = forest.part(1).join("16400");
    let writes = table.clone();
    let disk = Disk::gated(move |op| match op {
        Op::Write => fs::write(&writes, "a server at work"),
        Op::Look | Op::Read | Op::Make | Op::Remove | Op::Dress | Op::Flush => Ok(()),
    });
    let place = forest.place();
    let error = take_on(&disk, &forest.parts, &place, &one_thread(), &quiet).unwrap_err();
    let expected = format!("{} changed while it was copied", table.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(!place.exists());
}
