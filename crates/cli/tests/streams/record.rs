//! `saiga streams record` on disks of this test: every byte is attributed to its file.

use std::fs::{self, File, OpenOptions};
use std::io::BufReader;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::inotify;
use saiga_ftl::trace::{self, Op, Trace};

use crate::record_ends::lives;
use crate::site::{Labeller, Site, run};
use crate::support::{said, text};

const MIB: u64 = 1 << 20;

pub(crate) fn read(path: &Path) -> Trace {
    trace::read(BufReader::new(File::open(path).unwrap())).unwrap()
}

/// Bytes of the rows with this operation on a file.
pub(crate) fn bytes(trace: &Trace, op: Op, path: &Path) -> u64 {
    let number = trace.files.iter().position(|file| file == text(path));
    let rows = trace.rows.iter().filter(|row| row.op == op);
    let rows = rows.filter(|row| row.file.map(|file| file as usize) == number);
    number.map_or(0, |_| rows.map(|row| row.len).sum())
}

/// Writes zeroes to a file and to its disk.
fn write(path: &Path, at: u64, length: u64) {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .unwrap();
    file.write_all_at(&vec![7; usize::try_from(length).unwrap()], at)
        .unwrap();
    file.sync_all().unwrap();
}

/// Detects when another process has read the attributes of a file.
struct AccessWatch(OwnedFd);

impl AccessWatch {
    /// Waits for two scans of the file: then one of them began after all earlier actions.
    fn wait(path: &Path) {
        let fd = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&fd, path, inotify::WatchFlags::CLOSE_NOWRITE).unwrap();
        let looked = Self(fd);
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&looked.0, &mut buffer);
        for _ in 0..2 {
            reader.next().unwrap();
        }
    }
}

/// A process that does nothing until it is dropped.
struct Idle(Child);

impl Idle {
    fn new(dir: &Path) -> Self {
        Self(
            Command::new("sleep")
                .arg("1000")
                .current_dir(dir)
                .spawn()
                .unwrap(),
        )
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.end();
    }
}

/// A recording that has started.
pub(crate) fn recording(site: &Site, words: &[&str]) -> Labeller {
    let mut command = site.streams(&[&["record"], words].concat());
    let mut recording = Labeller::warning(command.stdout(Stdio::null()));
    recording.wait_for("recording writes to ");
    recording
}

/// All writes come first, and nothing after them: the trace still has the whole recorded time.
#[test]
fn the_trace_has_the_recorded_time() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    let out = site.path("trace.csv");
    let mut recording = recording(&site, &["--out", text(&out), text(&disk), "--for", "3s"]);
    write(&disk.join("a"), 0, MIB);
    assert_eq!(recording.child.wait().unwrap().code(), Some(0));
    let trace = read(&out);
    let recorded = trace.recorded.unwrap();
    assert!(recorded.duration_ns >= 3_000_000_000, "{recorded:?}");
    assert_eq!(recorded.lost, 0);
    assert!(bytes(&trace, Op::Write, &disk.join("a")) >= MIB);
}

