//! `saiga enable` and `saiga disable` on units in a temporary tree: what is written, what is
//! refused, and that nothing else is touched.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

mod support;
use support::{Installation, Said, said};

/// An installation, and below `system` a machine with the service `db`.
struct Machine {
    saiga: Installation,
}

impl Machine {
    fn with(service: &str) -> Self {
        let saiga = Installation::with_library();
        for folder in ["etc", "usr/lib/systemd/system", "usr/bin"] {
            fs::create_dir_all(saiga.path("system").join(folder)).unwrap();
        }
        let machine = Self { saiga };
        machine.write(
            "etc/passwd",
            "root:x:0:0::/root:/bin/sh\ndb:x:4321:4321::/:/bin/sh\n",
        );
        machine.write("etc/group", "root:x:0:\ndb:x:4321:\nextra:x:4400:db\n");
        machine
            .saiga
            .compile("int main(void){return 0;}", &[], "system/usr/bin/db");
        let unit =
            format!("[Unit]\nDescription=x\n[Service]\nExecStart=/usr/bin/db --serve\n{service}\n");
        machine.write("usr/lib/systemd/system/db.service", &unit);
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.saiga.path("system").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, verb: &str, unit: &str) -> Said {
        let root = self.path("").display().to_string();
        said(&mut self.saiga.saiga(&[verb, "--root", &root, unit]))
    }

    fn drop_in(&self) -> PathBuf {
        self.path("etc/systemd/system/db.service.d/saiga.conf")
    }

    /// Demands a refusal that says `words` and writes nothing.
    fn refuses(&self, words: &str) {
        let out = self.run("enable", "db");
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{out:?}");
        assert!(
            out.stderr.contains("db.service was not enabled:"),
            "{out:?}"
        );
        assert!(out.stderr.contains(words), "{words}: {out:?}");
        assert!(!self.path("etc/systemd").exists());
    }
}

#[test]
fn enable_writes_one_file_and_disable_removes_it() {
    let machine = Machine::with("User=db\nNoNewPrivileges=yes\nMemoryDenyWriteExecute=yes");
    let before = fs::read(machine.path("usr/lib/systemd/system/db.service")).unwrap();
    let out = machine.run("enable", "db");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    assert!(
        out.stdout.contains("systemd is not running here"),
        "{out:?}"
    );
    let library = machine.saiga.path("lib/saiga/libsaiga.so");
    let expected = format!(
        "# Written by `saiga enable`; removed by `saiga disable`.\n[Service]\nEnvironment=\"LD_PRELOAD={}\"\n",
        library.display()
    );
    assert_eq!(fs::read_to_string(machine.drop_in()).unwrap(), expected);
    assert_eq!(
        fs::metadata(machine.drop_in())
            .unwrap()
            .permissions()
            .mode()
            & 0o7777,
        0o644
    );
    assert!(
        machine
            .run("enable", "db.service")
            .stdout
            .contains("is enabled already")
    );

    let root = machine.path("").display().to_string();
    let shown = said(&mut machine.saiga.saiga(&["status", "--root", &root]));
    assert!(
        shown.stdout.contains("enabled services: db.service\n"),
        "{shown:?}"
    );

    let out = machine.run("disable", "db");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    assert!(!machine.drop_in().parent().unwrap().exists());
    assert_eq!(machine.run("disable", "db").code, Some(1));
    assert_eq!(
        fs::read(machine.path("usr/lib/systemd/system/db.service")).unwrap(),
        before
    );
    let shown = said(&mut machine.saiga.saiga(&["status", "--root", &root]));
    assert!(!shown.stdout.contains("enabled services"), "{shown:?}");
}

#[test]
fn what_others_preload_and_drop_in_stays() {
    let machine = Machine::with("Environment=A=b \"LD_PRELOAD=/usr/lib/libjemalloc.so\"");
    machine.write(
        "etc/systemd/system/db.service.d/mine.conf",
        "[Service]\nNice=1\n",
    );
    assert_eq!(machine.run("enable", "db").code, Some(0));
    let text = fs::read_to_string(machine.drop_in()).unwrap();
    assert!(
        text.contains("libsaiga.so:/usr/lib/libjemalloc.so\""),
        "{text}"
    );
    assert_eq!(machine.run("enable", "db").code, Some(0));
    assert_eq!(
        fs::read_to_string(machine.drop_in()).unwrap(),
        text,
        "not preloaded twice"
    );
    assert_eq!(machine.run("disable", "db").code, Some(0));
    assert!(
        machine
            .path("etc/systemd/system/db.service.d/mine.conf")
            .exists()
    );
}

