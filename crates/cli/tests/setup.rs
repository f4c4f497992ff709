//! `tools/setup` with stand-ins for apt-get and other programs: the calls that it makes, and that
//! it leaves the host unchanged. `tools/cross` on hosts that lack something.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Programs of the real system that the script may use.
const REAL: [&str; 16] = [
    "bash", "cut", "sed", "sort", "head", "grep", "id", "mktemp", "chmod", "ln", "rm", "flock",
    "tr", "dirname", "cat", "ls",
];

/// Stand-ins for the programs that the demo needs.
const DEMO: [&str; 5] = ["redis-server", "redis-benchmark", "redis-cli", "ip", "cc"];

mod support;

struct Host {
    root: tempfile::TempDir,
}

impl Host {
    /// A Debian with a recent cargo, everything for the demo except `missing`, and an apt-get that
    /// runs `apt`.
    fn new(missing: &[&str], apt: &str) -> Self {
        let host = Self {
            root: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(host.path("bin")).unwrap();
        for name in REAL {
            let folders = ["/usr/bin", "/bin"];
            let real = folders.map(|folder| Path::new(folder).join(name));
            let real = real.iter().find(|file| file.exists()).unwrap();
            symlink(real, host.path("bin").join(name)).unwrap();
        }
        for name in DEMO.iter().filter(|name| !missing.contains(name)) {
            host.program(name, "");
        }
        host.program("cargo", "echo 'cargo 1.95.0 (0 2026-01-01)'");
        host.program("apt-get", apt);
        host.program("deb-systemd-helper", "echo \"helper $*\" >>\"$LOG\"");
        fs::write(host.path("os-release"), "NAME=x\nID=debian\n").unwrap();
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        let file = self.path("bin").join(name);
        support::write_executable(&file, format!("#!/bin/sh\n{text}\n").as_bytes());
    }

    fn setup(&self) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/setup");
        // Through bash by its path, so that no file written by this process is executed by it.
        Command::new("/bin/bash")
            .arg(script)
            .arg("demo")
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("LOG", self.path("log"))
            .env("OS_RELEASE", self.path("os-release"))
            .env("POLICY_RC_D", self.path("policy-rc.d"))
            .env("LOCK_FILE", self.path("lock"))
            .output()
            .unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The remaining policy files.
    fn policies(&self) -> Vec<String> {
        fs::read_dir(self.root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("policy"))
            .collect()
    }
}

/// Logs its arguments and the output of the policy while it runs.
const APT: &str = "\"$POLICY_RC_D\" redis-server start; echo \"apt $* policy $?\" >>\"$LOG\"";

fn said(output: &Output) -> (Option<i32>, String) {
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn nothing_is_touched_when_nothing_is_missing() {
    let host = Host::new(&[], APT);
    assert_eq!(said(&host.setup()), (Some(0), String::new()));
    assert_eq!(host.log(), "");
}

#[test]
fn services_are_forbidden_while_packages_are_installed_and_only_then() {
    let host = Host::new(&["redis-server", "redis-benchmark", "redis-cli"], APT);
    let (code, stderr) = said(&host.setup());
    assert_eq!(code, Some(0), "{stderr}");
    let apt = "apt install -y --no-install-recommends redis-server redis-tools policy 101";
    assert_eq!(
        host.log(),
        format!("{apt}\nhelper disable redis-server.service\n")
    );
    assert_eq!(host.policies(), [""; 0], "removed again");
}

#[test]
fn a_failed_installation_leaves_no_policy_behind() {
    let host = Host::new(&["redis-cli"], &format!("{APT}; exit 100"));
    let (code, stderr) = said(&host.setup());
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("apt-get could not install: redis-tools"),
        "{stderr}"
    );
    assert_eq!(
        host.log().lines().count(),
        2,
        "install, then update: {}",
        host.log()
    );
    assert_eq!(host.policies(), [""; 0]);

    let host = Host::new(&["redis-cli"], "kill -TERM $PPID");
    assert_ne!(said(&host.setup()).0, Some(0));
    assert_eq!(host.policies(), [""; 0], "nor does a terminated one");
}

#[test]
fn the_administrator_s_policy_is_kept_and_obeyed() {
    for (answer, expected) in [(101, 0), (0, 2)] {
        let host = Host::new(&["redis-cli"], APT);
        let policy = host.path("policy-rc.d");
        let text = format!("#!/bin/sh\nexit {answer}\n");
        support::write_executable(&policy, text.as_bytes());
        let (code, stderr) = said(&host.setup());
        assert_eq!(code, Some(expected), "{stderr}");
        assert_eq!(fs::read_to_string(&policy).unwrap(), text);
        assert_eq!(host.policies(), ["policy-rc.d"]);
        assert_eq!(host.log().is_empty(), expected == 2, "{}", host.log());
    }
}

#[test]
fn another_distribution_gets_the_names() {
    let host = Host::new(&["redis-server", "cc"], APT);
    fs::write(host.path("os-release"), "ID=\"openEuler\"\n").unwrap();
    let (code, stderr) = said(&host.setup());
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("redis-server cc (on Debian: redis-server gcc)"),
        "{stderr}"
    );
    assert_eq!(host.log(), "");
}