#[test]
fn every_byte_is_attributed_to_its_file() {
    for kind in ["xfs", "ext4"] {
        let mut site = Site::new();
        let disk = site.disk(kind);
        let dir = disk.join("data");
        fs::create_dir(&dir).unwrap();
        // On the same disk: writes of the recorder itself belong to no file.
        let out = disk.join("trace.csv");
        write(&dir.join("old"), 0, 2 * MIB);
        let mut idle = Idle::new(&dir);
        let pid = idle.0.id().to_string();
        // Without DIR: the working directory of the process.
        let mut recording = recording(&site, &["--out", text(&out), "--pid", &pid]);
        write(&dir.join("a"), 0, 3 * MIB);
        AccessWatch::wait(&dir.join("a"));
        fs::rename(dir.join("a"), dir.join("b")).unwrap();
        AccessWatch::wait(&dir.join("b"));
        write(&dir.join("b"), 4096, MIB);
        AccessWatch::wait(&dir.join("b"));
        fs::remove_file(dir.join("b")).unwrap();
        write(&dir.join("old"), 8192, MIB / 2);
        idle.end();
        assert_eq!(
            recording.child.wait().unwrap().code(),
            Some(0),
            "{:?}",
            recording.said
        );
        recording.wait_for(&format!("process {pid} has ended"));
        let trace = read(&out);
        assert_eq!(trace.directories, [text(&dir)]);
        let names = ["old", "a", "b"].map(|name| dir.join(name));
        let written = names.each_ref().map(|path| bytes(&trace, Op::Write, path));
        assert_eq!(written, [MIB / 2, 3 * MIB, MIB], "{kind}");
        let present = names
            .each_ref()
            .map(|path| bytes(&trace, Op::Present, path));
        assert_eq!(present, [2 * MIB, 0, 0], "{kind}");
        assert_eq!(trace.files.len(), 3, "{:?}", trace.files);
        let metadata: u64 = trace
            .rows
            .iter()
            .filter(|row| row.file.is_none())
            .map(|row| row.len)
            .sum();
        assert!(metadata < 8 * MIB, "{kind} {metadata}");
        assert_eq!(out.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let simulated = said(&mut site.streams(&["simulate", "--trace", text(&out)]));
        assert_eq!(simulated.code, Some(0), "{}", simulated.stderr);
    }
}

#[test]
fn a_real_redis_is_recorded_and_simulated() {
    let mut site = Site::new();
    let dir = site.disk("ext4");
    let (out, socket) = (site.path("trace.csv"), site.path("redis.sock"));
    let script = format!(
        "redis-server --port 0 --unixsocket {0} --dir {1} --appendonly yes --appendfsync always \
         --save '' >/dev/null &
         until redis-cli -s {0} ping 2>/dev/null | grep -q PONG; do :; done
         redis-benchmark -s {0} -q -t set -n 3000 -r 1000 -d 4096 >/dev/null &&
         redis-cli -s {0} shutdown nosave && wait",
        text(&socket),
        text(&dir)
    );
    let said = said(&mut site.streams(&[
        "record",
        "--out",
        text(&out),
        text(&dir),
        "--",
        "sh",
        "-c",
        &script,
    ]));
    assert_eq!(said.code, Some(0), "{} {}", said.stdout, said.stderr);
    assert!(
        said.stdout
            .contains("appendonlydir/appendonly.aof.N.incr.aof"),
        "{}",
        said.stdout
    );
    let log = dir.join("appendonlydir/appendonly.aof.1.incr.aof");
    let written = bytes(&read(&out), Op::Write, &log);
    // Each write goes to the disk separately, and takes at least a block.
    assert!(written >= log.metadata().unwrap().len(), "{written}");
    let simulated = crate::support::said(&mut site.streams(&["simulate", "--trace", text(&out)]));
    assert_eq!(simulated.code, Some(0), "{}", simulated.stderr);
}

#[test]
fn a_link_to_another_disk_is_followed_with_later_addresses() {
    let mut site = Site::new();
    let (dir, other) = (site.disk("ext4"), site.disk("xfs"));
    let out = site.path("trace.csv");
    std::os::unix::fs::symlink(&other, dir.join("pg_wal")).unwrap();
    let script = "cd \"$0\" && dd if=/dev/zero of=pg_wal/x bs=64k count=4 conv=fsync && dd if=/dev/zero of=y bs=64k count=2 conv=fsync\
        && dd if=/dev/zero of=pg_wal/in-memory bs=64k count=3";
    let command = [
        "record",
        "--out",
        text(&out),
        text(&dir),
        "--",
        "sh",
        "-c",
        script,
        text(&dir),
    ];
    let said = said(&mut site.streams(&command));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.stderr
            .contains(&format!("begin at {} in the trace", 400 * MIB)),
        "{}",
        said.stderr
    );
    let trace = read(&out);
    let link = dir.join("pg_wal/x");
    assert_eq!(bytes(&trace, Op::Write, &link), 256 << 10);
    assert_eq!(bytes(&trace, Op::Write, &dir.join("y")), 128 << 10);
    // Both disks are synced at the end.
    let late = dir.join("pg_wal/in-memory");
    assert_eq!(bytes(&trace, Op::Write, &late), 192 << 10);
    let number = trace
        .files
        .iter()
        .position(|file| file == text(&link))
        .unwrap();
    let mut rows = trace
        .rows
        .iter()
        .filter(|row| row.file.map(|file| file as usize) == Some(number));
    assert!(rows.all(|row| row.lba >= 400 * MIB));
}

