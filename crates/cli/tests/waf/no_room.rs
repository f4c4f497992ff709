//! A watcher on disks without free inodes, and a watcher whose output cannot be written.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use saiga_trials::{Signal, sys};

use crate::calls::json;
use crate::drive::Drive;
use crate::support::{Installation, said, text};

/// Mounts a full disk with `$MAKE`, starts a watcher there, and then makes space with `$CLEAR`.
const WAITS_FOR_ROOM: &str = r#"
    set -eu
    eval "$MAKE"
    cd "$DISK"
    "$SAIGA" waf watch --every 1s --file "$DISK/waf.db" "$DRIVE" >"$SAID" 2>"$SAID.err" &
    watch=$!
    trap 'kill $watch' EXIT
    until grep -q "its disk is full; trying again at each interval" "$SAID.err"; do kill -0 $watch; done
    rm -f ballast*
    until grep -q "first sample" "$SAID"; do kill -0 $watch; done
    until grep -q "again$" "$SAID.err"; do kill -0 $watch; done
    trap - EXIT
    kill $watch
    wait $watch
    cat "$SAID.err"
"#;

/// Runs in a mount namespace, which ends with the shell, together with the loop device.
fn waits_for_room(make: &str) {
    let saiga = Installation::bare();
    let drive = Drive::new(&saiga, "drive", "SN1");
    drive.counts(0, 0);
    let disk = saiga.path("disk");
    fs::create_dir(&disk).unwrap();
    let mut command = Command::new("unshare");
    command.args(["-m", "timeout", "60", "sh", "-c", WAITS_FOR_ROOM]);
    command.env("MAKE", make).env("SAID", saiga.path("said"));
    command.env("SAIGA", saiga.path("bin/saiga"));
    command.env("IMAGE", saiga.path("image"));
    command.env("DISK", &disk).env("DRIVE", &drive.folder);
    let said = said(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stdout.lines().count(), 2, "{said:?}");
}

/// The file system has four inodes, one of which is the root's.
#[test]
fn a_watcher_waits_for_inodes() {
    waits_for_room(
        r#"mount -t tmpfs -o size=1m,nr_inodes=4 tmpfs "$DISK"
        touch "$DISK/ballast1" "$DISK/ballast2" "$DISK/ballast3""#,
    );
}

/// XFS makes inodes of blocks: without a free block, no file can be created, not even an empty
/// lock.
#[test]
fn a_watcher_waits_for_a_full_xfs() {
    waits_for_room(
        r#"truncate -s 320M "$IMAGE"
        mkfs.xfs -q "$IMAGE"
        mount -o loop "$IMAGE" "$DISK"
        n=0
        for size in 256M 64M 16M 4M 1M 256K 64K 16K 4K; do
            while fallocate -l $size "$DISK/ballast$n" 2>/dev/null; do n=$((n + 1)); done
        done
        while touch "$DISK/ballast-$n" 2>/dev/null; do n=$((n + 1)); done"#,
    );
}

/// Samples are more important than output: its loss is reported once.
#[test]
fn a_watcher_survives_a_full_disk_of_its_output() {
    let saiga = Installation::bare();
    let drive = Drive::new(&saiga, "drive", "SN1");
    drive.counts(0, 0);
    let file = saiga.path("waf.db");
    let words = ["--file", text(&file), text(&drive.folder)];
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();

    let once = [&["waf", "watch", "--once"][..], &words].concat();
    let output = saiga.saiga(&once).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");

    let words = [&["waf", "watch", "--every", "1s"][..], &words].concat();
    let mut command = saiga.saiga(&words);
    let mut watch = command
        .stdout(full())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let samples = || json(&saiga, text(&file))["drives"][0]["samples"].as_u64();
    let mut is_running = true;
    while is_running && samples() < Some(4) {
        is_running = watch.try_wait().unwrap().is_none();
    }
    if is_running {
        sys::signal(watch.id(), Signal::TERM).unwrap();
    }
    let complaints: Vec<String> = BufReader::new(watch.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .collect();
    assert_eq!(watch.wait().unwrap().code(), Some(0), "{complaints:?}");
    let expected = "cannot print samples: No space left on device (os error 28); they are still written to the file";
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].contains(expected), "{complaints:?}");
}
