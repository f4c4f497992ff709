//! SIGKILL at every change of a disk, in a process of its own.

use std::env;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rustix::process::{Signal, getpid, kill_process};

use super::forest::{Forest, damage, quiet, restore};
use super::oracle::look;
use crate::disk::{Disk, Op};
use crate::restore::restore_on;
use crate::take::take_on;
use crate::{NotReady, Options, Snapshot, check_ready, verify};

const POINT: &str = "SAIGA_TEST_KILL_AT";
const PLACE: &str = "SAIGA_TEST_SNAPSHOT";
const PARTS: &str = "SAIGA_TEST_PARTS";

/// Runs the test `child` in another process, which ends itself at its change number `point`.
fn child(name: &str, point: usize, forest: &Forest, place: &Path) -> ExitStatus {
    let parts = env::join_paths(&forest.parts).unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("tests::kills::{name}")]);
    command
        .env(POINT, point.to_string())
        .env(PLACE, place)
        .env(PARTS, parts);
    command.output().unwrap().status
}

/// A disk whose change number `point` this process does not live to see.
fn deadly() -> Option<(Disk, PathBuf, Vec<PathBuf>)> {
    let point: usize = env::var(POINT).ok()?.parse().unwrap();
    let count = AtomicUsize::new(0);
    let disk = Disk::gated(move |op| {
        let changes = !matches!(op, Op::Look | Op::Read);
        if changes && count.fetch_add(1, SeqCst) == point {
            kill_process(getpid(), Signal::KILL)?;
        }
        Ok(())
    });
    let place = PathBuf::from(env::var_os(PLACE).unwrap());
    let parts = env::split_paths(&env::var_os(PARTS).unwrap()).collect();
    Some((disk, place, parts))
}

/// What [`a_killed_restore_is_finished_or_refused`] starts; by itself it has nothing to restore.
#[test]
fn restoring_child() {
    if let Some((disk, place, _)) = deadly() {
        let snapshot = Snapshot::open(&place).unwrap();
        restore_on(&disk, &snapshot, &Options::default(), &quiet).unwrap();
    }
}

/// What [`a_killed_take_is_no_snapshot`] starts; by itself it has nothing to take.
#[test]
fn taking_child() {
    if let Some((disk, place, parts)) = deadly() {
        take_on(&disk, &parts, &place, &Options::default(), &quiet).unwrap();
    }
}

#[test]
fn a_killed_restore_is_finished_or_refused() {
    let forest = Forest::full_alone_in_memory();
    let before = look(&forest.parts);
    let snapshot = forest.take().unwrap();
    let (mut untouched, mut unfinished) = (0, 0);
    for point in 0.. {
        damage(&forest);
        if point % 5 == 4 {
            std::fs::remove_dir_all(forest.part(1)).unwrap();
        }
        let damaged = look(&existing(&forest));
        let status = child("restoring_child", point, &forest, snapshot.dir());
        match check_ready(&forest.parts) {
            Ok(()) if status.success() => {
                assert_eq!(look(&forest.parts), before);
                break;
            }
            Ok(()) => {
                let now = look(&existing(&forest));
                let is_whole = now == before;
                assert!(is_whole || now == damaged, "killed at {point}");
                untouched += usize::from(!is_whole);
            }
            Err(NotReady::Unfinished { .. } | NotReady::Begun(_)) => unfinished += 1,
            Err(other) => panic!("{other}"),
        }
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{status} at {point}");
        restore(&snapshot).unwrap();
        assert_eq!(look(&forest.parts), before, "killed at {point}");
        check_ready(&forest.parts).unwrap();
    }
    assert!(untouched > 0 && unfinished > 50, "{untouched} {unfinished}");
}

fn existing(forest: &Forest) -> Vec<PathBuf> {
    let parts = forest.parts.iter().filter(|part| part.exists());
    parts.cloned().collect()
}

#[test]
fn a_killed_take_is_no_snapshot() {
    let forest = Forest::full_alone_in_memory();
    let before = look(&forest.parts);
    let mut killed = 0;
    for point in 0.. {
        let place = forest.beside(&format!("snapshot-{point}"));
        let status = child("taking_child", point, &forest, &place);
        assert_eq!(look(&forest.parts), before);
        if let Ok(snapshot) = Snapshot::open(&place) {
            assert_eq!(verify(&snapshot, &Options::default(), &quiet).unwrap(), []);
            if status.success() {
                break;
            }
        } else {
            assert_eq!(status.signal(), Some(libc::SIGKILL), "{status} at {point}");
            killed += 1;
            // The same place can be used again.
            crate::take(&forest.parts, &place, &Options::default(), &quiet).unwrap();
        }
        std::fs::remove_dir_all(place).unwrap();
    }
    assert!(killed > 30, "{killed}");
}
