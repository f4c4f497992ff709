//! `saiga streams record --loop`: making and removing the volume while other programs interfere.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::record_loop::{Places, is_mounted};
use crate::site::{Labeller, Site, run};
use crate::support::{said, text};

/// A wrapper of a program that reports its call, and then waits for permission to continue.
struct Slow {
    folder: PathBuf,
    come: PathBuf,
    /// Open for reading and writing, so that a write does not block.
    go: File,
}

impl Slow {
    /// `first` is the first argument of the call that waits.
    fn new(site: &Site, program: &str, first: &str) -> Self {
        let [folder, come, go] = ["slow", "come", "go"].map(|name| site.path(name));
        fs::create_dir(&folder).unwrap();
        run("mkfifo", &[text(&come), text(&go)]);
        let script = format!(
            "#!/bin/sh\n/usr/sbin/{program} \"$@\"; code=$?\nif [ \"$1\" = {first} ]; then echo \
             >{}; read word <{}; fi\nexit $code\n",
            text(&come),
            text(&go)
        );
        let made = site.saiga.script("program", &script);
        run("mv", &[text(&made), text(&folder.join(program))]);
        let go = OpenOptions::new().read(true).write(true).open(go);
        let go = go.unwrap();
        Self { folder, come, go }
    }

    fn go_on(&mut self) {
        self.go.write_all(b"on\n").unwrap();
    }

    /// Starts a recording that waits in the wrapper, in a process group as from a terminal.
    fn meet(&self, site: &Site, words: &[&str]) -> Labeller {
        let mut command = site.streams(words);
        let path = format!("{}:/usr/bin:/bin", text(&self.folder));
        command
            .env("PATH", path)
            .process_group(0)
            .stdout(Stdio::null());
        let recording = Labeller::warning(&mut command);
        fs::read(&self.come).unwrap();
        recording
    }
}

/// Presses Ctrl-C at its terminal.
fn press(recording: &Labeller) {
    run(
        "kill",
        &["-INT", "--", &format!("-{}", recording.child.id())],
    );
}

#[test]
fn ctrl_c_while_the_volume_is_made_leaves_no_files() {
    for (program, first, is_cut_short) in [
        ("losetup", "--find", false),
        ("losetup", "-d", false),
        ("mkfs.xfs", "-q", true),
    ] {
        let site = Site::new();
        let places = Places::new(&site);
        let mut slow = Slow::new(&site, program, first);
        let mut recording = slow.meet(&site, &places.words(&["--", "true"]));
        press(&recording);
        if !is_cut_short {
            slow.go_on();
        }
        assert_eq!(
            recording.child.wait().unwrap().code(),
            Some(2),
            "{program} {first}"
        );
        let said = recording.rest().concat();
        assert!(said.contains("interrupted"), "{program} {first}: {said}");
        places.assert_gone();
        assert!(!places.out.exists());
    }
}

#[test]
fn a_directory_has_one_volume_at_a_time() {
    let site = Site::new();
    let places = Places::new(&site);
    let mut slow = Slow::new(&site, "losetup", "--find");
    let script = "echo started >&2; exec sleep 1000";
    let mut first = slow.meet(&site, &places.words(&["--", "sh", "-c", script]));
    let other = site.path("other.csv");
    let mut words = places.words(&["--", "true"]);
    words[2] = text(&other);
    let refused = |expected: &str| {
        let second = said(&mut site.streams(&words));
        assert_eq!(second.code, Some(2), "{second:?}");
        assert!(second.stderr.contains(expected), "{second:?}");
    };
    refused("another recording makes its volume there");
    slow.go_on();
    first.wait_for("started");
    refused(" is mounted there");
    assert!(is_mounted(&places.dir));
    first.signal("INT");
    assert_eq!(first.child.wait().unwrap().code(), Some(0));
    places.assert_gone();
    assert!(!other.exists());
}

