//! `saiga streams suggest` on a directory: records, proposes rules, and removes the trace.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::record::read;
use crate::site::{Labeller, Site};
use crate::support::{said, text};

/// Size of each file, which is written in steps of 16 pages.
const BYTES: u64 = 256 << 10;
static STEP: [u8; 64 << 10] = [7; 64 << 10];

/// A disk, a directory for temporary files, and a directory for the rules.
struct Setup {
    site: Site,
    disk: PathBuf,
    temporary: PathBuf,
    printed: PathBuf,
}

impl Setup {
    fn new() -> Self {
        let mut site = Site::new();
        // With blocks of a page: a small ext4 has smaller blocks, and steps would share pages.
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

    /// A recording that has started.
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

/// Writes a file from start to end, in steps that reach the disk one after another.
fn write(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let file = options.open(path).unwrap();
    for at in (0..BYTES).step_by(STEP.len()) {
        file.write_all_at(&STEP, at).unwrap();
        file.sync_all().unwrap();
    }
}

/// Writes one file several times, and another one once.
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
fn rules_come_from_current_writes_and_the_trace_is_removed() {
    let setup = Setup::new();
    let dir = text(&setup.disk);
    let mut recording = setup.recording(&[dir, "--for", "1h", "--json"]);
    let folders = setup.temporary_files();
    assert_eq!(folders.len(), 1, "{folders:?}");
    assert_eq!(mode(&folders[0]), 0o700);
    let traces: Vec<_> = fs::read_dir(&folders[0]).unwrap().collect();
    assert_eq!(traces.len(), 1, "{traces:?}");
    assert_eq!(mode(&traces[0].as_ref().unwrap().path()), 0o600);
    work(&setup.disk);
    // Ends the recording early.
    recording.signal("INT");
    let code = recording.child.wait().unwrap().code();
    assert_eq!(code, Some(0), "{:?}", recording.rest());
    recording.wait_for("stopping the recording");
    recording.wait_for("recorded ");
    assert_eq!(setup.temporary_files(), Vec::<PathBuf>::new());
    let found: Value = serde_json::from_str(&setup.printed()).unwrap();
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
fn a_kept_trace_gives_the_same_rules() {
    let setup = Setup::new();
    let kept = setup.site.path("kept.csv");
    let mut writer = Command::new("sleep")
        .arg("1000")
        .current_dir(&setup.disk)
        .spawn()
        .unwrap();
    let pid = writer.id().to_string();
    // Without DIR: the working directory of the process.
    let mut recording = setup.recording(&["--pid", &pid, "--keep", text(&kept)]);
    assert_eq!(setup.temporary_files(), Vec::<PathBuf>::new());
    work(&setup.disk);
    writer.kill().unwrap();
    writer.wait().unwrap();
    let code = recording.child.wait().unwrap().code();
    assert_eq!(code, Some(0), "{:?}", recording.rest());
    recording.wait_for(&format!("process {pid} has ended"));
    recording.wait_for(&format!("wrote {}", text(&kept)));
    assert_eq!(mode(&kept), 0o600);
    assert_eq!(read(&kept).directories, [text(&setup.disk)]);
    let again = said(&mut setup.suggest(&["--trace", text(&kept)]));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stdout.contains("ring.log"), "{}", again.stdout);
    assert_eq!(again.stdout, setup.printed());
}

#[test]
fn a_second_signal_gives_up_and_leaves_no_files() {
    let setup = Setup::new();
    let mut recording = setup.recording(&[text(&setup.disk), "--for", "1h"]);
    work(&setup.disk);
    // Stopped, it receives both signals at once when it continues.
    for signal in ["STOP", "INT", "TERM", "CONT"] {
        recording.signal(signal);
    }
    assert_eq!(recording.child.wait().unwrap().code(), Some(2));
    recording.wait_for("saiga: interrupted");
    assert_eq!(setup.printed(), "");
    assert_eq!(setup.temporary_files(), Vec::<PathBuf>::new());
}

#[test]
fn invalid_options_are_refused_before_the_recording() {
    let mut setup = Setup::new();
    let memory = setup.site.mount_as("tmpfs", "size=4m", "memory");
    let (there, new) = (setup.site.path("there"), setup.site.path("new.toml"));
    fs::write(&there, "x").unwrap();
    let [disk, memory, there, new] = [&setup.disk, &memory, &there, &new].map(|path| text(path));
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
        let said = said(&mut setup.suggest(words));
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(2), ""),
            "{words:?}: {}",
            said.stderr
        );
        assert!(said.stderr.contains(expected), "{words:?}: {}", said.stderr);
        assert!(!Path::new(new).exists(), "{words:?}");
        assert_eq!(setup.temporary_files(), Vec::<PathBuf>::new(), "{words:?}");
    }
    assert_eq!(fs::read_to_string(there).unwrap(), "x");
}

#[test]
fn without_privileges_it_fails_before_the_recording() {
    let setup = Setup::new();
    for open in [&setup.disk, &setup.temporary, &setup.temporary.join("..")] {
        fs::set_permissions(open, Permissions::from_mode(0o777)).unwrap();
    }
    let saiga: PathBuf = setup.site.saiga.path("bin/saiga");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(saiga).env("TMPDIR", &setup.temporary);
    command.args(["streams", "suggest", text(&setup.disk), "--for", "1h"]);
    let said = said(&mut command);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("CAP_BPF"), "{}", said.stderr);
    assert_eq!(setup.temporary_files(), Vec::<PathBuf>::new());
}