#[test]
fn a_file_on_another_file_system_is_reported() {
    let mut site = Site::new();
    let (dir, other) = (site.disk("ext4"), site.disk("xfs"));
    let memory = site.mount_as("tmpfs", "size=4m", "memory");
    for place in [&dir, &other, &memory] {
        fs::write(place.join("my.cnf"), "x").unwrap();
        fs::write(place.join("key"), "x").unwrap();
    }
    let script = "mount --bind \"$1/my.cnf\" \"$0/my.cnf\" && mount --bind \"$2/key\" \"$0/key\" &&
        dd if=/dev/zero of=\"$0/a\" bs=64k count=4 conv=fsync";
    let places = [text(&dir), text(&memory), text(&other)];
    // Mounted during the recording, and before.
    for (name, script) in [("1", script), ("2", "true")] {
        let out = site.path(name);
        let words = [
            "record",
            "--out",
            text(&out),
            places[0],
            "--",
            "sh",
            "-c",
            script,
        ];
        let said = said(&mut site.streams(&[&words, &places[..]].concat()));
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        for file in ["my.cnf", "key"] {
            let told = format!("{} is on another file system", text(&dir.join(file)));
            assert_eq!(said.stderr.matches(&told).count(), 1, "{}", said.stderr);
        }
    }
    let written = bytes(&read(&site.path("1")), Op::Write, &dir.join("a"));
    assert_eq!(written, 256 << 10);
}

#[test]
fn a_failed_program_leaves_its_trace_and_exit_status_1() {
    let mut site = Site::new();
    let dir = site.disk("ext4");
    let out = site.path("trace.csv");
    let script = "dd if=/dev/zero of=\"$0\"/a bs=4k count=8 conv=fsync; exit 3";
    let said = said(&mut site.streams(&[
        "record",
        "--out",
        text(&out),
        text(&dir),
        "--",
        "sh",
        "-c",
        script,
        text(&dir),
    ]));
    assert_eq!(said.code, Some(1));
    assert!(
        said.stderr
            .contains("the program failed (exit status: 3); the trace is kept"),
        "{}",
        said.stderr
    );
    assert!(
        said.stderr.contains("writes per page are few"),
        "{}",
        said.stderr
    );
    assert_eq!(bytes(&read(&out), Op::Write, &dir.join("a")), 32 << 10);
}

#[test]
fn signals_stop_the_recording_and_the_program_with_its_children() {
    for signal in ["INT", "TERM"] {
        let mut site = Site::new();
        let dir = site.disk("ext4");
        let out = site.path("trace.csv");
        let script = "dd if=/dev/zero of=\"$0\"/a bs=4k count=8 conv=fsync; sleep 1000 & echo started $! >&2; wait";
        let mut recording = recording(
            &site,
            &[
                "--out",
                text(&out),
                text(&dir),
                "--",
                "sh",
                "-c",
                script,
                text(&dir),
            ],
        );
        let line = recording.wait_for("started ");
        let child = line.split_whitespace().last().unwrap().to_owned();
        recording.signal(signal);
        assert_eq!(
            recording.child.wait().unwrap().code(),
            Some(0),
            "{:?}",
            recording.said
        );
        recording.wait_for("stopping the program and the recording");
        assert!(!lives(&child), "{child} lives");
        assert_eq!(bytes(&read(&out), Op::Write, &dir.join("a")), 32 << 10);
    }
}

#[test]
fn a_trace_with_gaps_is_kept_but_fails() {
    let mut site = Site::new();
    let dir = site.disk("ext4");
    let out = site.path("trace.csv");
    let script = "dd if=/dev/zero of=\"$0\"/a bs=4k count=20000 oflag=direct";
    let words = [
        "record",
        "--out",
        text(&out),
        "--buffer",
        "4KiB",
        text(&dir),
        "--",
        "sh",
        "-c",
        script,
        text(&dir),
    ];
    let said = said(&mut site.streams(&words));
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let trace = read(&out);
    assert!(trace.lost() > 0);
    assert!(!trace.rows.is_empty());
    let line = format!("{} EVENTS WERE LOST: ", trace.lost());
    assert!(said.stderr.contains(&line), "{line}{}", said.stderr);
}

