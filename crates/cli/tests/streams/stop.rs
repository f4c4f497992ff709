//! `saiga streams stop`: stops the labeller of a directory, and no other process.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::site::{Labeller, Site};
use crate::support::{Said, said, text};

fn stop(site: &Site, words: &[&str]) -> Said {
    let locks = site.path("locks");
    let words = [&["stop", "--lock-dir", text(&locks)], words].concat();
    said(&mut site.streams(&words))
}

fn two_directories(site: &mut Site) -> (std::path::PathBuf, std::path::PathBuf) {
    let disk = site.disk("ext4");
    let (one, two) = (disk.join("one"), disk.join("two"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    (one, two)
}

#[test]
fn the_labeller_of_a_directory_is_stopped_and_no_other() {
    let mut site = Site::new();
    let (one, two) = two_directories(&mut site);
    let mut first = site.labeller(&one, &["--rules", "mysql", "--mode", "gate"]);
    let mut second = site.labeller(&two, &["--rules", "mysql"]);
    // By another path.
    let link = site.path("link");
    std::os::unix::fs::symlink(&one, &link).unwrap();
    let out = stop(&site, &[text(&link)]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let pid = first.child.id();
    let expected = format!("stopped the labeller of {} (pid {pid})\n", one.display());
    assert_eq!(out.stdout, expected);
    // The process had ended before `stop` reported it.
    assert_eq!(first.child.try_wait().unwrap().unwrap().code(), Some(0));
    first.wait_for("ended");
    assert!(second.child.try_wait().unwrap().is_none());

    let again = stop(&site, &[text(&one), text(&two)]);
    assert_eq!(again.code, Some(1), "{again:?}");
    let missing = format!("no labeller is running for {}:", one.display());
    assert!(again.stderr.contains(&missing), "{again:?}");
    // The running labeller is stopped all the same.
    assert_eq!(second.child.wait().unwrap().code(), Some(0));
}

#[test]
fn all_labellers_are_stopped() {
    let mut site = Site::new();
    let (one, two) = two_directories(&mut site);
    let mut both = site.labeller(&one, &[text(&two), "--rules", "mysql"]);
    let gone = site.path("ext4/gone");
    fs::create_dir(&gone).unwrap();
    let mut third = site.labeller(&gone, &["--rules", "mysql"]);
    fs::remove_dir(&gone).unwrap();
    third.wait_for("is gone; waiting for it");
    let out = stop(&site, &[text(&gone)]);
    assert_eq!(
        (out.code, third.child.wait().unwrap().code()),
        (Some(0), Some(0))
    );
    let out = stop(&site, &["--all"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(out.stdout.matches("stopped the labeller of").count(), 1);
    for dir in [&one, &two] {
        assert!(out.stdout.contains(text(dir)), "{out:?}");
    }
    assert_eq!(both.child.wait().unwrap().code(), Some(0));
    let none = stop(&site, &["--all"]);
    assert_eq!(none.code, Some(1));
    assert!(
        none.stderr
            .contains("no labeller is running: no process holds a lock in "),
        "{none:?}"
    );
}

#[test]
fn a_labeller_stopped_by_sigstop_continues_and_ends() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let mut labeller = site.labeller(&data, &["--rules", "mysql", "--mode", "gate"]);
    labeller.signal("STOP");
    let out = stop(&site, &[text(&data)]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(labeller.child.wait().unwrap().code(), Some(0));
}

/// A killed labeller leaves its lock file, whose PID may belong to another process.
#[test]
fn a_stale_lock_stops_no_process() {
    let mut site = Site::new();
    let data = site.disk("ext4");
    let mut labeller = site.labeller(&data, &["--rules", "mysql"]);
    labeller.signal("KILL");
    labeller.child.wait().unwrap();
    let locks = fs::read_dir(site.path("locks")).unwrap();
    let lock = locks.map(|entry| entry.unwrap().path()).next().unwrap();
    let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
    fs::write(&lock, format!("{}\n{}\n", stranger.id(), data.display())).unwrap();
    let out = stop(&site, &[text(&data)]);
    let is_alive = stranger.try_wait().unwrap().is_none();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(is_alive);
    assert_eq!(out.code, Some(1), "{out:?}");
    // The stale file does not prevent the next labeller.
    let mut next = site.labeller(&data, &["--rules", "mysql"]);
    assert_eq!(next.end(), Some(0));
}

#[test]
fn directories_or_all_are_required() {
    let site = Site::new();
    let file = site.path("file");
    fs::write(&file, "").unwrap();
    for (words, expected) in [
        (&[][..], "required"),
        (&["--all", "/data"], "cannot be used with"),
        (&["--limit", "soon", "/data"], "invalid value 'soon'"),
        (
            &["--all", "--lock-dir", text(&file)],
            "cannot look for locks in",
        ),
    ] {
        let out = said(&mut site.streams(&[&["stop"], words].concat()));
        assert_eq!(out.code, Some(2), "{words:?}: {out:?}");
        assert!(out.stderr.contains(expected), "{words:?}: {out:?}");
    }
}

/// A process that holds the lock and does not end.
#[test]
fn a_labeller_that_does_not_end_is_named() {
    let site = Site::new();
    let (data, locks) = (site.path("data"), site.path("locks"));
    fs::create_dir(&data).unwrap();
    let stat = rustix::fs::stat(&data).unwrap();
    let (major, minor) = (
        rustix::fs::major(stat.st_dev),
        rustix::fs::minor(stat.st_dev),
    );
    fs::create_dir(&locks).unwrap();
    let lock = locks.join(format!("streams-{major}-{minor}-{}.lock", stat.st_ino));
    let script = "trap '' TERM; exec 3>\"$1\"; flock 3; echo $$ >&3; echo \"$2\" >&3; echo held; exec sleep 600 3>&3";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", text(&lock), text(&data)]);
    let mut holder = Labeller::telling(&mut command);
    holder.wait_for("held");
    let out = stop(&site, &["--limit", "10ms", text(Path::new(&data))]);
    assert_eq!(out.code, Some(2), "{out:?}");
    let expected = format!(
        "the labeller with pid {} has not ended within 10ms",
        holder.child.id()
    );
    assert!(out.stderr.contains(&expected), "{out:?}");
}
