//! `saiga snapshot` on the data directories of real servers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::{Child, Command, Stdio};

use saiga_trials::parity::Arm;
use saiga_trials::{Signal, mariadb, postgres, sys};

mod support;
use support::{Installation, Said, said, text};

/// Runs `saiga snapshot WORDS`.
fn snapshot(saiga: &Installation, words: &[&str]) -> Said {
    let words: Vec<&str> = [&["snapshot"], words].concat();
    said(&mut saiga.saiga(&words))
}

/// Runs `saiga snapshot WORDS`, which must succeed.
fn must(saiga: &Installation, words: &[&str]) -> Said {
    let said = snapshot(saiga, words);
    assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    said
}

#[test]
fn mariadb_gets_its_rows_back() {
    let saiga = Installation::bare();
    let mut server = mariadb::Server::start(mariadb::Kind::MariaDb, Arm::Kernel, &[]);
    server.must(
        Arm::Kernel,
        "CREATE TABLE trial.t (id INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO trial.t VALUES \
         (1),(2),(3)",
    );
    let (data, place) = (server.folder().join("data"), saiga.path("bak"));
    let (data, place) = (text(&data), text(&place));
    let refused = snapshot(&saiga, &["take", data, "--to", place]);
    assert_eq!(refused.code, Some(2));
    let named = format!("(pid {})", server.pid());
    assert!(refused.stderr.contains(&named), "{refused:?}");
    assert!(refused.stderr.contains("stop it first"), "{refused:?}");
    assert!(!saiga.path("bak").exists());

    sys::signal(server.pid(), Signal::TERM).unwrap();
    assert!(server.await_end().success());
    must(&saiga, &["take", data, "--to", place]);
    server.resume();
    server.must(
        Arm::Kernel,
        "DELETE FROM trial.t WHERE id > 1; CREATE DATABASE other",
    );
    let refused = snapshot(&saiga, &["restore", place]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains(&format!("(pid {})", server.pid())),
        "{refused:?}"
    );

    server.kill();
    let differs = snapshot(&saiga, &["verify", place, "--parts"]);
    assert_eq!(differs.code, Some(1), "{differs:?}");
    must(&saiga, &["restore", place]);
    must(&saiga, &["verify", place, "--parts"]);
    server.resume();
    assert_eq!(
        server
            .must(Arm::Kernel, "SELECT COUNT(*) FROM trial.t")
            .trim(),
        "3"
    );
    assert_eq!(server.must(Arm::Kernel, "SHOW DATABASES LIKE 'other'"), "");
}

/// A tablespace on another disk, and the log too, as in openGauss's procedure.
#[test]
fn postgres_gets_its_rows_and_its_tablespace_back() {
    let saiga = Installation::bare();
    let mut server = postgres::Server::start(Arm::Kernel, &[]);
    let space = server.folder().join("tablespace2");
    fs::create_dir(&space).unwrap();
    postgres::Account::Server.own(&space);
    server.query(&format!(
        "CREATE TABLESPACE example2 LOCATION '{}'",
        space.display()
    ));
    server.query("CREATE TABLE t (id int) TABLESPACE example2");
    server.query("INSERT INTO t SELECT generate_series(1, 1000)");
    let (data, place) = (server.data(), saiga.path("bak"));
    let (data, place, space) = (text(&data), text(&place), text(&space));
    let refused = snapshot(&saiga, &["take", data, space, "--to", place]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("postgres (pid "), "{refused:?}");

    sys::signal(server.pid(), Signal::INT).unwrap();
    server.reap();
    let refused = snapshot(&saiga, &["take", data, "--to", place]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .contains(&format!("name these directories, too: {space}")),
        "{refused:?}"
    );
    must(&saiga, &["take", data, space, "--to", place]);
    server.launch();
    server.query("DELETE FROM t WHERE id > 10");
    server.query("CREATE TABLE more (id int) TABLESPACE example2");
    server.kill();
    // Its pid file remains, as after a crash of the server.
    must(&saiga, &["restore", place]);
    server.launch();
    assert_eq!(server.query("SELECT count(*) FROM t"), "1000");
    assert_eq!(server.query("SELECT to_regclass('more') IS NULL"), "t");
}