#[test]
fn a_sandbox_that_is_in_the_way_is_named() {
    for (service, words) in [
        ("PrivateTmp=yes", "PrivateTmp= hides"),
        ("InaccessiblePaths=-/tmp", "InaccessiblePaths= hides"),
        ("TemporaryFileSystem=/tmp:ro", "TemporaryFileSystem= hides"),
        ("RootDirectory=/srv/db", "RootDirectory= hides"),
        ("RootImage=/srv/db.raw", "RootImage= hides"),
        ("NoExecPaths=/", "NoExecPaths= keeps it from loading"),
        (
            "NoExecPaths=/tmp\nExecPaths=/ /usr",
            "NoExecPaths= keeps it from loading",
        ),
        (
            "RestrictAddressFamilies=AF_INET AF_UNIX",
            "lacks AF_NETLINK",
        ),
        ("RestrictAddressFamilies=~AF_UNIX", "lacks AF_UNIX"),
        (
            "RestrictAddressFamilies=none",
            "adds RestrictAddressFamilies=AF_UNIX AF_NETLINK",
        ),
        (
            "SystemCallFilter=@basic-io @network-io @file-system @io-event @process @signal ioctl",
            "adds SystemCallFilter=memfd_create munlock madvise\n",
        ),
        (
            "SystemCallFilter=~@default",
            "lacks membarrier mprotect prlimit64 sched_getaffinity",
        ),
        (
            "SystemCallFilter=@system-service\nSystemCallFilter=~memfd_create:EPERM",
            "lacks memfd_create",
        ),
        ("PrivateNetwork=yes", "a network namespace of its own"),
        ("PrivateUsers=yes", "PrivateUsers= hides who"),
        ("UnsetEnvironment=LD_PRELOAD", "UnsetEnvironment="),
        (
            "ExecStart=\nExecStart=/usr/bin/nothing",
            "/usr/bin/nothing does not exist",
        ),
        ("ExecStart=\nExecStart=nothing", "nothing does not exist"),
        ("ExecStart=\nExecStart=/bin/true", "it starts no server"),
        ("ExecStart=", "it starts no server"),
    ] {
        Machine::with(service).refuses(words);
    }
}

#[test]
fn settings_that_let_the_library_in_are_no_obstacle() {
    for service in [
        "ProtectHome=yes\nProtectSystem=strict\nReadOnlyPaths=/",
        "PrivateTmp=yes\nPrivateTmp=no",
        "PrivateTmp=yes\nBindReadOnlyPaths=/tmp",
        "NoExecPaths=/\nExecPaths=/tmp",
        "ExecStart=\nExecStart=db --serve",
        "RestrictAddressFamilies=AF_INET\nRestrictAddressFamilies=AF_UNIX AF_NETLINK",
        "SystemCallFilter=@system-service\nSystemCallFilter=~@privileged",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE\nUser=db",
        "EnvironmentFile=-/etc/default/nothing",
    ] {
        let machine = Machine::with(service);
        let out = machine.run("enable", "db");
        assert_eq!(
            (out.code, out.stderr.as_str()),
            (Some(0), ""),
            "{service}: {out:?}"
        );
    }
}

#[test]
fn what_is_relaxed_is_no_obstacle_any_more() {
    for (service, lines) in [
        (
            "RestrictAddressFamilies=~AF_NETLINK AF_PACKET",
            "RestrictAddressFamilies=AF_NETLINK\n",
        ),
        (
            "RestrictAddressFamilies=none",
            "RestrictAddressFamilies=AF_UNIX AF_NETLINK\n",
        ),
        (
            "SystemCallFilter=@system-service\nSystemCallFilter=~memfd_create:EPERM",
            "SystemCallFilter=memfd_create\n",
        ),
        ("SystemCallFilter=~@ipc", "SystemCallFilter=memfd_create\n"),
    ] {
        let machine = Machine::with(service);
        assert_eq!(machine.run("enable", "db").code, Some(1), "{service}");
        let root = machine.path("").display().to_string();
        let out = said(
            &mut machine
                .saiga
                .saiga(&["enable", "--relax", "--root", &root, "db"]),
        );
        assert_eq!(
            (out.code, out.stderr.as_str()),
            (Some(0), ""),
            "{service}: {out:?}"
        );
        let text = fs::read_to_string(machine.drop_in()).unwrap();
        assert!(text.ends_with(lines), "{service}: {text}");
        assert_eq!(machine.run("disable", "db").code, Some(0));
        assert!(!machine.drop_in().exists());
    }
    let machine = Machine::with("PrivateNetwork=yes\nPrivateUsers=yes");
    let root = machine.path("").display().to_string();
    let out = said(
        &mut machine
            .saiga
            .saiga(&["enable", "--relax", "--root", &root, "db"]),
    );
    assert_eq!(out.code, Some(1), "its network stays its own: {out:?}");
    assert!(!machine.drop_in().exists());
}

