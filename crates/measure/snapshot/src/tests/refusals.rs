//! Bad input and bad moments: a message that names the thing and the way out, and nothing touched.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use super::forest::{Forest, damage, quiet, restore};
use super::oracle::look;
use crate::disk::{Disk, Op};
use crate::restore::restore_on;
use crate::{
    InUse, LinkedFiles, NotReady, Options, Reflink, RestoreError, Snapshot, Unseen,
    check_not_running, check_ready, linked_files,
};

/// A process that is at work in a directory until it is dropped.
struct Server(Child);

impl Server {
    /// Runs `script` in `dir` until it says that it is there.
    fn start(program: &str, words: &[&str], dir: &Path) -> Self {
        let mut command = Command::new(program);
        command
            .args(words)
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

    /// A Python script that has `path` as its argument and goes on until its input ends.
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
        // Its input ends, and so does it.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// What is said while `server` runs, and that nothing is said when it has ended.
fn said_of(forest: &Forest, server: Server) -> String {
    let error = check_not_running(&forest.parts, Unseen::Refuse).unwrap_err();
    let pid = server.0.id().to_string();
    drop(server);
    check_not_running(&forest.parts, Unseen::Refuse).unwrap();
    let root = forest.beside("");
    error
        .to_string()
        .replace(&pid, "PID")
        .replace(root.to_str().unwrap(), "")
}

#[test]
fn a_process_at_work_is_named() {
    let forest = Forest::full_alone();
    let table = forest.part(1).join("16400");
    let opened = Server::python("f = open(path)", &table);
    assert_eq!(
        said_of(&forest, opened),
        "python3 (pid PID) has open part1/16400; stop it first"
    );
    let map = "f = open(path, 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close(); import os\nfor d in os.listdir('/proc/self/fd'):\n    d = int(d)\n    try:\n        if d > 2 and os.path.samestat(os.fstat(d), os.stat(path)): os.close(d)\n    except OSError: pass";
    let mapped = Server::python(map, &table);
    assert_eq!(
        said_of(&forest, mapped),
        "python3 (pid PID) has mapped part1/16400; stop it first"
    );
    let locked = Server::python(
        "f = open(path, 'r+'); fcntl.lockf(f, fcntl.LOCK_EX)",
        &table,
    );
    assert_eq!(
        said_of(&forest, locked),
        "python3 (pid PID) has locked part1/16400; stop it first"
    );
    // The lock of an open file description (F_OFD_SETLK) has no pid; its holder is found all the same.
    let ofd = "import struct\nf = open(path, 'r+'); fcntl.fcntl(f, 37, struct.pack('hhqqi4x', 1, 0, 0, 0, 0))";
    let described = Server::python(ofd, &table);
    assert_eq!(
        said_of(&forest, described),
        "python3 (pid PID) has open part1/16400; stop it first"
    );
    let words = ["-c", "echo ready; read line"];
    let inside = Server::start("bash", &words, &forest.part(0).join("base"));
    assert_eq!(
        said_of(&forest, inside),
        "bash (pid PID) has as its working directory part0/base; stop it first"
    );
}

#[test]
fn nothing_is_taken_from_or_put_under_a_running_server() {
    let forest = Forest::full_alone();
    let snapshot = forest.take().unwrap();
    damage(&forest);
    let damaged = look(&forest.parts);
    let _server = Server::python("f = open(path)", &forest.part(0).join("sparse"));
    let error = restore(&snapshot).unwrap_err();
    assert!(
        matches!(error, RestoreError::InUse(InUse::Process { .. })),
        "{error}"
    );
    let other = forest.beside("other");
    let error = crate::take(&forest.parts, &other, &Options::default(), &quiet).unwrap_err();
    assert!(error.to_string().contains("python3 (pid "), "{error}");
    assert_eq!(look(&forest.parts), damaged);
    assert!(!other.exists());
}

/// Interrupts a restore by its listener, when everything has been marked.
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
        "interrupted; {} are half restored: start no server on them, run the same restore again",
        parts.join(", ")
    );
    assert_eq!(error.to_string(), expected);
}

