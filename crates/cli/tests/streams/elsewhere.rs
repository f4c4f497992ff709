//! Files of a server outside the labelled directories are named by `check` and `run`.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::site::{Labeller, Site, run};
use crate::support::{Said, said, text};

/// A process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn check(site: &Site, dirs: &[&Path], more: &[&str]) -> Said {
    let dirs: Vec<&str> = dirs.iter().map(|dir| text(dir)).collect();
    let words = [
        &["check"],
        &dirs[..],
        &["--rules", "mariadb", "--any-route"],
        more,
    ]
    .concat();
    said(&mut site.streams(&words))
}

/// The option file puts binary logs into one directory, the command line undo tablespaces into
/// another.
#[test]
fn logs_of_a_real_server_outside_the_directory_are_named() {
    let mut site = Site::new();
    let disk = site.disk("xfs");
    let [data, logs, undo] = ["data", "binlogs", "undo"].map(|name| disk.join(name));
    for dir in [&data, &logs, &undo] {
        fs::create_dir(dir).unwrap();
    }
    let options = site.path("my.cnf");
    let file = format!("[mysqld]\nlog_bin = {}/prod\n", text(&logs));
    fs::write(&options, file).unwrap();
    let datadir = format!("--datadir={}", text(&data));
    let of_undo = format!("--innodb-undo-directory={}", text(&undo));
    let install = ["--no-defaults", "--auth-root-authentication-method=normal"];
    let install = [
        &install[..],
        &["--skip-test-db", "--user=root", &datadir, &of_undo],
    ]
    .concat();
    run("mariadb-install-db", &install);
    let mut command = Command::new("mariadbd");
    command.arg(format!("--defaults-file={}", text(&options)));
    command.args(["--user=root", "--skip-networking", &datadir, &of_undo]);
    command.arg(format!("--socket={}", text(&site.path("sql"))));
    let mut server = Labeller::warning(command.stdin(Stdio::null()).stdout(Stdio::null()));
    server.wait_for("ready for connections");

    let [binary, of_undo] =
        [("binary logs", &logs), ("undo tablespaces", &undo)].map(|(what, dir)| {
            let dir = text(dir);
            format!(
                "warning: {what} are in {dir}, which is not labelled; give this directory, too\n"
            )
        });
    let out = check(&site, &[&data], &[]);
    assert!(
        out.stderr.contains(&binary) && out.stderr.contains(&of_undo),
        "{out:?}"
    );
    let out = check(&site, &[&data, &undo], &[]);
    assert!(
        out.stderr.contains(&binary) && !out.stderr.contains("undo"),
        "{out:?}"
    );
    let out = check(&site, &[&data, &logs, &undo], &[]);
    assert!(!out.stderr.contains("not labelled"), "{out:?}");
    let out = check(&site, &[&data], &["--json"]);
    let found: Value = serde_json::from_str(&out.stdout).unwrap();
    let found = found["elsewhere"].as_array().unwrap();
    let names: Vec<_> = found.iter().map(|it| (&it["what"], &it["dir"])).collect();
    let dirs = [text(&logs), text(&undo)].map(Value::from);
    let whats = ["binary logs", "undo tablespaces"].map(Value::from);
    assert_eq!(names, whats.iter().zip(&dirs).collect::<Vec<_>>());

    let locks = site.path("locks");
    let words = [
        "run",
        text(&data),
        "--rules",
        "mariadb",
        "--once",
        "--any-route",
    ];
    let out = said(&mut site.streams(&[&words[..], &["--lock-dir", text(&locks)]].concat()));
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(
        out.stderr.contains(&binary) && out.stderr.contains(&of_undo),
        "{out:?}"
    );
}

/// The database's user can make its option file a pipe, which must not block the labeller.
#[test]
fn an_option_file_that_never_ends_times_out() {
    let site = Site::new();
    let (data, pipe) = (site.path("data"), site.path("pipe"));
    fs::create_dir_all(data.join("mysql")).unwrap();
    run("mkfifo", &[text(&pipe)]);
    let script = format!(
        "exec -a mysqld sh -c 'read line' sh --defaults-file={}",
        text(&pipe)
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(&data);
    let server = Running(shell.stdin(Stdio::piped()).spawn().unwrap());
    let line = format!("/proc/{}/cmdline", server.0.id());
    let is_it = || fs::read(&line).unwrap().starts_with(b"mysqld\0");
    saiga_trials::witness::await_true(is_it, || "no process".to_owned());
    let out = check(&site, &[&data], &[]);
    assert_eq!(out.code, Some(0), "{out:?}");
}
