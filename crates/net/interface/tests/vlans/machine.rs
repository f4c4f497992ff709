//! A virtual machine that runs this test program, and switches itself off.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that is set in the machine.
pub(crate) const INSIDE: &str = "SAIGA_IN_MACHINE";
/// Modules of the kernel, in the order of their dependencies.
const MODULES: [&str; 6] = [
    "net/llc/llc",
    "net/802/stp",
    "net/802/garp",
    "net/802/mrp",
    "net/8021q/8021q",
    "drivers/net/veth",
];
/// A boot takes some ten seconds without hardware support.
const LIMIT: &str = "300";

/// Runs this test program in a machine. Its output must say that the tests have passed.
pub(crate) fn run_this_program() {
    let folder = tempfile::tempdir().unwrap();
    make_initrd(folder.path());
    let output = Command::new("timeout")
        .arg(LIMIT)
        .arg(fetched("qemu"))
        .args(["-machine", "q35,accel=tcg", "-m", "1024", "-nic", "none"])
        .args(["-nographic", "-no-reboot", "-kernel"])
        .arg(fetched("vmlinuz"))
        .arg("-initrd")
        .arg(folder.path().join("initrd"))
        .args(["-append", "console=ttyS0 quiet panic=-1"])
        .output()
        .unwrap();
    let console = String::from_utf8_lossy(&output.stdout);
    assert!(console.contains("test result: ok. 1 passed"), "{console}");
}

/// A file that `tools/qemu target/qemu` has fetched.
fn fetched(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/qemu");
    let path = path.join(name);
    let hint = "is missing: run tools/qemu target/qemu";
    assert!(path.exists(), "{} {hint}", path.display());
    path.canonicalize().unwrap()
}

/// Makes the root file system: busybox, ip, this program, their libraries, and the modules.
fn make_initrd(folder: &Path) {
    let root = folder.join("root");
    for name in ["bin", "dev", "modules", "proc"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::copy(fetched("busybox"), root.join("bin/busybox")).unwrap();
    let test = std::env::current_exe().unwrap();
    copy_program(&test, "test", &root);
    let ip = Command::new("sh").args(["-c", "command -v ip"]).output();
    let ip = String::from_utf8(ip.unwrap().stdout).unwrap();
    copy_program(Path::new(ip.trim_end()), "ip", &root);
    let mut loads = String::new();
    for module in MODULES {
        let name = module.rsplit('/').next().unwrap();
        unpack(module, &root.join("modules").join(name));
        loads += &format!("/bin/busybox insmod /modules/{name}\n");
    }
    let init = root.join("init");
    let script = format!(
        "#!/bin/busybox sh\nexport PATH=/bin RUST_BACKTRACE=1 {INSIDE}=1\n\
         /bin/busybox mount -t proc proc /proc\n\
         /bin/busybox mount -t devtmpfs devtmpfs /dev\n{loads}/bin/test --nocapture 2>&1\n\
         /bin/busybox poweroff -f\n"
    );
    fs::write(&init, script).unwrap();
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).unwrap();
    let pack = "find . | \"$1\" cpio -o -H newc >../initrd";
    shell(pack, &[&fetched("busybox")], &root);
}

/// Copies a program to `bin`, and its libraries and loader to where the loader looks for them.
fn copy_program(program: &Path, name: &str, root: &Path) {
    fs::copy(program, root.join("bin").join(name)).unwrap();
    let copy = r#"ldd "$1" | grep -o '/[^ ]*' | xargs cp -L -n --parents -t ."#;
    shell(copy, &[program], root);
}

/// Unpacks a module of the fetched kernel.
fn unpack(module: &str, to: &Path) {
    let unpack = r#"xz -dc "$1"/*/kernel/"$2".ko.xz >"$3""#;
    let modules = fetched("root/usr/lib/modules");
    shell(unpack, &[&modules, Path::new(module), to], Path::new("."));
}

/// Runs a script in a folder.
fn shell(script: &str, arguments: &[&Path], folder: &Path) {
    let mut command = Command::new("sh");
    command.args(["-euc", script, "sh"]).args(arguments);
    assert!(
        command.current_dir(folder).status().unwrap().success(),
        "{script}"
    );
}
