//! The end of `saiga streams record`: what happens to the program, however the recording ends.

use std::fs;
use std::path::PathBuf;

use saiga_ftl::trace::Op;
use saiga_process::proc::Stat;

use crate::record::{bytes, read, recording};
use crate::site::{Labeller, Site, run};
use crate::support::text;

/// A server in shell. After SIGTERM it prints `asked`, waits for a line from the pipe `$1`, and
/// writes `$0/saved`. Its children have executed their program when it prints that: between fork
/// and exec, a shell swallows the signals that it traps.
const SERVER: &str = "trap 'echo asked >&2; read word <\"$1\"; dd if=/dev/zero of=\"$0/saved\" bs=64k count=4 conv=fsync; exit' TERM
    sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done
    echo started >&2; wait";

fn pipe(site: &Site) -> PathBuf {
    let pipe = site.path("pipe");
    run("mkfifo", &[text(&pipe)]);
    pipe
}

/// Number of occurrences.
fn times(recording: &mut Labeller, line: &str) -> usize {
    let rest = recording.rest();
    let all = recording.said.iter().chain(&rest);
    all.filter(|said| *said == line).count()
}

#[test]
fn a_program_is_recorded_until_it_has_ended() {
    let wrapped = "sh -c \"$2\" \"$0\" \"$1\"; true";
    // A shell that dies at once, and the server itself.
    for script in [wrapped, SERVER] {
        let mut site = Site::new();
        let dir = site.disk("ext4");
        let (out, pipe) = (site.path("trace.csv"), pipe(&site));
        let command = ["--", "sh", "-c", script, text(&dir), text(&pipe), SERVER];
        let words = [&["--out", text(&out), text(&dir)], &command[..]].concat();
        let mut recording = recording(&site, &words);
        recording.wait_for("started");
        recording.signal("INT");
        recording.wait_for("asked");
        recording.wait_for("waiting for sh (");
        fs::write(&pipe, "now\n").unwrap();
        assert_eq!(recording.child.wait().unwrap().code(), Some(0));
        assert_eq!(times(&mut recording, "asked"), 1, "{:?}", recording.said);
        let saved = dir.join("saved");
        assert_eq!(bytes(&read(&out), Op::Write, &saved), 256 << 10);
    }
}

#[test]
fn a_program_that_does_not_end_is_killed_by_a_second_signal() {
    let mut site = Site::new();
    let dir = site.disk("ext4");
    let out = site.path("trace.csv");
    let script = "trap '' TERM; sleep 1000 & echo started $! >&2; wait";
    let words = ["--out", text(&out), text(&dir), "--", "sh", "-c", script];
    let mut recording = recording(&site, &words);
    let line = recording.wait_for("started ");
    let child = line.split_whitespace().last().unwrap().to_owned();
    recording.signal("INT");
    let line = recording.wait_for("waiting for ");
    assert!(line.contains(&format!("sleep ({child})")), "{line}");
    recording.signal("INT");
    recording.wait_for("killing the remaining processes");
    assert_eq!(recording.child.wait().unwrap().code(), Some(0));
    assert!(!lives(&child));
    assert!(out.exists());
}

#[test]
fn a_failed_recording_stops_its_program_and_waits_for_it() {
    let mut site = Site::new();
    let dir = site.disk("ext4");
    let full = site.mount_as("tmpfs", "size=64k", "full");
    let (out, pipe) = (full.join("trace.csv"), pipe(&site));
    let script = format!("(cd \"$0\"; {FILL}); {SERVER}");
    let command = ["--", "sh", "-c", &script, text(&dir), text(&pipe)];
    let words = [&["--out", text(&out), text(&dir)], &command[..]].concat();
    let mut recording = recording(&site, &words);
    recording.wait_for("the recording failed; stopping the program");
    recording.wait_for("asked");
    fs::write(&pipe, "now\n").unwrap();
    assert_eq!(recording.child.wait().unwrap().code(), Some(2));
    recording.wait_for("No space left on device");
    assert_eq!(dir.join("saved").metadata().unwrap().len(), 256 << 10);
    assert_eq!(fs::read_dir(&full).unwrap().count(), 0);
}

/// Creates files whose names take more than a megabyte, too much for a trace on a small file
/// system.
pub(crate) const FILL: &str =
    "name=$(printf %0250d 0); for part in 1 2 3 4 5 6 7 8; do mkdir $name; cd $name; done
    for file in $(seq 600); do echo x >$file; done; sync";

pub(crate) fn lives(pid: &str) -> bool {
    Stat::of(pid.parse().unwrap()).is_ok_and(|stat| !stat.has_ended())
}
