//! `saiga streams record --loop`: a file system for one recording, however the recording ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use saiga_ftl::trace::Op;

use crate::record::{assert_refused, bytes, read};
use crate::site::{Labeller, Site, run};
use crate::support::{said, text};

/// The mount point, the directory of the image, and the trace.
pub(crate) struct Places {
    pub(crate) dir: PathBuf,
    pub(crate) images: PathBuf,
    pub(crate) out: PathBuf,
}

impl Places {
    pub(crate) fn new(site: &Site) -> Self {
        let [dir, images] = ["data", "images"].map(|name| site.path(name));
        for path in [&dir, &images] {
            fs::create_dir(path).unwrap();
        }
        let out = site.path("trace.csv");
        Self { dir, images, out }
    }

    pub(crate) fn words<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let words = [
            "record",
            "--out",
            text(&self.out),
            "--loop",
            "320MiB",
            "--image-dir",
            text(&self.images),
        ];
        [&words[..], &[text(&self.dir)], more].concat()
    }

    /// Checks that nothing is mounted, and that no image and no loop device is left.
    pub(crate) fn assert_gone(&self) {
        assert_eq!(fs::read_dir(&self.dir).unwrap().count(), 0);
        assert!(!is_mounted(&self.dir));
        assert_eq!(fs::read_dir(&self.images).unwrap().count(), 0);
        assert_eq!(loops(&self.images), Vec::<String>::new());
    }
}

/// Also removes everything after a failed test.
impl Drop for Places {
    fn drop(&mut self) {
        while is_mounted(&self.dir) {
            run("umount", &["-l", text(&self.dir)]);
        }
        for device in loops(&self.images) {
            let _ = Command::new("losetup").args(["-d", &device]).status();
        }
    }
}

pub(crate) fn is_mounted(dir: &Path) -> bool {
    let status = Command::new("mountpoint").arg("-q").arg(dir).status();
    status.unwrap().success()
}