#[test]
fn every_verb_says_what_it_did_in_words_and_in_json() {
    let saiga = Installation::bare();
    let (data, place) = (saiga.path("data"), saiga.path("bak"));
    fs::create_dir(&data).unwrap();
    fs::write(data.join("table"), "rows").unwrap();
    symlink("/etc/passwd", data.join("link")).unwrap();
    let (data, place) = (text(&data).to_owned(), text(&place).to_owned());
    let refused = snapshot(&saiga, &["take", &data, "--to", &place]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let told = "link leads to /etc/passwd; move";
    assert!(refused.stderr.contains(told), "{refused:?}");
    let leave = "--leave-linked-files";
    let taken = must(&saiga, &["take", &data, "--to", &place, leave, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&taken.stdout).unwrap();
    assert_eq!(json["parts"][0]["bytes"], 4);
    assert!(taken.stderr.contains("leads to /etc/passwd"), "{taken:?}");
    let fingerprint = json["fingerprint"].as_str().unwrap().to_owned();
    let mode = fs::metadata(&place).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let manifest = fs::metadata(saiga.path("bak/manifest.json")).unwrap();
    assert_eq!(manifest.permissions().mode() & 0o777, 0o600);
    let shown = must(&saiga, &["show", &place]);
    assert!(
        shown
            .stdout
            .contains(&format!("fingerprint {fingerprint}\n")),
        "{shown:?}"
    );
    fs::write(saiga.path("data/table"), "cows").unwrap();
    let restored = must(&saiga, &["restore", &place]);
    let expected = format!(
        "restored {data}: 4 B written, 0 B shared with the snapshot, 0 B unchanged, 0 names \
         removed; fingerprint {fingerprint}\n"
    );
    assert_eq!(restored.stdout, expected);
    assert_eq!(
        must(&saiga, &["verify", &place]).stdout,
        format!("{place} is undamaged\n")
    );
    fs::write(saiga.path("bak/files/0000000"), "bows").unwrap();
    let damaged = snapshot(&saiga, &["verify", &place]);
    assert_eq!(damaged.code, Some(1));
    let expected =
        format!("damaged: {data}/table (stored as {place}/files/0000000): content differs\n");
    assert_eq!(damaged.stdout, expected);
    fs::write(saiga.path("data/table"), "cows").unwrap();
    let refused = snapshot(&saiga, &["restore", &place]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(fs::read(saiga.path("data/table")).unwrap(), b"cows");
}

/// A user other than root cannot see the open files of other users.
#[test]
fn a_user_without_root_must_assume_stopped_servers() {
    let saiga = Installation::bare();
    let home = saiga.path("home");
    fs::create_dir(&home).unwrap();
    let data = saiga.path("home/data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("own"), "own").unwrap();
    for path in [&home, &data, &data.join("own")] {
        chown(path, Some(65534), Some(65534)).unwrap();
    }
    let place = saiga.path("home/bak");
    let nobody = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command
            .arg(saiga.path("bin/saiga"))
            .arg("snapshot")
            .args(words);
        said(&mut command)
    };
    let taken = nobody(&["take", text(&data), "--to", text(&place)]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    // The files belong to root: another process of root may be the server that wrote them. The
    // ancestors of the test are excluded, and a container may run no other processes.
    fs::write(data.join("table"), "rows").unwrap();
    let mut bystander = bystander();
    let second = saiga.path("home/bak2");
    let refused = nobody(&["take", text(&data), "--to", text(&second)]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("add --assume-stopped"),
        "{refused:?}"
    );
    let words = [
        "take",
        text(&data),
        "--to",
        text(&second),
        "--assume-stopped",
    ];
    let taken = nobody(&words);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let refused = nobody(&["restore", text(&second), "--assume-stopped"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .contains("belongs to user 0; only root can give it back"),
        "{refused:?}"
    );
    drop(bystander.stdin.take());
    assert!(bystander.wait().unwrap().success());
}

/// Ownership that a user may not restore is reported before anything is changed. The rest is
/// restored, including attributes of read-only files.
#[test]
fn a_user_restores_their_own_files() {
    let saiga = Installation::bare();
    let home = saiga.path("home");
    let data = home.join("data");
    fs::create_dir_all(&data).unwrap();
    let (table, fixed) = (data.join("table"), data.join("fixed"));
    fs::write(&table, "rows").unwrap();
    fs::write(&fixed, "fixed").unwrap();
    let label = "import os, sys; os.setxattr(sys.argv[1], 'user.label', b'cold')";
    let mut python = Command::new("python3");
    python.args(["-c", label]).arg(&fixed);
    assert!(python.status().unwrap().success());
    fs::set_permissions(&fixed, fs::Permissions::from_mode(0o400)).unwrap();
    for path in [&home, &data, &table, &fixed] {
        chown(path, Some(65534), Some(65534)).unwrap();
    }
    let nobody = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(saiga.path("bin/saiga")).arg("snapshot");
        said(command.args(words).arg("--assume-stopped"))
    };
    let first = home.join("first");
    let taken = nobody(&["take", text(&data), "--to", text(&first)]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    fs::remove_file(&fixed).unwrap();
    let restored = nobody(&["restore", text(&first)]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(
        fs::metadata(&fixed).unwrap().permissions().mode() & 0o777,
        0o400
    );

    // A group without this user: an existing file may keep it, but a new file cannot get it.
    chown(&table, None, Some(0)).unwrap();
    let second = home.join("second");
    let taken = nobody(&["take", text(&data), "--to", text(&second)]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    fs::write(&table, "cows").unwrap();
    let restored = nobody(&["restore", text(&second)]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(fs::read(&table).unwrap(), b"rows");
    fs::remove_file(&table).unwrap();
    fs::write(data.join("stranger"), "still there").unwrap();
    let refused = nobody(&["restore", text(&second)]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("belongs to group 0, of which this user is not a member"),
        "{refused:?}"
    );
    assert!(data.join("stranger").exists());
}

/// A process of root that is not a server; it ends at the end of its stdin.
fn bystander() -> Child {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().unwrap()
}
