//! The `astream` interface: options, exit status, daemon.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use saiga_streams::hint::Hint;
use saiga_trials::witness::await_true;

use crate::site::{Site, hint, run};
use crate::support::{said, text};

/// A site with a private `/run`, and `saiga` under the name `astream`.
fn site() -> (Site, String) {
    let mut site = Site::new();
    site.mount_as("tmpfs", "size=1m,mode=755", "/run");
    let name = site.path("astream");
    symlink(site.saiga.path("bin/saiga"), &name).unwrap();
    let name = text(&name).to_owned();
    (site, name)
}

/// Stops the daemon on drop.
struct Stop(String);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = Command::new(&self.0).arg("stop").output();
    }
}

#[test]
fn files_get_the_labels_of_astream() {
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
    let mode = fs::metadata("/var/run/astream.pid").unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600, "nobody else may lock it");

    let again = said(Command::new(&astream).args(words));
    assert_eq!(again.code, Some(255));
    assert!(
        again.stderr.contains("a daemon is already running"),
        "{}",
        again.stderr
    );

    for (path, expected) in [
        (data.join("undo_001"), Hint::Long),
        (other.join("mysql-bin.000001"), Hint::Extreme),
    ] {
        fs::write(&path, "").unwrap();
        // It logs only to syslog, so the test waits for its labels.
        await_true(|| hint(&path) != Hint::NotSet, || "no hint".to_owned());
        assert_eq!(hint(&path), expected);
    }
    // The rules of the other directory do not apply.
    fs::write(other.join("undo_001"), "").unwrap();
    let stopped = said(Command::new(&astream).arg("stop"));
    assert_eq!(
        (stopped.code, stopped.stdout.as_str()),
        (Some(0), "stopped\n")
    );
    assert_eq!(hint(&other.join("undo_001")), Hint::NotSet);
    assert!(!Path::new("/var/run/astream.pid").exists());
}

/// The Nth rules apply to the Nth directory, also where one directory links to the next.
#[test]
fn a_directory_keeps_its_own_rules_where_another_one_links_to_it() {
    for is_turned in [false, true] {
        let (mut site, astream) = site();
        let disk = site.disk("ext4");
        let (one, two) = (disk.join("one"), disk.join("two"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        symlink(&two, one.join("x")).unwrap();
        fs::write(two.join("ibdata1"), "").unwrap();
        let (short, long) = (site.path("short"), site.path("long"));
        fs::write(&short, "/ 2\n").unwrap();
        fs::write(&long, "/ 4\n").unwrap();
        let mut pairs = [(&one, &short), (&two, &long)];
        if is_turned {
            pairs.reverse();
        }
        let [(a, ra), (b, rb)] = pairs.map(|(dir, rules)| (text(dir), text(rules)));
        let _stop = Stop(astream.clone());
        let out = said(Command::new(&astream).args(["-i", a, b, "-r", ra, rb]));
        assert_eq!(out.code, Some(0), "{out:?}");
        assert_eq!(hint(&two.join("ibdata1")), Hint::Long, "{is_turned}");
    }
}

/// The grammar does not depend on the name of the rule file.
#[test]
fn rule_files_of_any_name_are_read_as_astreams_grammar() {
    let (mut site, astream) = site();
    let data = site.disk("ext4");
    for (name, file) in [(&b"my.toml"[..], "a"), (b"r\xff", "b"), (b"mysql", "c")] {
        let rules = site.path("").join(OsStr::from_bytes(name));
        fs::write(&rules, "/[abc]$ 2\n").unwrap();
        fs::write(data.join(file), "").unwrap();
        let _stop = Stop(astream.clone());
        let mut command = Command::new(&astream);
        command
            .args(["-i", text(&data), "-r"])
            .arg(name_in(&site, name));
        let out = said(command.current_dir(site.path("")));
        assert_eq!(out.code, Some(0), "{out:?}");
        assert_eq!(hint(&data.join(file)), Hint::Short, "{file}");
    }
}

/// A path, or a bare name that is also the name of a built-in set.
fn name_in(site: &Site, name: &[u8]) -> std::path::PathBuf {
    if name == b"mysql" {
        "mysql".into()
    } else {
        site.path("").join(OsStr::from_bytes(name))
    }
}

/// A file name that would start a line of the log, with a priority.
#[test]
fn no_file_name_forges_a_log_line() {
    let (mut site, astream) = site();
    let data = site.disk("ext4");
    let (dev, rules) = (site.path("dev"), site.path("rules"));
    fs::create_dir(&dev).unwrap();
    fs::write(dev.join("null"), "").unwrap();
    site.bind(Path::new("/dev/null"), &dev.join("null"));
    let log = UnixDatagram::bind(dev.join("log")).unwrap();
    run("mount", &["--rbind", text(&dev), "/dev"]);
    fs::write(&rules, "ibd 4\n").unwrap();
    fs::write(data.join("a\n<8>kernel: forged\u{1b}[2Jibd"), "").unwrap();
    let stop = Stop(astream.clone());
    let words = ["-i", text(&data), "-r", text(&rules), "-l", "1"];
    let out = said(Command::new(&astream).args(words));
    drop(stop);
    run("umount", &["-l", "/dev"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let mut lines = Vec::new();
    log.set_nonblocking(true).unwrap();
    let mut buffer = [0; 4096];
    while let Ok(len) = log.recv(&mut buffer) {
        lines.push(String::from_utf8_lossy(&buffer[..len]).into_owned());
    }
    let expected = "a\\n<8>kernel: forged\\u{1b}[2Jibd long";
    assert!(
        lines.iter().any(|line| line.contains(expected)),
        "{lines:#?}"
    );
    let is_clean = |line: &String| !line.contains(char::is_control);
    assert!(lines.iter().all(is_clean), "{lines:#?}");
}

/// The PID in a stale pid file belongs to another process now.
#[test]
fn stop_signals_no_other_process() {
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
            "/no/such is not a directory",
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
            "the log level must be 1, 2, 3 or 4",
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
