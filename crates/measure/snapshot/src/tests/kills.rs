//! Kills a take or a restore, in a process of its own, at each of its changes (`make soak`) or at
//! every third one.

use std::env;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rustix::process::{Signal, getpid, kill_process};

use super::distance;
use super::fixture::{Fixture, damage, quiet, restore};
use super::oracle::state_of;
use crate::disk::{Disk, Op};
use crate::restore::restore_on;
use crate::take::take_on;
use crate::{NotReady, Options, Snapshot, check_ready, verify};

const POINT: &str = "SAIGA_TEST_KILL_AT";
const PLACE: &str = "SAIGA_TEST_SNAPSHOT";
const PARTS: &str = "SAIGA_TEST_PARTS";

/// Runs the test `name` in another process, which kills itself at its change number `point`.
fn child(name: &str, point: usize, fixture: &Fixture, place: &Path) -> ExitStatus {
    let parts = env::join_paths(&fixture.parts).unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("tests::kills::{name}")]);
    command
        .env(POINT, point.to_string())
        .env(PLACE, place)
        .env(PARTS, parts);
    command.output().unwrap().status
}

/// A disk that kills this process at its change number `point`. `None` outside of [`child`].
fn killing_disk() -> Option<(Disk, PathBuf, Vec<PathBuf>)> {
    let point: usize = env::var(POINT).ok()?.parse().unwrap();
    let count = AtomicUsize::new(0);
    let disk = Disk::gated(move |op| {
        let changes = !matches!(op, Op::Inspect | Op::Read);
        if changes && count.fetch_add(1, SeqCst) == point {
            kill_process(getpid(), Signal::KILL)?;
        }
        Ok(())
    });
    let place = PathBuf::from(env::var_os(PLACE).unwrap());
    let parts = env::split_paths(&env::var_os(PARTS).unwrap()).collect();
    Some((disk, place, parts))
}

/// The child process of [`a_killed_restore_is_finished_or_refused`]; does nothing on its own.
#[test]
fn restoring_child() {
    if let Some((disk, place, _)) = killing_disk() {
        let snapshot = Snapshot::open(&place).unwrap();
        restore_on(&disk, &snapshot, &Options::default(), &quiet).unwrap();
    }
}

/// The child process of [`a_killed_take_leaves_no_snapshot`]; does nothing on its own.
#[test]
fn taking_child() {
    if let Some((disk, place, parts)) = killing_disk() {
        take_on(&disk, &parts, &place, &Options::default(), &quiet).unwrap();
    }
}

#[test]
fn a_killed_restore_is_finished_or_refused() {
    let fixture = Fixture::full_alone_in_memory();
    let before = state_of(&fixture.parts);
    let snapshot = fixture.take().unwrap();
    let (mut untouched, mut unfinished) = (0, 0);
    for point in (0..).step_by(distance()) {
        damage(&fixture);
        if point % 5 == 4 {
            std::fs::remove_dir_all(fixture.part(1)).unwrap();
        }
        let damaged = state_of(&existing(&fixture));
        let status = child("restoring_child", point, &fixture, snapshot.dir());
        match check_ready(&fixture.parts) {
            Ok(()) if status.success() => {
                assert_eq!(state_of(&fixture.parts), before);
                break;
            }
            Ok(()) => {
                let now = state_of(&existing(&fixture));
                let is_whole = now == before;
                assert!(is_whole || now == damaged, "killed at {point}");
                untouched += usize::from(!is_whole);
            }
            Err(NotReady::Unfinished { .. } | NotReady::Begun(_)) => unfinished += 1,
            Err(other) => panic!("{other}"),
        }
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{status} at {point}");
        restore(&snapshot).unwrap();
        assert_eq!(state_of(&fixture.parts), before, "killed at {point}");
        check_ready(&fixture.parts).unwrap();
    }
    assert!(
        untouched > 0 && unfinished * distance() > 50,
        "{untouched} {unfinished}"
    );
}

fn existing(fixture: &Fixture) -> Vec<PathBuf> {
    let parts = fixture.parts.iter().filter(|part| part.exists());
    parts.cloned().collect()
}

#[test]
fn a_killed_take_leaves_no_snapshot() {
    let fixture = Fixture::full_alone_in_memory();
    let before = state_of(&fixture.parts);
    let mut killed = 0;
    for point in (0..).step_by(distance()) {
        let place = fixture.beside(&format!("snapshot-{point}"));
        let status = child("taking_child", point, &fixture, &place);
        assert_eq!(state_of(&fixture.parts), before);
        if let Ok(snapshot) = Snapshot::open(&place) {
            assert_eq!(verify(&snapshot, &Options::default(), &quiet).unwrap(), []);
            if status.success() {
                break;
            }
        } else {
            assert_eq!(status.signal(), Some(libc::SIGKILL), "{status} at {point}");
            killed += 1;
            // A new take into the same directory succeeds.
            crate::take(&fixture.parts, &place, &Options::default(), &quiet).unwrap();
        }
        std::fs::remove_dir_all(place).unwrap();
    }
    assert!(killed * distance() > 30, "{killed}");
}