/// Does `once` as soon as a restore compares, and comes back with the restore's error.
fn refused_while_compared(snapshot: &Snapshot, once: impl FnOnce() + Send) -> RestoreError {
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

/// It has found the data, and they are its own now.
#[test]
fn a_server_that_is_started_while_a_restore_compares_keeps_its_data() {
    let forest = Forest::full_alone();
    let snapshot = forest.take().unwrap();
    damage(&forest);
    let damaged = look(&forest.parts);
    let table = forest.part(0).join("sparse");
    let server = Mutex::new(None);
    let error = refused_while_compared(&snapshot, || {
        *server.lock().unwrap() = Some(Server::python("f = open(path)", &table));
    });
    assert!(
        matches!(error, RestoreError::InUse(InUse::Process { .. })),
        "{error}"
    );
    drop(server);
    assert_eq!(look(&forest.parts), damaged);
    check_ready(&forest.parts).unwrap();
}

/// It has ended, and what was found to be right is so no more. Sizes and times do not tell.
#[test]
fn what_a_server_changed_while_a_restore_compared_is_not_certified() {
    let forest = Forest::full_alone();
    let before = look(&forest.parts);
    let snapshot = forest.take().unwrap();
    let table = forest.part(0).join("base/1/1259");
    let when = fs::metadata(&table).unwrap().modified().unwrap();
    let hide = || {
        let file = fs::OpenOptions::new().write(true).open(&table).unwrap();
        file.write_all_at(b"!", 0).unwrap();
        file.set_modified(when).unwrap();
    };
    let error = refused_while_compared(&snapshot, hide);
    let expected = format!(
        "{} changed while it was compared with the snapshot; stop what writes there, then restore again",
        table.display()
    );
    assert_eq!(error.to_string(), expected);
    let new = forest.part(1).join("new");
    let error = refused_while_compared(&snapshot, || fs::write(&new, "new").unwrap());
    let RestoreError::Changed(path) = error else {
        panic!("{error}");
    };
    assert_eq!(path, new);
    check_ready(&forest.parts).unwrap();
    restore(&snapshot).unwrap();
    assert_eq!(look(&forest.parts), before);
}

/// A refusal that comes before anything is done says what an earlier restore has left.
#[test]
fn half_restored_data_are_told_with_every_error() {
    let forest = Forest::full_alone();
    let snapshot = forest.take().unwrap();
    damage(&forest);
    interrupt(&snapshot);
    let space = forest.part(1);
    let server = Server::python("f = open(path)", &forest.part(0).join("sparse"));
    let error = restore(&snapshot).unwrap_err().to_string();
    let end = format!(
        ", {} are half restored: start no server on them, run the same restore again",
        space.display()
    );
    assert!(error.contains("; stop it first; "), "{error}");
    assert!(error.ends_with(&end), "{error}");
    drop(server);
    // Nothing of an earlier restore's marks is taken back.
    let error = refused_while_compared(&snapshot, || {
        fs::write(space.join("stranger"), "late").unwrap();
    });
    let RestoreError::Half { dirs, why } = error else {
        panic!("{error}");
    };
    assert_eq!(dirs, forest.parts);
    assert!(matches!(*why, RestoreError::Changed(_)), "{why}");
    restore(&snapshot).unwrap();
}

#[test]
fn an_interrupted_restore_lets_nothing_else_pass() {
    let forest = Forest::full_alone();
    let before = look(&forest.parts);
    let snapshot = forest.take().unwrap();
    let other = forest.beside("other");
    damage(&forest);
    let second = crate::take(&forest.parts, &other, &Options::default(), &quiet).unwrap();
    fs::write(forest.part(0).join("sparse"), "other again").unwrap();
    interrupt(&snapshot);
    let way_out = format!(
        "finish it with `saiga snapshot restore {}`",
        snapshot.dir().display()
    );
    let third = forest.beside("third");
    for refusal in [
        check_ready(&forest.parts).unwrap_err().to_string(),
        check_ready(&forest.parts[1..]).unwrap_err().to_string(),
        restore(&second).unwrap_err().to_string(),
        crate::take(&forest.parts, &third, &Options::default(), &quiet)
            .unwrap_err()
            .to_string(),
        crate::compare_parts(&snapshot, &Options::default(), &quiet)
            .unwrap_err()
            .to_string(),
    ] {
        assert!(refusal.contains(&way_out), "{refusal}");
    }
    restore(&snapshot).unwrap();
    assert_eq!(look(&forest.parts), before);
    restore(&second).unwrap();
}

#[test]
fn two_restores_do_not_meet() {
    let forest = Forest::full_alone();
    let snapshot = forest.take().unwrap();
    damage(&forest);
    let (parts, again) = (forest.parts.clone(), snapshot.clone());
    let disk = Disk::gated(move |op| {
        if op == Op::Dress {
            let error = check_ready(&parts).unwrap_err();
            assert!(matches!(error, NotReady::AtWork(_)), "{error}");
            let error = restore(&again).unwrap_err();
            assert!(
                matches!(error, RestoreError::NotReady(NotReady::AtWork(_))),
                "{error}"
            );
        }
        Ok(())
    });
    restore_on(&disk, &snapshot, &Options::default(), &quiet).unwrap();
    check_ready(&forest.parts).unwrap();
}

#[test]
fn data_outside_is_asked_for() {
    let forest = Forest::alone(2);
    let (data, space) = (forest.part(0), forest.part(1));
    fs::create_dir(data.join("pg_tblspc")).unwrap();
    symlink(&space, data.join("pg_tblspc/16400")).unwrap();
    fs::write(data.join("PG_VERSION"), "15").unwrap();
    let (place, options) = (forest.place(), Options::default());
    let alone = [data.clone()];
    let error = crate::take(&alone, &place, &options, &quiet)
        .unwrap_err()
        .to_string();
    let (data, space) = (data.display(), space.display());
    let expected = format!(
        "data outside of the named directories would be missing: {data}/pg_tblspc/16400 leads to {space}; name \
         them as well: {space}"
    );
    assert_eq!(error, expected);
    assert!(!place.exists());
    forest.take().unwrap();
}

/// MyISAM's DATA DIRECTORY, a redo file on another disk: without them a snapshot is none.
#[test]
fn a_file_outside_is_left_out_only_by_those_who_say_so() {
    let forest = Forest::alone(1);
    let (data, outside) = (forest.part(0), forest.beside("t.MYD"));
    fs::write(&outside, "rows").unwrap();
    symlink(&outside, data.join("t.MYD")).unwrap();
    symlink("/dev/null", data.join(".mysql_history")).unwrap();
    symlink("circle", data.join("circle")).unwrap();
    let error = forest.take().unwrap_err().to_string();
    let expected = format!(
        "files outside of the named directories would be missing: {0}/t.MYD leads to {1}; move",
        data.display(),
        outside.display()
    );
    assert!(error.starts_with(&expected), "{error}");
    assert!(error.contains("--leave-linked-files"), "{error}");
    assert!(!forest.place().exists());
    let leave = Options {
        linked_files: LinkedFiles::Leave,
        ..Options::default()
    };
    let snapshot = forest.take_with(&leave).unwrap();
    let notes = snapshot.notes();
    assert_eq!(notes.len(), 2, "{notes:?}");
    let noted = format!("t.MYD leads to {}, which is not", outside.display());
    assert!(notes.iter().any(|note| note.contains(&noted)), "{notes:?}");
    fs::write(&outside, "other rows").unwrap();
    restore(&snapshot).unwrap();
    let strays = linked_files(&snapshot).unwrap();
    let links: Vec<_> = strays.into_iter().map(|stray| stray.link).collect();
    assert_eq!(links, [data.join("t.MYD")]);
}

#[test]
fn places_that_cannot_be_used_are_named() {
    let forest = Forest::full_alone();
    let options = Options::default();
    let take = |to: &Path| {
        crate::take(&forest.parts, to, &options, &quiet)
            .unwrap_err()
            .to_string()
    };
    let said = |text: String| text.replace(forest.beside("").to_str().unwrap(), "");
    let occupied = forest.beside("occupied");
    fs::create_dir(&occupied).unwrap();
    fs::write(occupied.join("letter"), "dear").unwrap();
    assert_eq!(
        said(take(&occupied)),
        "occupied is not empty; name a directory that does not exist yet"
    );
    assert_eq!(
        said(take(&forest.part(0).join("snapshot"))),
        "the snapshot part0/snapshot and the directory part0 lie in each other; put the snapshot elsewhere"
    );
    assert_eq!(
        said(take(&forest.beside("no/such"))),
        "cannot use no: No such file or directory (os error 2)"
    );
    let error = Snapshot::open(&occupied).unwrap_err().to_string();
    assert_eq!(
        said(error),
        "occupied is not a snapshot: there is no manifest.json in it"
    );
    forest.take().unwrap();
    assert_eq!(
        said(take(&forest.place())),
        "snapshot is a snapshot already; name another directory"
    );
    let missing = [forest.beside("gone")];
    let error = crate::take(&missing, &forest.beside("x"), &options, &quiet).unwrap_err();
    assert_eq!(
        said(error.to_string()),
        "cannot use gone: No such file or directory (os error 2)"
    );
}

/// The disk with the part is gone, or somebody has put the part elsewhere.
#[test]
fn a_part_that_moved_is_not_replaced() {
    let forest = Forest::full_alone();
    let snapshot = forest.take().unwrap();
    let (data, elsewhere) = (forest.part(0), forest.beside("elsewhere"));
    fs::rename(&data, &elsewhere).unwrap();
    symlink(&elsewhere, &data).unwrap();
    let before = look(std::slice::from_ref(&elsewhere));
    let error = restore(&snapshot).unwrap_err();
    assert!(matches!(error, RestoreError::Moved(_)), "{error}");
    fs::remove_file(&data).unwrap();
    fs::write(&data, "a file").unwrap();
    let error = restore(&snapshot).unwrap_err();
    assert!(matches!(error, RestoreError::Moved(_)), "{error}");
    assert_eq!(look(&[elsewhere]), before);
}

#[test]
fn a_manifest_that_was_edited_is_refused() {
    let forest = Forest::full_alone();
    let snapshot = forest.take().unwrap();
    let path = snapshot.dir().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    for (from, to, expected) in [
        (
            "\"format_version\":1",
            "\"format_version\":2",
            "it has format 2; this saiga reads format 1",
        ),
        (
            "\"path\":\"base/1/1259\"",
            "\"path\":\"../../1259\"",
            "the path ../../1259 is out of place",
        ),
        (
            "\"path\":\"base/1/1259\"",
            "\"path\":\"/etc/passwd\"",
            "the path /etc/passwd is out of place",
        ),
        (
            "\"path\":\"empty\"",
            "\"path\":\"base\"",
            "the path base is out of place",
        ),
        (
            "\"path\":\"empty\"",
            "\"path\":\"em//pty\"",
            "the path em//pty is out of place",
        ),
        (
            "\"target_part\":0",
            "\"target_part\":7",
            "the path PG_VERSION is out of place",
        ),
        (
            "\"mode\":\"0400\"",
            "\"mode\":\"0666\"",
            "it is not what was written when the snapshot was taken",
        ),
        (
            "\"size\":100000",
            "\"size\":9000000",
            "the field size is missing or holds what saiga never writes",
        ),
        (
            "\"stored\":1",
            "\"stored\":0",
            "the field stored is missing or holds what saiga never writes",
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