#[test]
fn tracefs_can_replace_bpf() {
    let mut site = Site::new();
    let dir = site.disk("xfs");
    let out = site.path("trace.csv");
    let script = "dd if=/dev/zero of=\"$0\"/a bs=64k count=8 conv=fsync";
    let words = [
        "record",
        "--out",
        text(&out),
        "--via",
        "tracefs",
        text(&dir),
        "--",
        "sh",
        "-c",
        script,
        text(&dir),
    ];
    let said = said(&mut site.streams(&words));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(bytes(&read(&out), Op::Write, &dir.join("a")), 512 << 10);
}

/// A recording that must fail at the start, with this message.
pub(crate) fn assert_refused(site: &Site, words: &[&str], expected: &str) {
    let said = said(&mut site.streams(&[&["record"], words].concat()));
    assert_eq!(said.code, Some(2), "{words:?}: {}", said.stderr);
    assert!(said.stderr.contains(expected), "{words:?}: {}", said.stderr);
}

#[test]
fn invalid_recordings_are_refused_and_leave_no_files() {
    let mut site = Site::new();
    let disk = site.disk("ext4");
    let memory = site.mount_as("tmpfs", "size=4m", "memory");
    let folder = site.path("folder");
    fs::create_dir(&folder).unwrap();
    let (file, out) = (disk.join("file"), folder.join("trace.csv"));
    fs::write(&file, "x").unwrap();
    fs::create_dir(disk.join("inner")).unwrap();
    let (disk, memory, file) = (
        text(&disk).to_owned(),
        text(&memory).to_owned(),
        text(&file).to_owned(),
    );
    let inner = format!("{disk}/inner");
    let out = text(&out);
    for (words, expected) in [
        (
            &["--out", &file, &disk, "--", "true"][..],
            "/file exists already",
        ),
        (
            &["--out", out, "/no/such", "--", "true"],
            "cannot open /no/such",
        ),
        (&["--out", out, &file, "--", "true"], "is not a directory"),
        (&["--out", out, &memory, "--", "true"], "tmpfs is memory"),
        (
            &["--out", out, &disk, &inner, "--", "true"],
            "/inner is within ",
        ),
        (&["--out", out, &disk], "give a program to record (-- CMD)"),
        (&["--out", out, "--", "true"], "give a data directory (DIR)"),
        (
            &["--out", out, &disk, "--pid", "4194304"],
            "no process has PID 4194304",
        ),
        (
            &["--out", out, &disk, "--for", "0s"],
            "--for must be greater than zero",
        ),
        (
            &["--out", out, &disk, "--buffer", "5KiB", "--", "true"],
            "--buffer: give a power of two",
        ),
        (
            &["--out", out, &disk, "--", "/no/such/program"],
            "/no/such/program",
        ),
        (
            &["--out", "/no/such/trace", &disk, "--", "true"],
            "cannot write /no/such/trace",
        ),
    ] {
        assert_refused(&site, words, expected);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn without_privileges_it_names_what_is_missing() {
    let mut site = Site::new();
    let dir = site.disk("ext4");
    let folder = site.path("folder");
    fs::create_dir(&folder).unwrap();
    for open in [&dir, &folder, &folder.join("..")] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let out = folder.join("trace.csv");
    let saiga: PathBuf = site.saiga.path("bin/saiga");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(saiga).args([
        "streams",
        "record",
        "--out",
        text(&out),
        text(&dir),
        "--",
        "true",
    ]);
    let said = said(&mut command);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    for part in [
        "cannot follow block writes: by BPF, ",
        "CAP_BPF",
        "; by tracefs, ",
    ] {
        assert!(said.stderr.contains(part), "{}", said.stderr);
    }
    run("test", &["!", "-e", text(&out)]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
