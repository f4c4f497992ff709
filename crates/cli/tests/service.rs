//! `saiga enable` and `saiga disable` on units below a temporary root: the files that are written
//! and removed, and the refusals, which write nothing.
//!
//! Tests in `saiga-service` have all settings of a sandbox; each kind of obstacle is here once.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

mod support;
use support::{Installation, Said, said};

/// An installation, and below its folder `system` a root with the service `db`.
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
        machine.set(service);
        machine
    }

    /// Replaces the unit by one with the settings `service`.
    fn set(&self, service: &str) {
        let unit =
            format!("[Unit]\nDescription=x\n[Service]\nExecStart=/usr/bin/db --serve\n{service}\n");
        self.write("usr/lib/systemd/system/db.service", &unit);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.saiga.path("system").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, verb: &str, unit: &str) -> Said {
        self.saiga(&[verb, unit])
    }

    fn saiga(&self, arguments: &[&str]) -> Said {
        said(self.saiga.saiga(arguments).arg("--root").arg(self.path("")))
    }

    fn drop_in(&self) -> PathBuf {
        self.path("etc/systemd/system/db.service.d/saiga.conf")
    }

    /// Asserts that enabling is refused with `words`, and writes nothing.
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
        "# Written by `saiga enable`; removed by `saiga \
         disable`.\n[Service]\nEnvironment=\"LD_PRELOAD={}\"\n",
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
            .contains("is already enabled")
    );

    let shown = machine.saiga(&["status"]);
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
    let shown = machine.saiga(&["status"]);
    assert!(!shown.stdout.contains("enabled services"), "{shown:?}");
}

