//! Refused operations: the message names the cause and the remedy, and no file is changed.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use super::fixture::{Fixture, damage, quiet, restore};
use super::oracle::state_of;
use crate::disk::{Disk, Op};
use crate::restore::restore_on;
use crate::{
    InUse, LinkedFiles, NotReady, Options, Reflink, RestoreError, Snapshot, Unseen,
    check_not_running, check_ready, linked_files,
};

/// A process that uses a directory until this value is dropped.
struct Server(Child);

impl Server {
    /// Runs `program` in `dir` and waits for its line `ready`.
    fn start(program: &str, args: &[&str], dir: &Path) -> Self {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    /// Runs a Python script, which has `path` in a variable, and then waits for the end of stdin.
    fn python(script: &str, path: &Path) -> Self {
        let script = format!(
            "import sys, fcntl, mmap\npath = sys.argv[1]\n{script}\nprint('ready', flush=True)\nsys.stdin.read()"
        );
        Self::start(
            "python3",
            &["-c", &script, path.to_str().unwrap()],
            Path::new("/"),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process ends at the end of its stdin.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The error of `check_not_running` while `server` runs. Also checks that it succeeds afterwards.
fn error_while_running(fixture: &Fixture, server: Server) -> String {
    let error = check_not_running(&fixture.parts, Unseen::Refuse).unwrap_err();
    let pid = server.0.id().to_string();
    drop(server);
    check_not_running(&fixture.parts, Unseen::Refuse).unwrap();
    let root = fixture.beside("");
    error
        .to_string()
        .replace(&pid, "PID")
        .replace(root.to_str().unwrap(), "")
}

#[test]
fn a_process_that_uses_a_file_is_named() {
    let fixture = Fixture::full_alone();
    let table = fixture.part(1).join("16400");
    let opened = Server::python("f = open(path)", &table);
    assert_eq!(
        error_while_running(&fixture, opened),
        "python3 (pid PID) has open part1/16400; stop it first"
    );
    let map = "f = open(path, 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close(); import os\nfor d in os.listdir('/proc/self/fd'):\n    d = int(d)\n    try:\n        if d > 2 and os.path.samestat(os.fstat(d), os.stat(path)): os.close(d)\n    except OSError: pass";
    let mapped = Server::python(map, &table);
    assert_eq!(
        error_while_running(&fixture, mapped),
        "python3 (pid PID) has mapped part1/16400; stop it first"
    );
    let locked = Server::python(
        "f = open(path, 'r+'); fcntl.lockf(f, fcntl.LOCK_EX)",
        &table,
    );
    assert_eq!(
        error_while_running(&fixture, locked),
        "python3 (pid PID) has locked part1/16400; stop it first"
    );
    // A lock of an open file description (F_OFD_SETLK) has no pid; its process is found anyway.
    let ofd = "import struct\nf = open(path, 'r+'); fcntl.fcntl(f, 37, struct.pack('hhqqi4x', 1, 0, 0, 0, 0))";
    let locked_by_description = Server::python(ofd, &table);
    assert_eq!(
        error_while_running(&fixture, locked_by_description),
        "python3 (pid PID) has open part1/16400; stop it first"
    );
    let args = ["-c", "echo ready; read line"];
    let inside = Server::start("bash", &args, &fixture.part(0).join("base"));
    assert_eq!(
        error_while_running(&fixture, inside),
        "bash (pid PID) has as its working directory part0/base; stop it first"
    );
}

#[test]
fn take_and_restore_are_refused_while_a_server_runs() {
    let fixture = Fixture::full_alone();
    let snapshot = fixture.take().unwrap();
    damage(&fixture);
    let damaged = state_of(&fixture.parts);
    let _server = Server::python("f = open(path)", &fixture.part(0).join("sparse"));
    let error = restore(&snapshot).unwrap_err();
    assert!(
        matches!(error, RestoreError::InUse(InUse::Process { .. })),
        "{error}"
    );
    let other = fixture.beside("other");
    let error = crate::take(&fixture.parts, &other, &Options::default(), &quiet).unwrap_err();
    assert!(error.to_string().contains("python3 (pid "), "{error}");
    assert_eq!(state_of(&fixture.parts), damaged);
    assert!(!other.exists());
}

/// Interrupts a restore by its listener, after the parts have been marked.
fn interrupt(snapshot: &Snapshot) {
    let listener = |progress: crate::Progress| match progress.phase {
        crate::Phase::Copy => ControlFlow::Break(()),
        crate::Phase::Compare | crate::Phase::Check | crate::Phase::ReadBack => {
            ControlFlow::Continue(())
        }
    };
    let error = crate::restore(snapshot, &Options::default(), &listener).unwrap_err();
    let parts: Vec<String> = snapshot
        .parts()
        .iter()
        .map(|part| part.display().to_string())
        .collect();
    let expected = format!(
        "interrupted; {} are partly restored: start no server on them, run the same restore again",
        parts.join(", ")
    );
    assert_eq!(error.to_string(), expected);
}

/// Calls `once` during the comparison of a restore, and returns the error of the restore.
fn error_of_restore_disturbed_by(snapshot: &Snapshot, once: impl FnOnce() + Send) -> RestoreError {
    let once = Mutex::new(Some(once));
    let listener = |progress: crate::Progress| {
        if progress.phase == crate::Phase::Compare
            && let Some(once) = once.lock().unwrap().take()
        {
            once();
        }
        ControlFlow::Continue(())
    };
    let options = Options {
        reflink: Reflink::Never,
        ..Options::default()
    };
    crate::restore(snapshot, &options, &listener).unwrap_err()
}

/// A server that has started owns its data from then on.
#[test]
fn data_of_a_server_that_is_started_during_the_comparison_stay_unchanged() {
    let fixture = Fixture::full_alone();
    let snapshot = fixture.take().unwrap();
    damage(&fixture);
    let damaged = state_of(&fixture.parts);
    let table = fixture.part(0).join("sparse");
    let server = Mutex::new(None);
    let error = error_of_restore_disturbed_by(&snapshot, || {
        *server.lock().unwrap() = Some(Server::python("f = open(path)", &table));
    });
    assert!(
        matches!(error, RestoreError::InUse(InUse::Process { .. })),
        "{error}"
    );
    drop(server);
    assert_eq!(state_of(&fixture.parts), damaged);
    check_ready(&fixture.parts).unwrap();
}

/// A server has started and ended during the comparison, and has changed a file that was found to
/// be equal. Size and modification time are unchanged.
#[test]
fn a_file_that_changes_during_the_comparison_ends_the_restore() {
    let fixture = Fixture::full_alone();
    let before = state_of(&fixture.parts);
    let snapshot = fixture.take().unwrap();
    let table = fixture.part(0).join("base/1/1259");
    let when = fs::metadata(&table).unwrap().modified().unwrap();
    let hide = || {
        let file = fs::OpenOptions::new().write(true).open(&table).unwrap();
        file.write_all_at(b"!", 0).unwrap();
        file.set_modified(when).unwrap();
    };
    let error = error_of_restore_disturbed_by(&snapshot, hide);
    let expected = format!(
        "{} changed while it was compared with the snapshot; stop the program that writes there, \
         then restore again",
        table.display()
    );
    assert_eq!(error.to_string(), expected);
    let new = fixture.part(1).join("new");
    let error = error_of_restore_disturbed_by(&snapshot, || fs::write(&new, "new").unwrap());
    let RestoreError::Changed(path) = error else {
        panic!("{error}");
    };
    assert_eq!(path, new);
    check_ready(&fixture.parts).unwrap();
    restore(&snapshot).unwrap();
    assert_eq!(state_of(&fixture.parts), before);
}

/// An error before the first change still reports data that an earlier restore left.
#[test]
fn every_error_reports_partly_restored_data() {
    let fixture = Fixture::full_alone();
    let snapshot = fixture.take().unwrap();
    damage(&fixture);
    interrupt(&snapshot);
    let space = fixture.part(1);
    let server = Server::python("f = open(path)", &fixture.part(0).join("sparse"));
    let error = restore(&snapshot).unwrap_err().to_string();
    let end = format!(
        ", {} are partly restored: start no server on them, run the same restore again",
        space.display()
    );
    assert!(error.contains("; stop it first; "), "{error}");
    assert!(error.ends_with(&end), "{error}");
    drop(server);
    // The marks of the earlier restore remain.
    let error = error_of_restore_disturbed_by(&snapshot, || {
        fs::write(space.join("stranger"), "late").unwrap();
    });
    let RestoreError::Partial { dirs, why } = error else {
        panic!("{error}");
    };
    assert_eq!(dirs, fixture.parts);
    assert!(matches!(*why, RestoreError::Changed(_)), "{why}");
    restore(&snapshot).unwrap();
}

#[test]
fn after_an_interrupted_restore_only_the_same_restore_is_allowed() {
    let fixture = Fixture::full_alone();
    let before = state_of(&fixture.parts);
    let snapshot = fixture.take().unwrap();
    let other = fixture.beside("other");
    damage(&fixture);
    let second = crate::take(&fixture.parts, &other, &Options::default(), &quiet).unwrap();
    fs::write(fixture.part(0).join("sparse"), "other again").unwrap();
    interrupt(&snapshot);
    let remedy = format!(
        "finish it with `saiga snapshot restore {}`",
        snapshot.dir().display()
    );
    let third = fixture.beside("third");
    for refusal in [
        check_ready(&fixture.parts).unwrap_err().to_string(),
        check_ready(&fixture.parts[1..]).unwrap_err().to_string(),
        restore(&second).unwrap_err().to_string(),
        crate::take(&fixture.parts, &third, &Options::default(), &quiet)
            .unwrap_err()
            .to_string(),
        crate::compare_parts(&snapshot, &Options::default(), &quiet)
            .unwrap_err()
            .to_string(),
    ] {
        assert!(refusal.contains(&remedy), "{refusal}");
    }
    restore(&snapshot).unwrap();
    assert_eq!(state_of(&fixture.parts), before);
    restore(&second).unwrap();
}

#[test]
fn a_second_restore_at_the_same_time_is_refused() {
    let fixture = Fixture::full_alone();
    let snapshot = fixture.take().unwrap();
    damage(&fixture);
    let (parts, again) = (fixture.parts.clone(), snapshot.clone());
    let disk = Disk::gated(move |op| {
        if op == Op::SetMetadata {
            let error = check_ready(&parts).unwrap_err();
            assert!(matches!(error, NotReady::InProgress(_)), "{error}");
            let error = restore(&again).unwrap_err();
            assert!(
                matches!(error, RestoreError::NotReady(NotReady::InProgress(_))),
                "{error}"
            );
        }
        Ok(())
    });
    restore_on(&disk, &snapshot, &Options::default(), &quiet).unwrap();
    check_ready(&fixture.parts).unwrap();
}

#[test]
fn linked_directories_must_be_named() {
    let fixture = Fixture::alone(2);
    let (data, space) = (fixture.part(0), fixture.part(1));
    fs::create_dir(data.join("pg_tblspc")).unwrap();
    symlink(&space, data.join("pg_tblspc/16400")).unwrap();
    fs::write(data.join("PG_VERSION"), "15").unwrap();
    let (place, options) = (fixture.place(), Options::default());
    let alone = [data.clone()];
    let error = crate::take(&alone, &place, &options, &quiet)
        .unwrap_err()
        .to_string();
    let (data, space) = (data.display(), space.display());
    let expected = format!(
        "the snapshot would lack data outside of the named directories: {data}/pg_tblspc/16400 \
         leads to {space}; name these directories, too: {space}"
    );
    assert_eq!(error, expected);
    assert!(!place.exists());
    fixture.take().unwrap();
}

/// Examples are MyISAM's DATA DIRECTORY and a redo file on another disk. A snapshot without them is
/// incomplete.
#[test]
fn linked_files_are_left_out_only_on_request() {
    let fixture = Fixture::alone(1);
    let (data, outside) = (fixture.part(0), fixture.beside("t.MYD"));
    fs::write(&outside, "rows").unwrap();
    symlink(&outside, data.join("t.MYD")).unwrap();
    symlink("/dev/null", data.join(".mysql_history")).unwrap();
    symlink("circle", data.join("circle")).unwrap();
    let error = fixture.take().unwrap_err().to_string();
    let expected = format!(
        "the snapshot would lack files outside of the named directories: {0}/t.MYD leads to {1}; \
         move",
        data.display(),
        outside.display()
    );
    assert!(error.starts_with(&expected), "{error}");
    assert!(error.contains("--leave-linked-files"), "{error}");
    assert!(!fixture.place().exists());
    let leave = Options {
        linked_files: LinkedFiles::Leave,
        ..Options::default()
    };
    let snapshot = fixture.take_with(&leave).unwrap();
    let notes = snapshot.notes();
    assert_eq!(notes.len(), 2, "{notes:?}");
    let noted = format!("t.MYD leads to {}, which is not", outside.display());
    assert!(notes.iter().any(|note| note.contains(&noted)), "{notes:?}");
    fs::write(&outside, "other rows").unwrap();
    restore(&snapshot).unwrap();
    let external = linked_files(&snapshot).unwrap();
    let links: Vec<_> = external.into_iter().map(|one| one.link).collect();
    assert_eq!(links, [data.join("t.MYD")]);
}

#[test]
fn unusable_directories_are_named() {
    let fixture = Fixture::full_alone();
    let options = Options::default();
    let take = |to: &Path| {
        crate::take(&fixture.parts, to, &options, &quiet)
            .unwrap_err()
            .to_string()
    };
    let short = |text: String| text.replace(fixture.beside("").to_str().unwrap(), "");
    let occupied = fixture.beside("occupied");
    fs::create_dir(&occupied).unwrap();
    fs::write(occupied.join("letter"), "dear").unwrap();
    assert_eq!(
        short(take(&occupied)),
        "occupied is not empty; name a directory that does not exist yet"
    );
    assert_eq!(
        short(take(&fixture.part(0).join("snapshot"))),
        "the snapshot part0/snapshot and the directory part0 overlap; name another directory for \
         the snapshot"
    );
    assert_eq!(
        short(take(&fixture.beside("no/such"))),
        "cannot use no: No such file or directory (os error 2)"
    );
    let error = Snapshot::open(&occupied).unwrap_err().to_string();
    assert_eq!(
        short(error),
        "occupied is not a snapshot: it has no manifest.json"
    );
    fixture.take().unwrap();
    assert_eq!(
        short(take(&fixture.place())),
        "snapshot is a snapshot already; name another directory"
    );
    let missing = [fixture.beside("gone")];
    let error = crate::take(&missing, &fixture.beside("x"), &options, &quiet).unwrap_err();
    assert_eq!(
        short(error.to_string()),
        "cannot use gone: No such file or directory (os error 2)"
    );
}

/// The part is now a link to another directory, or a file.
#[test]
fn a_part_that_moved_is_not_replaced() {
    let fixture = Fixture::full_alone();
    let snapshot = fixture.take().unwrap();
    let (data, elsewhere) = (fixture.part(0), fixture.beside("elsewhere"));
    fs::rename(&data, &elsewhere).unwrap();
    symlink(&elsewhere, &data).unwrap();
    let before = state_of(std::slice::from_ref(&elsewhere));
    let error = restore(&snapshot).unwrap_err();
    assert!(matches!(error, RestoreError::Moved(_)), "{error}");
    fs::remove_file(&data).unwrap();
    fs::write(&data, "a file").unwrap();
    let error = restore(&snapshot).unwrap_err();
    assert!(matches!(error, RestoreError::Moved(_)), "{error}");
    assert_eq!(state_of(&[elsewhere]), before);
}

#[test]
fn a_manifest_that_was_edited_is_refused() {
    let fixture = Fixture::full_alone();
    let snapshot = fixture.take().unwrap();
    let path = snapshot.dir().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    for (from, to, expected) in [
        (
            "\"format_version\":1",
            "\"format_version\":2",
            "it has format 2, and this version of saiga reads format 1",
        ),
        (
            "\"path\":\"base/1/1259\"",
            "\"path\":\"../../1259\"",
            "the path ../../1259 is not valid",
        ),
        (
            "\"path\":\"base/1/1259\"",
            "\"path\":\"/etc/passwd\"",
            "the path /etc/passwd is not valid",
        ),
        (
            "\"path\":\"empty\"",
            "\"path\":\"base\"",
            "the path base is not valid",
        ),
        (
            "\"path\":\"empty\"",
            "\"path\":\"em//pty\"",
            "the path em//pty is not valid",
        ),
        (
            "\"target_part\":0",
            "\"target_part\":7",
            "the path PG_VERSION is not valid",
        ),
        (
            "\"mode\":\"0400\"",
            "\"mode\":\"0666\"",
            "its content was changed after the snapshot was taken",
        ),
        (
            "\"size\":100000",
            "\"size\":9000000",
            "the field size is missing or has a value that saiga never writes",
        ),
        (
            "\"stored\":1",
            "\"stored\":0",
            "the field stored is missing or has a value that saiga never writes",
        ),
        ("\"notes\"", "\"noted\"", "unknown field `noted`"),
        ("{", "<", "expected value at line 1 column 1"),
    ] {
        let edited = text.replacen(from, to, 1);
        assert_ne!(edited, text, "{from}");
        fs::write(&path, edited).unwrap();
        let error = Snapshot::open(snapshot.dir()).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
    fs::write(&path, text).unwrap();
    Snapshot::open(snapshot.dir()).unwrap();
}