#[test]
fn other_mounts_are_left_alone() {
    let mut site = Site::new();
    let places = Places::new(&site);
    let dir = text(&places.dir);
    // Before the recording: the mount is empty, and would be hidden.
    run("mount", &["-t", "tmpfs", "theirs", dir]);
    let refused = said(&mut site.streams(&places.words(&["--", "true"])));
    run("umount", &[dir]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("theirs is mounted there"),
        "{refused:?}"
    );
    // During the recording.
    let words = places.words(&["--", "mount", "-t", "tmpfs", "theirs", dir]);
    let covered = said(&mut site.streams(&words));
    let kinds = Command::new("findmnt")
        .args(["-n", "-o", "FSTYPE", dir])
        .output()
        .unwrap();
    run("umount", &[dir]);
    run("umount", &[dir]);
    assert_eq!(covered.code, Some(2), "{covered:?}");
    assert!(
        covered.stderr.contains(&format!("umount {dir} twice")),
        "{covered:?}"
    );
    let kinds = String::from_utf8(kinds.stdout).unwrap();
    assert!(kinds.contains("xfs") && kinds.contains("tmpfs"), "{kinds}");
    places.assert_gone();
    // Removed by the program itself.
    fs::remove_file(&places.out).unwrap();
    let gone = said(&mut site.streams(&places.words(&[
        "--after",
        "cd /; umount -l \"$OLDPWD\"",
        "--",
        "true",
    ])));
    assert_eq!(gone.code, Some(0), "{gone:?}");
    places.assert_gone();
    // With a shared mount, the trace would be on the volume, too.
    let shared = site.mount_as("tmpfs", "size=4m", "shared");
    let (alias, data) = (site.path("alias"), shared.join("data"));
    run("mount", &["--make-shared", text(&shared)]);
    fs::create_dir(&alias).unwrap();
    fs::create_dir(&data).unwrap();
    site.bind(&shared, &alias);
    let trace = alias.join("data/trace.csv");
    let mut words = places.words(&["--", "true"]);
    words[2] = text(&trace);
    words
        .iter_mut()
        .filter(|word| **word == dir)
        .for_each(|word| *word = text(&data));
    let shown = said(&mut site.streams(&words));
    assert_eq!(shown.code, Some(2), "{shown:?}");
    assert!(
        shown
            .stderr
            .contains("would be deleted with the file system at"),
        "{shown:?}"
    );
    assert!(!is_mounted(&data) && !is_mounted(&alias.join("data")));
}

#[test]
fn errors_are_reported_before_the_data_are_loaded() {
    let mut site = Site::new();
    let places = Places::new(&site);
    let loaded = site.path("loaded");
    let prepare = format!("touch {}", text(&loaded));
    let nowhere = site.path("no/trace.csv");
    for (out, program, expected) in [
        (&nowhere, "true", "is not a directory"),
        (
            &places.out,
            "no-such-program",
            "no-such-program is not installed",
        ),
    ] {
        let mut words = places.words(&["--prepare", &prepare, "--", program]);
        words[2] = text(out);
        let refused = said(&mut site.streams(&words));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{refused:?}");
        assert!(!loaded.exists());
        places.assert_gone();
    }
    // Files that --prepare creates are there in time.
    let made = site.path("made");
    let prepare = format!("printf '#!/bin/sh' >{0}; chmod +x {0}", text(&made));
    let words = places.words(&["--prepare", &prepare, "--", text(&made)]);
    let said_then = said(&mut site.streams(&words));
    assert_eq!(said_then.code, Some(0), "{said_then:?}");
    assert!(
        !said_then.stderr.contains(" free, less than"),
        "{said_then:?}"
    );
    fs::remove_file(&places.out).unwrap();
    let small = site.mount_as("tmpfs", "size=300m", "small");
    let mut words = places.words(&["--", "true"]);
    words[6] = text(&small);
    let warned = said(&mut site.streams(&words));
    assert_eq!(warned.code, Some(0), "{warned:?}");
    let told = format!("{} has 300 MiB free, less than the 320 MiB", text(&small));
    assert!(warned.stderr.contains(&told), "{warned:?}");
}
