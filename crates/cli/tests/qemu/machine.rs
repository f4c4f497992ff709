//! One virtual machine: of this host's architecture, or for Arm with `SAIGA_MACHINE=arm64`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use saiga_trials::bounded;
use tempfile::TempDir;

/// A sparse file behind a namespace.
pub(crate) struct Image {
    /// The name in the options of devices, as in `drive=name`.
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
}

/// A machine whose disks keep their data between two boots.
pub(crate) struct Machine {
    folder: TempDir,
    images: Vec<Image>,
}

/// Runs a machine with these files and devices once; returns the output of its console.
///
/// The machine boots, runs the file `script.sh`, and switches itself off.
pub(crate) fn run(
    files: &[(&str, &str)],
    images: Vec<Image>,
    devices: &[String],
    limit: Duration,
) -> String {
    let mut options = vec!["-m", "1024"];
    for device in devices {
        options.extend(["-device", device]);
    }
    Machine::new(&["guest"], &[], files, images).boot("", &options, limit)
}

impl Machine {
    /// A machine whose first root file system has the fetched `folders`, `programs` of this host,
    /// saiga, and `files`.
    pub(crate) fn new(
        folders: &[&str],
        programs: &[&str],
        files: &[(&str, &str)],
        images: Vec<Image>,
    ) -> Self {
        Self::with_modules(&[], &[], folders, programs, files, images)
    }

    /// As [`Self::new`], with modules of the fetched kernel in `/lib/modules`, and libraries of
    /// this host, each in a folder.
    pub(crate) fn with_modules(
        modules: &[&str],
        libraries: &[(&Path, &str)],
        folders: &[&str],
        programs: &[&str],
        files: &[(&str, &str)],
        images: Vec<Image>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("lib/modules")).unwrap();
        modules.iter().for_each(|module| unpack(module, &root));
        for (library, place) in libraries {
            copy_library(library, &root, place);
        }
        initrd(folder.path(), folders, programs, files);
        for Image { name, bytes } in &images {
            let image = fs::File::create(folder.path().join(name)).unwrap();
            image.set_len(*bytes).unwrap();
        }
        Self { folder, images }
    }

    /// Boots the machine with these words for the kernel and options for QEMU, and waits until it
    /// switches itself off or restarts; returns the output of its console.
    pub(crate) fn boot(&self, words: &str, options: &[&str], limit: Duration) -> String {
        let folder = self.folder.path();
        let is_networked = options.iter().any(|option| option.starts_with("tap,"));
        let mut command = if is_networked {
            // In a network namespace of its own, where the device leads nowhere. Needs root.
            let mut command = Command::new("unshare");
            command.arg("--net").arg(fetched("qemu"));
            command
        } else {
            Command::new(fetched("qemu"))
        };
        command.args(["-nic", "none", "-nographic", "-no-reboot"]);
        command.arg("-kernel").arg(fetched("vmlinuz"));
        command.arg("-initrd").arg(folder.join("initrd"));
        let terminal = if is_arm() { "ttyAMA0" } else { "ttyS0" };
        let words = format!("console={terminal} quiet panic=-1 {words}");
        command.args(["-append", &words]);
        for Image { name, .. } in &self.images {
            let path = folder.join(name);
            let path = path.display();
            let drive = format!("file={path},format=raw,if=none,id={name},discard=unmap");
            command.args(["-drive", &drive]);
        }
        command.args(options);
        let outcome = bounded::run(command, limit);
        let console = outcome.stdout.replace('\r', "");
        assert!(
            outcome.is_success(),
            "{console}\n{}\n{}",
            outcome.stderr,
            outcome.ending
        );
        assert!(console.contains("@@ script 0"), "{console}");
        console
    }
}

/// Whether machines are for Arm, and run what `make arm` has built.
pub(crate) fn is_arm() -> bool {
    std::env::var("SAIGA_MACHINE").is_ok_and(|name| name == "arm64")
}

/// A file that a command of this repository has made below `target`.
fn built(folder: &str, name: &str, command: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let path = target.join(folder).join(name);
    assert!(path.exists(), "{} is missing: {command}", path.display());
    path.canonicalize().unwrap()
}

/// A file that `tools/qemu` has fetched.
fn fetched(name: &str) -> PathBuf {
    if is_arm() {
        built("qemu-arm64", name, "tools/qemu target/qemu-arm64 arm64")
    } else {
        built("qemu", name, "tools/qemu target/qemu")
    }
}

/// Makes the first root file system: the fetched programs, saiga, and the files of the test.
fn initrd(folder: &Path, folders: &[&str], programs: &[&str], files: &[(&str, &str)]) {
    let root = folder.join("root");
    for name in folders {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(fetched(name).join(".")).arg(&root);
        assert!(copy.status().unwrap().success());
    }
    for program in programs {
        copy_program(program, &root);
    }
    if is_arm() {
        let folder = "arm/aarch64-unknown-linux-gnu/release";
        let saiga = built(folder, "saiga", "make arm");
        fs::copy(saiga, root.join("bin/saiga")).unwrap(); // This host's strip does not know it.
    } else {
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(root.join("bin/saiga"));
        strip.arg(env!("CARGO_BIN_EXE_saiga"));
        assert!(strip.status().unwrap().success());
    }
    for (name, text) in [("init", include_str!("boot.sh"))].iter().chain(files) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let script = "chmod -R a+rx . && find . | \"$BUSYBOX\" cpio -o -H newc >../initrd";
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(&root);
    command.env("BUSYBOX", fetched("busybox"));
    assert!(command.status().unwrap().success());
    fs::remove_dir_all(&root).unwrap();
}

/// Unpacks a module of the fetched kernel, such as `drivers/net/veth`.
fn unpack(module: &str, root: &Path) {
    let script = r#"xz -dc "$1"/*/kernel/"$2".ko.xz >"$3"/lib/modules/"${2##*/}".ko"#;
    let mut unpack = Command::new("sh");
    unpack.args(["-ec", script, "sh"]);
    unpack.arg(fetched("root/usr/lib/modules")).arg(module);
    assert!(unpack.arg(root).status().unwrap().success(), "{module}");
}

/// Copies a program of this host and the libraries that the machine lacks. Those of the machine are
/// newer than this host's.
fn copy_program(name: &str, root: &Path) {
    let script = r#"
        program=$(command -v "$1")
        cp -L "$program" "$2/bin"
        ldd "$program" | awk '$3 ~ /^\// { print $3 }' | xargs cp -L -n -t "$2/lib"
    "#;
    let mut copy = Command::new("sh");
    copy.args(["-ec", script, "sh", name]).arg(root);
    assert!(copy.status().unwrap().success(), "{name}");
}

/// Copies a library of this host to a folder of the machine, and those that it needs to `/lib`,
/// except those of the C library.
fn copy_library(library: &Path, root: &Path, place: &str) {
    let script = r#"
        mkdir -p "$2/$3"
        cp -L "$1" "$2/$3"
        ldd "$1" | awk '$3 ~ /^\// { print $3 }' | grep -v '/lib\(c\|m\|gcc_s\)\.so' |
            xargs -r cp -L -n -t "$2/lib"
    "#;
    let mut copy = Command::new("sh");
    copy.args(["-ec", script, "sh"]).arg(library).arg(root);
    assert!(
        copy.arg(place).status().unwrap().success(),
        "{}",
        library.display()
    );
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
