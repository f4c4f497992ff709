//! `saiga streams suggest` on a directory: it records, suggests from that, and leaves no trace.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::record::read;
use crate::site::{Labeller, Site};
use crate::support::{said, text};

/// Bytes of each file, which is written in steps of 16 pages.
const BYTES: u64 = 256 << 10;
static STEP: [u8; 64 << 10] = [7; 64 << 10];

/// A disk, where temporary files go, and where the rules do.
struct Ground {
    site: Site,
    disk: PathBuf,
    temporary: PathBuf,
    printed: PathBuf,
}

impl Ground {
    fn new() -> Self {
        let mut site = Site::new();
        // Its blocks are pages: the ext4 of a small disk has smaller ones, and steps would share pages.
        let disk = site.disk("xfs");
        let [temporary, printed] = ["temporary", "printed"].map(|name| site.path(name));
        fs::create_dir(&temporary).unwrap();
        Self {
            site,
            disk,
            temporary,
            printed,
        }
    }

    fn suggest(&self, words: &[&str]) -> Command {
        let mut command = self.site.streams(&[&["suggest"], words].concat());
        command.env("TMPDIR", &self.temporary);
        command
    }

    /// One that records by now.
    fn recording(&self, words: &[&str]) -> Labeller {
        let mut command = self.suggest(words);
        command.stdout(File::create(&self.printed).unwrap());
        let mut recording = Labeller::warning(&mut command);
        recording.wait_for("recording writes to ");
        recording
    }

    fn printed(&self) -> String {
        fs::read_to_string(&self.printed).unwrap()
    }

    fn temporary_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.temporary).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// Writes a file from begin to end, in steps that reach its disk one after another.
fn write(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let file = options.open(path).unwrap();
    for at in (0..BYTES).step_by(STEP.len()) {
        file.write_all_at(&STEP, at).unwrap();
        file.sync_all().unwrap();
    }
}

/// A ring that is written several times, and a file that is written once.
fn work(dir: &Path) {
    for _ in 0..8 {
        write(&dir.join("ring.log"));
    }
    write(&dir.join("archive.db"));
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn rules_come_from_what_is_written_meanwhile_and_the_trace_goes() {
    let ground = Ground::new();
    let dir = text(&ground.disk);
    let mut recording = ground.recording(&[dir, "--for", "1h", "--json"]);
    let folders = ground.temporary_files();
    assert_eq!(folders.len(), 1, "{folders:?}");
    assert_eq!(mode(&folders[0]), 0o700);
    let traces: Vec<_> = fs::read_dir(&folders[0]).unwrap().collect();
    assert_eq!(traces.len(), 1, "{traces:?}");
    assert_eq!(mode(&traces[0].as_ref().unwrap().path()), 0o600);
    work(&ground.disk);
    // Ends it early: what was seen is enough.
    recording.signal("INT");
    let code = recording.child.wait().unwrap().code();
    assert_eq!(code, Some(0), "{:?}", recording.rest());
    recording.wait_for("stopping the recording");
    recording.wait_for("recorded ");
    assert_eq!(ground.temporary_files(), Vec::<PathBuf>::new());
    let found: Value = serde_json::from_str(&ground.printed()).unwrap();
    let class = |name: &str| {
        let classes = found["classes"].as_array().unwrap();
        let class = classes.iter().find(|class| class["name"] == name);
        class.unwrap_or_else(|| panic!("no {name} in {found}"))
    };
    let (ring, archive) = (class("ring.log"), class("archive.db"));
    assert_eq!(ring["written_bytes"], 8 * BYTES);
    assert_eq!([&ring["hint"], &ring["behaviour"]], ["short", "a ring"]);
    assert_eq!(archive["written_bytes"], BYTES);
    assert_eq!(
        [
            &archive["hint"],
            &archive["lifetime"]["or_class"],
            &archive["behaviour"]
        ],
        ["extreme", "long", "written once"]
    );
}

#[test]
fn a_trace_that_is_kept_gives_the_same_rules_again() {
    let ground = Ground::new();
    let kept = ground.site.path("kept.csv");
    let mut writer = Command::new("sleep")
        .arg("1000")
        .current_dir(&ground.disk)
        .spawn()
        .unwrap();
    let pid = writer.id().to_string();
    // Without a directory it is that of the process.
    let mut recording = ground.recording(&["--pid", &pid, "--keep", text(&kept)]);
    assert_eq!(ground.temporary_files(), Vec::<PathBuf>::new());
    work(&ground.disk);
    writer.kill().unwrap();
    writer.wait().unwrap();
    let code = recording.child.wait().unwrap().code();
    assert_eq!(code, Some(0), "{:?}", recording.rest());
    recording.wait_for(&format!("process {pid} has ended"));
    recording.wait_for(&format!("wrote {}", text(&kept)));
    assert_eq!(mode(&kept), 0o600);
    assert_eq!(read(&kept).directories, [text(&ground.disk)]);
    let again = said(&mut ground.suggest(&["--trace", text(&kept)]));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stdout.contains("ring.log"), "{}", again.stdout);
    assert_eq!(again.stdout, ground.printed());
}