#[test]
fn other_preloaded_libraries_and_drop_ins_stay() {
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
fn each_obstacle_is_named() {
    let machine = Machine::with("");
    machine.write("etc/default/db.2", "LD_PRELOAD=/usr/lib/x.so\n");
    for (service, words) in [
        ("PrivateTmp=yes", "PrivateTmp= hides /tmp"),
        ("NoExecPaths=/", "adds ExecPaths=-/tmp"),
        (
            "RestrictAddressFamilies=none",
            "adds RestrictAddressFamilies=AF_UNIX AF_NETLINK\n",
        ),
        ("PrivateUsers=yes", "adds PrivateUsers=no\n"),
        (
            "SystemCallFilter=@basic-io @network-io @file-system @io-event @process @signal ioctl",
            "adds SystemCallFilter=memfd_create munlock getcpu madvise\n",
        ),
        ("PrivateNetwork=yes", "a network namespace of its own"),
        ("UnsetEnvironment=LD_PRELOAD", "UnsetEnvironment="),
        (
            "EnvironmentFile=-/etc/default/%p.*",
            "/etc/default/db.2 (EnvironmentFile=) sets LD_PRELOAD",
        ),
        (
            "ExecStart=\nExecStart=/usr/bin/nothing",
            "/usr/bin/nothing does not exist",
        ),
        ("ExecStart=\nExecStart=nothing", "nothing does not exist"),
        ("ExecStart=\nExecStart=/bin/true", "it starts no server"),
        ("ExecStart=", "it starts no server"),
    ] {
        machine.set(service);
        machine.refuses(words);
    }
}

#[test]
fn settings_that_let_the_library_work_are_not_obstacles() {
    let machine = Machine::with("");
    for service in [
        "PrivateTmp=yes\nBindReadOnlyPaths=/tmp",
        "ExecStart=\nExecStart=db --serve",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE\nUser=db",
        "EnvironmentFile=-/etc/default/nothing",
    ] {
        machine.set(service);
        let out = machine.run("enable", "db");
        assert_eq!(
            (out.code, out.stderr.as_str()),
            (Some(0), ""),
            "{service}: {out:?}"
        );
        assert_eq!(machine.run("disable", "db").code, Some(0));
    }
}

#[test]
fn a_sandbox_is_relaxed_only_if_that_removes_every_obstacle() {
    let machine = Machine::with("SystemCallFilter=~@ipc");
    assert_eq!(machine.run("enable", "db").code, Some(1));
    let out = machine.saiga(&["enable", "--relax", "db"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    let text = fs::read_to_string(machine.drop_in()).unwrap();
    assert!(text.ends_with("SystemCallFilter=memfd_create\n"), "{text}");
    assert_eq!(machine.run("disable", "db").code, Some(0));
    assert!(!machine.drop_in().exists());

    machine.set("PrivateNetwork=yes\nPrivateUsers=yes");
    let out = machine.saiga(&["enable", "--relax", "db"]);
    assert_eq!(out.code, Some(1), "no line relaxes its network: {out:?}");
    assert!(!machine.drop_in().exists());
}

#[test]
fn other_drop_ins_apply_and_an_instance_of_a_template_gets_its_own() {
    let machine = Machine::with("");
    machine.write(
        "etc/systemd/system/db.service.d/50-net.conf",
        "[Service]\nPrivateNetwork=yes\n",
    );
    assert_eq!(machine.run("enable", "db").code, Some(1));
    machine.write(
        "etc/systemd/system/db.service.d/60-net.conf",
        "[Service]\nPrivateNetwork=no\n",
    );
    assert_eq!(machine.run("enable", "db").code, Some(0));
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
fn a_user_without_access_to_the_library_is_an_obstacle() {
    let machine = Machine::with("User=db");
    let folder = machine.saiga.path("lib/saiga");
    for (mode, code) in [(0o700, Some(1)), (0o711, Some(0)), (0o750, Some(1))] {
        fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
        let out = machine.run("enable", "db");
        assert_eq!(out.code, code, "{mode:o}: {out:?}");
        assert_eq!(
            out.stderr.contains("the user of the service cannot read"),
            code == Some(1),
            "{out:?}"
        );
        machine.run("disable", "db");
    }
}

#[test]
fn programs_that_ignore_the_library_are_obstacles() {
    let machine = Machine::with("User=db");
    let program = machine.path("usr/bin/db");
    fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    machine.refuses("is setuid");
    let static_program = ["-static"];
    machine.saiga.compile(
        "int main(void){return 0;}",
        &static_program,
        "system/usr/bin/db",
    );
    machine.refuses("statically linked");

    let machine = Machine::with("User=db\nNoNewPrivileges=yes");
    let program = machine.path("usr/bin/db");
    fs::set_permissions(program, PermissionsExt::from_mode(0o4755)).unwrap();
    assert_eq!(machine.run("enable", "db").code, Some(0));
}

#[test]
fn bad_input_ends_with_2() {
    let machine = Machine::with("User=nobody-knows");
    for (unit, words) in [
        ("none", "there is no unit none.service"),
        ("../etc/db", "is not the name of a unit"),
        ("db.socket", "db.socket is not a service"),
        ("db", "the unit runs as the user nobody-knows, but"),
    ] {
        let out = machine.run("enable", unit);
        assert_eq!(out.code, Some(2), "{unit}: {out:?}");
        assert!(out.stderr.contains(words), "{words}: {out:?}");
    }
}

#[test]
fn a_profile_of_apparmor_gets_the_rules_that_it_lacks_on_request() {
    let machine = Machine::with("User=db");
    let library = machine.saiga.path("lib/saiga/libsaiga.so");
    let rule = format!("{} mr,", library.display());
    let loaded = "sys/kernel/security/apparmor/profiles";
    let profile = |include: &str| {
        let text = format!("profile db /usr/{{,s}}bin/d* {{\n  {include}\n}}\n");
        machine.write("etc/apparmor.d/usr.bin.db", &text);
    };
    machine.write("sys/module/apparmor/parameters/enabled", "Y\n");
    machine.write(loaded, "db (enforce)\n");

    profile("");
    let load = "/etc/apparmor.d/usr.bin.db and run `apparmor_parser -r /etc/apparmor.d/usr.bin.db`";
    machine.refuses(load);
    machine.refuses(&rule);
    let out = machine.saiga(&["enable", "--apparmor-local", "db"]);
    assert_eq!(out.code, Some(1), "the profile includes no file: {out:?}");

    profile("include if exists <local/usr.bin.db>");
    machine.refuses("--apparmor-local adds these rules");
    let local = machine.path("etc/apparmor.d/local/usr.bin.db");
    for before in [None, Some("/srv/x r,\n")] {
        if let Some(text) = before {
            fs::write(&local, text).unwrap();
            fs::set_permissions(&local, PermissionsExt::from_mode(0o640)).unwrap();
        }
        let out = machine.saiga(&["enable", "--apparmor-local", "db"]);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
        let load = "local/usr.bin.db; to load them: apparmor_parser -r /etc/apparmor.d/usr.bin.db";
        assert!(out.stdout.contains(load), "{out:?}");
        let text = fs::read_to_string(&local).unwrap();
        assert!(text.starts_with(before.unwrap_or("# Written by")), "{text}");
        assert!(text.contains(&rule), "{text}");
        let mode = fs::metadata(&local).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if before.is_some() { 0o640 } else { 0o644 });
        let out = machine.run("enable", "db");
        assert!(out.stdout.contains("is already enabled"), "{out:?}");
        assert_eq!(machine.run("disable", "db").code, Some(0));
        assert_eq!(fs::read_to_string(&local).ok().as_deref(), before);
    }

    machine.write(loaded, "db (complain)\n");
    assert_eq!(machine.run("enable", "db").code, Some(0));
}

#[test]
fn the_status_of_a_service_is_that_of_its_main_process() {
    let machine = Machine::with("");
    let out = machine.saiga(&["status", "db"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(1), ""), "{out:?}");
    let expected = "db.service has no main process: it does not run";
    assert!(out.stdout.starts_with(expected), "{out:?}");
    let out = machine.saiga(&["status", "none"]);
    assert_eq!(out.code, Some(2), "{out:?}");
}
