//! One virtual machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use saiga_trials::bounded;

/// A sparse file behind a namespace.
pub(crate) struct Image {
    /// The name in the options of devices, as in `drive=name`.
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
}

/// Runs a machine with these files and devices; returns the output of its console.
///
/// The machine boots, runs the file `script.sh`, and switches itself off.
pub(crate) fn run(
    files: &[(&str, &str)],
    images: &[Image],
    devices: &[String],
    limit: Duration,
) -> String {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut command = Command::new(fetched("qemu"));
    command.args(["-machine", "q35,accel=tcg", "-m", "1024", "-nic", "none"]);
    command.args(["-nographic", "-no-reboot"]);
    command.arg("-kernel").arg(fetched("vmlinuz"));
    command.arg("-initrd").arg(initrd(folder, files));
    command.args(["-append", "console=ttyS0 quiet panic=-1"]);
    for Image { name, bytes } in images {
        let path = folder.join(name);
        fs::File::create(&path).unwrap().set_len(*bytes).unwrap();
        let path = path.display();
        let drive = format!("file={path},format=raw,if=none,id={name},discard=unmap");
        command.args(["-drive", &drive]);
    }
    for device in devices {
        command.args(["-device", device]);
    }
    let outcome = bounded::run(command, limit);
    let console = outcome.stdout.replace('\r', "");
    assert!(outcome.is_success(), "{console}\n{}", outcome.ending);
    assert!(console.contains("@@ script 0"), "{console}");
    console
}

/// A file that `tools/qemu target/qemu` has fetched.
fn fetched(name: &str) -> PathBuf {
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

/// The machine's root file system: the fetched programs, saiga, and the files of the test.
fn initrd(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
    let root = folder.join("root");
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(fetched("guest")).arg(&root);
    assert!(copy.status().unwrap().success());
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(root.join("bin/saiga"));
    strip.arg(env!("CARGO_BIN_EXE_saiga"));
    assert!(strip.status().unwrap().success());
    for (name, text) in [("init", include_str!("boot.sh"))].iter().chain(files) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let archive = folder.join("initrd");
    let script = "chmod -R a+rx . && find . | \"$BUSYBOX\" cpio -o -H newc >\"$ARCHIVE\"";
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(&root);
    command
        .env("BUSYBOX", fetched("busybox"))
        .env("ARCHIVE", &archive);
    assert!(command.status().unwrap().success());
    archive
}

/// The output and exit status of a command of the machine: the lines between `@@ command` and
/// `@@ status`.
pub(crate) fn said<'a>(console: &'a str, command: &str, index: usize) -> (&'a str, &'a str) {
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