#[test]
fn an_old_or_missing_cargo_is_named() {
    let host = Host::new(&[], APT);
    host.program("cargo", "echo 'cargo 1.66.0'");
    let (code, stderr) = said(&host.setup());
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("cargo 1.66.0 is too old")
            && stderr.contains(env!("CARGO_PKG_RUST_VERSION")),
        "{stderr}"
    );
    fs::remove_file(host.path("bin/cargo")).unwrap();
    let (code, stderr) = said(&host.setup());
    assert_eq!(code, Some(2));
    assert!(stderr.contains("cargo is missing"), "{stderr}");
}

/// What a copy of the tools does without network, in a folder of its own, where `stand_ins` are
/// programs of the host, as (name, shell script).
fn cross(
    words: &[&str],
    stand_ins: &[(&str, &str)],
    folders: &[&str],
) -> (tempfile::TempDir, support::Said) {
    let host = tempfile::tempdir().unwrap();
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    for folder in ["tools", "bin"].iter().chain(folders) {
        fs::create_dir_all(host.path().join(folder)).unwrap();
    }
    for name in ["cross", "packages"] {
        fs::copy(tools.join(name), host.path().join("tools").join(name)).unwrap();
    }
    for (name, script) in stand_ins {
        let text = format!("#!/bin/sh\n{script}\n");
        support::write_executable(&host.path().join("bin").join(name), text.as_bytes());
    }
    let path = format!("{}:/usr/bin:/bin", host.path().join("bin").display());
    let mut command = Command::new("bash");
    command.arg(host.path().join("tools/cross")).args(words);
    let said = support::said(command.env("PATH", path).current_dir(host.path()));
    (host, said)
}

/// Folders of `tools/cross emulate`.
const EMULATED: [&str; 3] = [
    "target/cross/root",
    "target/cross/emulator",
    "target/cross/tools",
];

#[test]
fn what_is_missing_is_named_with_the_command_that_helps() {
    let room = ("df", "echo Avail; echo 3000000");
    let network = ("apt-get", "exit 100");
    let namespaces = ("unshare", "exit 1");
    let mount = r#"case "$*" in *binfmt_misc*) exit 32 ;; esac; exec /bin/mount "$@""#;
    let binfmt = ("mount", mount);
    for (words, stand_ins, folders, expected) in [
        (
            &["emulate", "true"][..],
            &[room][..],
            &[][..],
            "needs 4 GiB and has 2929 MiB free; make room (cargo clean), or: ln -s ",
        ),
        (
            &["emulate", "true"],
            &[network],
            &[],
            "packages: cannot read the lists of packages of Debian bookworm; is there a network?",
        ),
        (
            &["emulate", "true"],
            &[namespaces],
            &EMULATED,
            "sysctl -w user.max_user_namespaces=10000",
        ),
        (
            &["emulate", "true"],
            &[("grep", "exit 1"), binfmt],
            &EMULATED,
            "as root: apt-get install qemu-user-static",
        ),
        (
            &["guest", "8", "--", "true"],
            &[],
            &EMULATED,
            "pages of 8 KiB: Arm has 4, 16 and 64",
        ),
        (
            &["guest", "4"],
            &[],
            &EMULATED,
            "give a command: tools/cross guest 4 -- uname -a",
        ),
    ] {
        let (host, said) = cross(words, stand_ins, folders);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(expected), "{expected}: {said:?}");
        let left = fs::read_dir(host.path().join("target/cross")).unwrap();
        assert_eq!(left.count(), folders.len(), "{words:?} left a folder");
    }
}