#[test]
fn a_drop_in_and_a_template_are_read_as_systemd_does() {
    let machine = Machine::with("");
    machine.write(
        "etc/systemd/system/db.service.d/50-net.conf",
        "[Service]\nPrivateNetwork=yes\n",
    );
    machine.write(
        "run/systemd/system/db.service.d/50-net.conf",
        "[Service]\nPrivateNetwork=no\n",
    );
    assert_eq!(
        machine.run("enable", "db").code,
        Some(1),
        "etc wins over run"
    );
    machine.write(
        "etc/systemd/system/db.service.d/60-net.conf",
        "[Service]\nPrivateNetwork=no\n",
    );
    assert_eq!(machine.run("enable", "db").code, Some(0));
    assert_eq!(machine.run("disable", "db").code, Some(0));
    machine.write(
        "usr/lib/systemd/system/a-b.service",
        "[Service]\nExecStart=/usr/bin/db\n",
    );
    machine.write(
        "etc/systemd/system/a-.service.d/net.conf",
        "[Service]\nPrivateNetwork=yes\n",
    );
    assert_eq!(
        machine.run("enable", "a-b").code,
        Some(1),
        "the drop-ins of a beginning of its name count"
    );
    machine.write(
        "usr/lib/systemd/system/many@.service",
        "[Service]\nExecStart=/usr/bin/db\n",
    );
    assert_eq!(machine.run("enable", "many@one").code, Some(0));
    assert!(
        machine
            .path("etc/systemd/system/many@one.service.d/saiga.conf")
            .exists()
    );
}

#[test]
fn a_user_who_cannot_read_the_library_is_noticed() {
    let machine = Machine::with("User=db");
    let folder = machine.saiga.path("lib/saiga");
    for (mode, code) in [(0o700, Some(1)), (0o711, Some(0)), (0o750, Some(1))] {
        fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
        let out = machine.run("enable", "db");
        assert_eq!(out.code, code, "{mode:o}: {out:?}");
        assert_eq!(
            out.stderr.contains("its user cannot read"),
            code == Some(1),
            "{out:?}"
        );
        machine.run("disable", "db");
    }
}

#[test]
fn programs_that_ignore_the_library_are_noticed() {
    let machine = Machine::with("User=db");
    let program = machine.path("usr/bin/db");
    fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    machine.refuses("is setuid");
    let machine = Machine::with("User=db\nNoNewPrivileges=yes");
    fs::set_permissions(
        machine.path("usr/bin/db"),
        PermissionsExt::from_mode(0o4755),
    )
    .unwrap();
    assert_eq!(machine.run("enable", "db").code, Some(0));
    let machine = Machine::with("");
    machine.saiga.compile(
        "int main(void){return 0;}",
        &["-static"],
        "system/usr/bin/db",
    );
    machine.refuses("statically linked");
}

#[test]
fn what_cannot_be_done_ends_with_2() {
    let machine = Machine::with("User=nobody-knows");
    for (unit, words) in [
        ("none", "there is no unit none.service"),
        ("../etc/db", "is not the name of a unit"),
        ("db.socket", "db.socket is not a service"),
        ("db", "no user nobody-knows"),
    ] {
        let out = machine.run("enable", unit);
        assert_eq!(out.code, Some(2), "{unit}: {out:?}");
        assert!(out.stderr.contains(words), "{words}: {out:?}");
    }
    std::os::unix::fs::symlink(
        "/dev/null",
        machine.path("usr/lib/systemd/system/off.service"),
    )
    .unwrap();
    assert!(machine.run("enable", "off").stderr.contains("is masked"));
}
