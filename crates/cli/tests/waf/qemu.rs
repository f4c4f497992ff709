//! `saiga waf` on a real kernel and an NVMe drive with data placement, both of QEMU: the ioctl, the pages, the bytes.
//!
//! `tools/qemu target/qemu` fetches QEMU, kernel and shell; `make soak` calls it. The machine has no network and no
//! disk but the drive, and ends by itself.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use saiga_trials::bounded;
use serde_json::Value;

/// It takes ten seconds on an idle host.
const LIMIT: Duration = Duration::from_secs(600);

/// What the machine does: samples around a write of known length, then a report and a recording on its console.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /dev /tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
waf() { echo "@@ $*"; saiga waf "$@" </dev/null; echo "@@ status $?"; }
# The kernel looks for drives beside us, and numbers controllers and namespaces apart.
find() {
    for serial in /sys/class/nvme/nvme*/serial /sys/block/nvme*/device/serial; do
        name=${serial#/sys/class/nvme/}
        name=${name#/sys/block/}
        name=/dev/${name%%/*}
        # A path of a namespace that has several has no device.
        [ -e "$name" ] || continue
        case $(cat "$serial") in
            *PLACED*) if [ -b "$name" ]; then placed=$name; else controller=$name; fi ;;
            *PLAIN*) if [ -b "$name" ]; then plain=$name; fi ;;
        esac
    done
    [ -n "$placed" ] && [ -n "$controller" ] && [ -n "$plain" ]
}
for _ in $(seq 300); do
    if find 2>/dev/null; then break; fi
    sleep 0.1
done
waf probe "$placed"
waf probe "$controller" --json
waf probe "$plain"
waf watch --once --file /waf.db "$placed"
dd if=/dev/zero of="$placed" bs=1M count=24 conv=fsync 2>/dev/null
waf watch --once --file /waf.db "$placed"
waf watch --once --file /waf.db "$controller"
waf report --json --file /waf.db
waf record "$controller" /recording
waf probe /recording
poweroff -f
"#;

fn soak(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/qemu")
        .join(name);
    assert!(
        path.exists(),
        "{} is missing: run tools/qemu target/qemu",
        path.display()
    );
    path.canonicalize().unwrap()
}

/// The first file system of the machine: saiga with its libraries, a shell, and what to do.
fn initrd(folder: &Path) -> PathBuf {
    let root = folder.join("root");
    for name in ["bin", "lib", "lib64"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let saiga = Path::new(env!("CARGO_BIN_EXE_saiga"));
    let strip = Command::new("strip")
        .arg("-o")
        .arg(root.join("bin/saiga"))
        .arg(saiga)
        .status();
    assert!(strip.unwrap().success());
    fs::copy(soak("busybox"), root.join("bin/busybox")).unwrap();
    let libraries = Command::new("ldd").arg(saiga).output().unwrap();
    for word in String::from_utf8(libraries.stdout)
        .unwrap()
        .split_whitespace()
    {
        if word.starts_with('/') {
            let name = Path::new(word).file_name().unwrap();
            fs::copy(word, root.join("lib").join(name)).unwrap();
        }
    }
    fs::remove_dir(root.join("lib64")).unwrap();
    symlink("lib", root.join("lib64")).unwrap();
    fs::write(root.join("init"), INIT).unwrap();
    let archive = folder.join("initrd");
    let script = "chmod 755 init && find . | \"$BUSYBOX\" cpio -o -H newc >\"$ARCHIVE\"";
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(&root);
    command
        .env("BUSYBOX", soak("busybox"))
        .env("ARCHIVE", &archive);
    assert!(command.status().unwrap().success());
    archive
}

/// Runs the machine to its end; answers what its console said.
fn run(folder: &Path) -> String {
    let drive = |name: &str| {
        let path = folder.join(name);
        fs::File::create(&path).unwrap().set_len(256 << 20).unwrap();
        format!("file={},format=raw,if=none,id={name}", path.display())
    };
    let mut command = Command::new(soak("qemu"));
    command.args([
        "-machine",
        "q35,accel=tcg",
        "-m",
        "512",
        "-nic",
        "none",
        "-nographic",
        "-no-reboot",
    ]);
    command
        .arg("-kernel")
        .arg(soak("vmlinuz"))
        .arg("-initrd")
        .arg(initrd(folder));
    command.args(["-append", "console=ttyS0 quiet panic=-1"]);
    command.args(["-drive", &drive("placed"), "-drive", &drive("plain")]);
    for device in [
        "nvme-subsys,id=s0,fdp=on,fdp.runs=64M,fdp.nrg=1,fdp.nruh=8",
        "nvme,subsys=s0,serial=PLACED",
        "nvme-ns,drive=placed,nsid=1,fdp.ruhs=0;1;2;3",
        "nvme,drive=plain,serial=PLAIN",
    ] {
        command.args(["-device", device]);
    }
    let outcome = bounded::run(command, LIMIT);
    let console = outcome.stdout.replace('\r', "");
    assert!(outcome.is_success(), "{console}\n{}", outcome.ending);
    console
}

/// What one command of the machine said, and its exit status.
fn said<'a>(console: &'a str, command: &str, index: usize) -> (&'a str, &'a str) {
    let start = format!("@@ {command}");
    let (_, rest) = console
        .match_indices(&start)
        .nth(index)
        .map(|(at, _)| console.split_at(at))
        .expect(console);
    let (head, tail) = rest.split_once("@@ status ").expect(console);
    (
        head.split_once('\n').unwrap().1,
        tail.lines().next().unwrap(),
    )
}

#[test]
fn bytes_written_to_a_drive_that_places_data_are_counted_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let console = run(folder.path());
    let (probe, status) = said(&console, "probe", 0);
    assert_eq!(status, "0", "{console}");
    assert!(
        probe.contains("PLACED")
            && probe.contains("endurance group: 1; data placement (FDP): yes; streams: none"),
        "{probe}"
    );
    assert!(probe.contains("fdp        used: host"), "{probe}");
    let (value, _) = said(&console, "probe", 1);
    let value: Value = serde_json::from_str(value).expect(value);
    assert_eq!(value["endurance_groups"], serde_json::json!([1]));
    assert_eq!(value["vendor"], "1b36");

    // The drive without placement refuses pages by the status codes of the specification.
    let (plain, status) = said(&console, "probe", 2);
    assert_eq!(status, "1", "{console}");
    for refusal in [
        "the drive does not report Flexible",
        "the drive refuses log page C0h: NVMe status",
    ] {
        assert!(plain.contains(refusal), "{plain}");
    }

    let (again, status) = said(&console, "watch", 1);
    assert_eq!(status, "0", "{console}");
    assert!(again.contains("host 24.0 MiB, flash 24.0 MiB"), "{again}");
    let (report, _) = said(&console, "report", 0);
    let report: Value = serde_json::from_str(report).expect(report);
    let drive = &report["drives"][0];
    // The namespace and the controller are one drive.
    assert_eq!(drive["samples"], 3, "{console}");
    assert_eq!(drive["total"]["host_bytes"], 24 << 20);
    assert_eq!(drive["segments"][0]["source"], "fdp");
    assert_eq!(drive["segments"][0]["intervals"][0]["waf"], 1.0);

    let (copy, status) = said(&console, "probe /recording", 0);
    assert_eq!(status, "0", "{console}");
    assert!(copy.contains("fdp        used: host"), "{copy}");
}