/// Loop devices with an image in this directory.
fn loops(images: &Path) -> Vec<String> {
    let output = Command::new("losetup")
        .args(["-l", "-n", "-O", "NAME,BACK-FILE"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines = said.lines().filter(|line| line.contains(text(images)));
    lines
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_volume_is_made_loaded_recorded_and_removed() {
    for kind in ["xfs", "ext4"] {
        let site = Site::new();
        let places = Places::new(&site);
        std::os::unix::fs::chown(&places.dir, Some(1234), Some(1235)).unwrap();
        let after = site.path("after");
        let prepare = "dd if=/dev/zero of=old bs=64k count=16";
        let command = "cd \"$0\" && dd if=/dev/zero of=new bs=64k count=4 conv=fsync";
        let after_text = format!("stat -c '%u:%g %n' . new > {}", text(&after));
        let dir = text(&places.dir);
        let words = places.words(&[
            "--fs",
            kind,
            "--prepare",
            prepare,
            "--after",
            &after_text,
            "--",
            "sh",
            "-c",
            command,
            dir,
        ]);
        let said = said(&mut site.streams(&words));
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        places.assert_gone();
        let trace = read(&places.out);
        assert_eq!(
            bytes(&trace, Op::Present, &places.dir.join("old")),
            1 << 20,
            "{kind}"
        );
        assert_eq!(
            bytes(&trace, Op::Write, &places.dir.join("old")),
            0,
            "{kind}"
        );
        assert_eq!(
            bytes(&trace, Op::Write, &places.dir.join("new")),
            256 << 10,
            "{kind}"
        );
        assert_eq!(fs::read_to_string(after).unwrap(), "1234:1235 .\n0:0 new\n");
    }
}

#[test]
fn failures_leave_no_files() {
    for (more, code, expected) in [
        (
            &["--prepare", "exit 4", "--", "true"][..],
            2,
            "--prepare: the program failed (exit status: 4); nothing",
        ),
        (
            &["--", "sh", "-c", "exit 5"],
            1,
            "the program failed (exit status: 5); the trace is kept",
        ),
        (
            &["--after", "exit 6", "--", "true"],
            1,
            "--after: the program failed (exit status: 6)",
        ),
        (
            &["--", "sh", "-c", "kill -9 $$"],
            1,
            "the program failed (signal: 9 (SIGKILL))",
        ),
        (&["--", "/no/such/program"], 2, "/no/such/program"),
    ] {
        let site = Site::new();
        let places = Places::new(&site);
        let said = said(&mut site.streams(&places.words(more)));
        assert_eq!(said.code, Some(code), "{more:?} {}", said.stderr);
        assert!(said.stderr.contains(expected), "{more:?} {}", said.stderr);
        places.assert_gone();
        assert_eq!(places.out.exists(), code == 1, "{more:?}");
    }
}

#[test]
fn signals_remove_everything_except_the_trace() {
    let wait = "cd \"$0\"; sleep 1000 & echo started >&2; wait";
    for (signal, is_recording) in [("INT", true), ("TERM", true), ("HUP", false)] {
        let site = Site::new();
        let places = Places::new(&site);
        let dir = text(&places.dir);
        let more = if is_recording {
            ["--", "sh", "-c", wait, dir]
        } else {
            [
                "--prepare",
                "sleep 1000 & echo started >&2; wait",
                "--",
                "true",
                dir,
            ]
        };
        let more = [&["--after", "touch never"], &more[..]].concat();
        let mut command = site.streams(&places.words(&more));
        let mut recording = Labeller::warning(command.stdout(Stdio::null()));
        recording.wait_for("started");
        recording.signal(signal);
        if is_recording {
            recording.wait_for("interrupted; --after is not run");
        }
        let code = if is_recording { 0 } else { 2 };
        let ended = recording.child.wait().unwrap().code();
        assert_eq!(ended, Some(code), "{signal}");
        places.assert_gone();
        assert_eq!(places.out.exists(), is_recording);
    }
}

#[test]
fn leftovers_of_a_kill_are_named_by_the_next_recording() {
    let site = Site::new();
    let places = Places::new(&site);
    let words = places.words(&["--", "sh", "-c", "echo started >&2; exec sleep 1000"]);
    let mut command = site.streams(&words);
    let mut recording = Labeller::warning(command.stdout(Stdio::null()));
    recording.wait_for("started");
    recording.signal("KILL");
    recording.child.wait().unwrap();
    assert!(is_mounted(&places.dir));
    assert_eq!(fs::read_dir(&places.images).unwrap().count(), 0);
    let next = said(&mut site.streams(&words));
    assert_eq!(next.code, Some(2), "{}", next.stderr);
    let remedy = format!("umount {}", text(&places.dir));
    assert!(next.stderr.contains(&remedy), "{}", next.stderr);
    // With another image directory there is a message, but no error.
    let other = site.path("other");
    fs::create_dir(&other).unwrap();
    let mut elsewhere = places.words(&["--", "true"]);
    for word in &mut elsewhere {
        if *word == text(&places.dir) {
            *word = text(&other);
        }
    }
    let elsewhere = said(&mut site.streams(&elsewhere));
    assert_eq!(elsewhere.code, Some(0), "{}", elsewhere.stderr);
    assert!(elsewhere.stderr.contains(&remedy), "{}", elsewhere.stderr);
    run("umount", &[text(&places.dir)]);
    places.assert_gone();
}

#[test]
fn impossible_volumes_are_refused() {
    let site = Site::new();
    let places = Places::new(&site);
    let (full, used) = (site.path("full"), site.path("full/used"));
    fs::create_dir_all(&used).unwrap();
    let inside = places.dir.join("trace.csv");
    let (out, images, dir) = (text(&places.out), text(&places.images), text(&places.dir));
    let (full, used, inside) = (text(&full), text(&used), text(&inside));
    let begin = ["--image-dir", images, "--out"];
    for (more, expected) in [
        (&[out, "--loop", "8", dir][..], "is not a size"),
        (&[out, "--loop", "320MiB", full], "it is not empty (used)"),
        (
            &[out, "--loop", "320MiB", dir, used],
            "mounted at one directory",
        ),
        (&[out, "--loop", "320MiB", "/no/such"], "make it first"),
        (
            &[inside, "--loop", "320MiB", dir],
            "would be deleted with the file system at",
        ),
        // Too small for XFS.
        (&[out, "--loop", "8MiB", dir], "mkfs.xfs"),
        (&[out, "--fs", "ext4", dir], "--loop"),
    ] {
        assert_refused(
            &site,
            &[&begin[..], more, &["--", "true"]].concat(),
            expected,
        );
        places.assert_gone();
        assert!(!places.out.exists());
    }
}

/// A process that another program started; killed on drop.
struct Foreign(PathBuf);

impl Drop for Foreign {
    fn drop(&mut self) {
        let pid = fs::read_to_string(&self.0).unwrap_or_default();
        if !pid.trim().is_empty() {
            let _ = Command::new("kill").arg(pid.trim()).status();
        }
    }
}

#[test]
fn a_volume_in_use_is_not_a_leftover_of_a_kill() {
    let site = Site::new();
    let places = Places::new(&site);
    let user = Foreign(site.path("pid"));
    let hold = format!("sleep 1000 >&- 2>&- & echo $! > {}", text(&user.0));
    // A process in the directory below is not a user of the volume, even the recording itself.
    let mut command = site.streams(&places.words(&["--prepare", &hold, "--", "true"]));
    let held = said(command.current_dir(&places.dir));
    assert!(held.stderr.contains("still used by sleep"), "{held:?}");
    fs::remove_file(&places.out).unwrap();
    let next = said(&mut site.streams(&places.words(&["--", "true"])));
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(!next.stderr.contains("killed"), "{next:?}");
}

#[test]
fn after_is_run_and_users_are_named_after_any_failure() {
    let script = "#!/no/such/shell\n";
    for (prepare, words, expected) in [
        (
            "",
            &["--", "SCRIPT"][..],
            "its first line names /no/such/shell",
        ),
        ("; exit 4", &["--", "true"], "--prepare: the program failed"),
    ] {
        let site = Site::new();
        let places = Places::new(&site);
        let user = Foreign(site.path("pid"));
        let script = site.saiga.script("script", script);
        let words: Vec<&str> = words
            .iter()
            .map(|word| {
                if *word == "SCRIPT" {
                    text(&script)
                } else {
                    word
                }
            })
            .collect();
        let pid = text(&user.0);
        let prepare = format!("setsid sleep 1000 >&- 2>&- & echo $! > {pid}{prepare}");
        let failed = said(
            &mut site.streams(&places.words(&[&["--prepare", &prepare], &words[..]].concat())),
        );
        assert_eq!(failed.code, Some(2), "{failed:?}");
        for part in [expected, "still used by sleep ("] {
            assert!(failed.stderr.contains(part), "{failed:?}");
        }
        run("kill", &[fs::read_to_string(&user.0).unwrap().trim()]);
        let after = format!("kill $(cat {pid}); rm {pid}");
        let more = ["--prepare", &prepare, "--after", &after];
        let ended = said(&mut site.streams(&places.words(&[&more, &words[..]].concat())));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
        assert!(!ended.stderr.contains("still used"), "{ended:?}");
        assert!(!user.0.exists());
        places.assert_gone();
    }
}

#[test]
fn a_closed_output_hides_no_failure_and_leaves_no_files() {
    let site = Site::new();
    let places = Places::new(&site);
    let words = places.words(&["--after", "echo after >&2", "--", "sh", "-c", "exit 5"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut recording = Labeller::warning(site.streams(&words).stdout(writer));
    assert_eq!(recording.child.wait().unwrap().code(), Some(1));
    recording.wait_for("the program failed (exit status: 5); the trace is kept");
    recording.wait_for("after");
    places.assert_gone();
}

#[test]
fn the_path_of_the_trace_is_resolved() {
    let site = Site::new();
    let places = Places::new(&site);
    let link = site.path("link");
    std::os::unix::fs::symlink(&places.dir, &link).unwrap();
    let (inside, images, dir) = (
        link.join("trace.csv"),
        text(&places.images),
        text(&places.dir),
    );
    let rest = ["--loop", "320MiB", "--image-dir", images, dir, "--", "true"];
    for out in [text(&inside), &format!("{dir}/../data/trace.csv")] {
        let words = [&["--out", out], &rest[..]].concat();
        assert_refused(&site, &words, "would be deleted with the file system at");
    }
    // From inside the volume, `..` leads outside.
    let words = [&["record", "--out", "../trace.csv"], &rest[..]].concat();
    let above = said(site.streams(&words).current_dir(&places.dir));
    assert_eq!(above.code, Some(0), "{above:?}");
    assert!(!read(&places.out).directories.is_empty());
    places.assert_gone();
}