#[test]
fn a_second_signal_gives_up_and_leaves_nothing() {
    let ground = Ground::new();
    let mut recording = ground.recording(&[text(&ground.disk), "--for", "1h"]);
    work(&ground.disk);
    // Stopped, it gets both at once when it goes on.
    for signal in ["STOP", "INT", "TERM", "CONT"] {
        recording.signal(signal);
    }
    assert_eq!(recording.child.wait().unwrap().code(), Some(2));
    recording.wait_for("saiga: interrupted");
    assert_eq!(ground.printed(), "");
    assert_eq!(ground.temporary_files(), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_recorded_or_suggested_is_refused_at_once_and_nothing_is_left() {
    let mut ground = Ground::new();
    let memory = ground.site.mount_as("tmpfs", "size=4m", "memory");
    let (there, new) = (ground.site.path("there"), ground.site.path("new.toml"));
    fs::write(&there, "x").unwrap();
    let [disk, memory, there, new] = [&ground.disk, &memory, &there, &new].map(|path| text(path));
    for (words, expected) in [
        (&[disk][..], "--for <TIME>"),
        (&["--for", "1h"], "give a data directory (DIR)"),
        (&[disk, "--for", "0s"], "--for must be greater than zero"),
        (&["--trace", there, "--for", "1h"], "cannot be used with"),
        (&["--trace", there, disk], "cannot be used with"),
        (&["--trace", there, "--keep", new], "cannot be used with"),
        (&[memory, "--for", "1h"], "streams record --loop"),
        (&["/no/such", "--for", "1h"], "cannot open /no/such"),
        (&["--pid", "4194304"], "no process has PID 4194304"),
        (
            &[disk, "--for", "1h", "--keep", there],
            "/there exists already",
        ),
        (
            &[disk, "--for", "1h", "--keep", new, "--out", new],
            "--keep and --out name the same file",
        ),
        (
            &[disk, "--for", "1h", "--out", "/no/rules.toml"],
            "/no is not a directory",
        ),
        (
            &[disk, "--for", "1h", "--handles", "0"],
            "0 handles: use 1 to 128",
        ),
        (&[disk, "--for", "1h", "--op", "0"], "over-provisioning 0"),
        (
            &[disk, "--for", "1h", "--page-bytes", "5000"],
            "pages of 5000 bytes",
        ),
        (
            &[disk, "--for", "20ms"],
            &format!("nothing was written below {disk} in "),
        ),
    ] {
        let said = said(&mut ground.suggest(words));
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(2), ""),
            "{words:?}: {}",
            said.stderr
        );
        assert!(said.stderr.contains(expected), "{words:?}: {}", said.stderr);
        assert!(!Path::new(new).exists(), "{words:?}");
        assert_eq!(ground.temporary_files(), Vec::<PathBuf>::new(), "{words:?}");
    }
    assert_eq!(fs::read_to_string(there).unwrap(), "x");
}

#[test]
fn without_rights_it_says_what_is_missing_before_it_waits() {
    let ground = Ground::new();
    for open in [
        &ground.disk,
        &ground.temporary,
        &ground.temporary.join(".."),
    ] {
        fs::set_permissions(open, Permissions::from_mode(0o777)).unwrap();
    }
    let saiga: PathBuf = ground.site.saiga.path("bin/saiga");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(saiga).env("TMPDIR", &ground.temporary);
    command.args(["streams", "suggest", text(&ground.disk), "--for", "1h"]);
    let said = said(&mut command);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("CAP_BPF"), "{}", said.stderr);
    assert_eq!(ground.temporary_files(), Vec::<PathBuf>::new());
}
