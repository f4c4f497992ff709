//! The name `astream`: its words, its exit codes, its daemon.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use saiga_streams::hint::Hint;

use crate::site::{Site, hint};
use crate::support::{said, text};

/// A site with a `/run` of its own, and `saiga` under that name.
fn site() -> (Site, String) {
    let mut site = Site::new();
    site.mount_as("tmpfs", "size=1m,mode=755", "/run");
    let name = site.path("astream");
    symlink(site.saiga.path("bin/saiga"), &name).unwrap();
    let name = text(&name).to_owned();
    (site, name)
}

/// Ends the daemon whatever becomes of the test.
struct Stop(String);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = Command::new(&self.0).arg("stop").output();
    }
}

#[test]
fn files_get_the_labels_that_its_users_expect() {
    let (mut site, astream) = site();
    let (data, other) = (site.disk("ext4"), site.disk("xfs"));
    let (rules, others) = (site.path("rules"), site.path("others"));
    fs::write(
        &rules,
        format!("^{}/ib_logfile 2\nundo 4\n", data.display()),
    )
    .unwrap();
    fs::write(data.join("ib_logfile0"), "there before").unwrap();
    fs::write(&others, "mysql-bin 5\nlonely\n").unwrap();
    let words = [
        "-i",
        text(&data),
        text(&other),
        "-r",
        text(&rules),
        text(&others),
        "-l",
        "3",
    ];
    let _stop = Stop(astream.clone());
    let started = said(Command::new(&astream).args(words));
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    assert!(
        started
            .stderr
            .starts_with("astream: warning: hints stop at the block layer on ")
    );
    let doubts = started
        .stderr
        .matches("astream wants `REGEX STREAM`")
        .count();
    assert_eq!(doubts, 1, "{}", started.stderr);
    assert_eq!(
        hint(&data.join("ib_logfile0")),
        Hint::Short,
        "labelled before astream returned"
    );
    let pid = fs::read_to_string("/var/run/astream.pid").unwrap();
    assert!(Path::new("/proc").join(pid.trim()).exists());

    let again = said(Command::new(&astream).args(words));
    assert_eq!(again.code, Some(255));
    assert!(
        again.stderr.contains("daemon is running"),
        "{}",
        again.stderr
    );

    for (path, expected) in [
        (data.join("undo_001"), Hint::Long),
        (other.join("mysql-bin.000001"), Hint::Extreme),
    ] {
        fs::write(&path, "").unwrap();
        // It logs to syslog only, so its work itself is what can be waited for.
        while hint(&path) == Hint::NotSet {
            std::thread::yield_now();
        }
        assert_eq!(hint(&path), expected);
    }
    // The rules of the other directory are not its.
    fs::write(other.join("undo_001"), "").unwrap();
    let stopped = said(Command::new(&astream).arg("stop"));
    assert_eq!(
        (stopped.code, stopped.stdout.as_str()),
        (Some(0), "stopped\n")
    );
    assert_eq!(hint(&other.join("undo_001")), Hint::NotSet);
    assert!(!Path::new("/var/run/astream.pid").exists());
}

/// A pid file that was left behind names a stranger by now.
#[test]
fn stop_signals_no_stranger() {
    let (_site, astream) = site();
    let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
    fs::write("/run/astream.pid", format!("{}\n", stranger.id())).unwrap();
    let out = said(Command::new(&astream).arg("stop"));
    let is_alive = stranger.try_wait().unwrap().is_none();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(is_alive);
    assert_eq!(out.code, Some(255));
    assert!(
        out.stderr.contains("no daemon is running"),
        "{}",
        out.stderr
    );
}

#[test]
fn bad_input_ends_with_255_and_starts_nothing() {
    let (site, astream) = site();
    let bad = site.path("bad");
    fs::write(&bad, "a b c\n").unwrap();
    let folder = text(&site.path("")).to_owned();
    for (words, expected) in [
        (
            &["-i", "/no/such", "-r", text(&bad)][..],
            "there is no directory /no/such",
        ),
        (
            &["-i", &folder, "-r", "/no/such"],
            "cannot read the rules in /no/such",
        ),
        (
            &["-i", &folder, "-r", text(&bad)],
            "bad:1: failed to parse the rule: 3 words",
        ),
        (
            &["-i", &folder, "-r", text(&bad), "-l", "9"],
            "the log level is 1, 2, 3 or 4",
        ),
        (&["-i", &folder], "no rule file"),
        (&["stop"], "no daemon is running"),
    ] {
        let out = said(Command::new(&astream).args(words));
        assert_eq!(out.code, Some(255), "{words:?}");
        assert!(out.stderr.contains(expected), "{words:?}: {}", out.stderr);
    }
    for words in [&[][..], &["-h"], &["--help"]] {
        let out = said(Command::new(&astream).args(words));
        assert_eq!(out.code, Some(255));
        assert!(
            out.stdout
                .starts_with("Usage: astream -i DIR.. -r RULES.. [-l N]")
        );
    }
    assert!(!Path::new("/run/astream.pid").exists());
}
