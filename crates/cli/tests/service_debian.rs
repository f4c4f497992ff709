//! `saiga enable` and `saiga disable` on copies of the units of Debian's packages, which
//! `tools/setup test` installs. Units and Saiga are below a temporary root.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod support;
use support::{Installation, Said, said};

const UNITS: [&str; 7] = [
    "redis-server.service",
    "memcached.service",
    "mariadb.service",
    "postgresql.service",
    "postgresql@.service",
    "nginx.service",
    "ssh.service",
];
const PROGRAMS: [&str; 5] = [
    "usr/bin/redis-server",
    "usr/bin/memcached",
    "usr/sbin/mariadbd",
    "usr/sbin/nginx",
    "usr/sbin/sshd",
];
/// The file that pg_createcluster writes, with an additional line of the user.
const ENVIRONMENT: &str = "# environment variables for postgres processes\nLC_MESSAGES = 'C'\n";
const LINE: &str = "LD_PRELOAD = '/usr/local/lib/saiga/libsaiga.so' # written by `saiga enable`; `saiga disable` removes it\n";

/// A Debian system below a temporary folder.
struct Debian {
    files: Installation,
}

impl Debian {
    fn new() -> Self {
        let machine = Self {
            files: Installation::with_library(),
        };
        for name in UNITS {
            let from = Path::new("/lib/systemd/system").join(name);
            let to = machine.folder("usr/lib/systemd/system").join(name);
            fs::copy(&from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        }
        let alias = machine.path("usr/lib/systemd/system/mysql.service");
        symlink("mariadb.service", alias).unwrap();
        for name in PROGRAMS {
            machine.folder(Path::new(name).parent().unwrap());
            symlink(Path::new("/").join(name), machine.path(name)).unwrap();
        }
        machine.folder("etc");
        for name in ["etc/passwd", "etc/group"] {
            fs::copy(Path::new("/").join(name), machine.path(name)).unwrap();
        }
        for (from, folder) in [
            ("bin/saiga", "usr/local/bin"),
            ("lib/saiga/libsaiga.so", "usr/local/lib/saiga"),
        ] {
            let mut install = Command::new("install");
            install.arg(machine.files.path(from));
            assert!(
                install
                    .arg(machine.folder(folder))
                    .status()
                    .unwrap()
                    .success()
            );
        }
        machine.cluster("15", "main");
        machine
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.files.path("system").join(name)
    }

    /// A folder, created if it does not exist.
    fn folder(&self, name: impl AsRef<Path>) -> PathBuf {
        let folder = self.path(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Adds a PostgreSQL cluster with the program of its server.
    fn cluster(&self, version: &str, name: &str) {
        let folder = self.folder(format!("etc/postgresql/{version}/{name}"));
        fs::write(folder.join("postgresql.conf"), "port = 5432\n").unwrap();
        fs::write(folder.join("environment"), ENVIRONMENT).unwrap();
        self.stand_in(&format!("usr/lib/postgresql/{version}/bin/postgres"), &[]);
    }

    /// Compiles a program that does nothing in the place of `name`.
    fn stand_in(&self, name: &str, flags: &[&str]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if path.is_symlink() {
            fs::remove_file(&path).unwrap();
        }
        let code = "int main(void){return 0;}";
        self.files.compile(code, flags, &format!("system/{name}"))
    }

    fn saiga(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(self.path("usr/local/bin/saiga"));
        command
            .args(arguments)
            .arg("--root")
            .arg(self.path(""))
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        said(&mut command)
    }

    fn drop_in(&self, unit: &str) -> String {
        let path = format!("etc/systemd/system/{unit}.d/saiga.conf");
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// All files below the root, with permissions and content.
    fn everything(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.path("")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let facts = path.symlink_metadata().unwrap();
                if facts.is_dir() {
                    folders.push(path);
                } else if facts.is_file() {
                    let content = fs::read(&path).unwrap();
                    found.insert(path, (facts.permissions().mode(), content));
                }
            }
        }
        found
    }
}

fn preload(relaxations: &str) -> String {
    format!(
        "# Written by `saiga enable`; removed by `saiga disable`.\n[Service]\n\
         Environment=\"LD_PRELOAD=/usr/local/lib/saiga/libsaiga.so\"\n{relaxations}"
    )
}

#[test]
fn units_without_a_sandbox_get_a_drop_in() {
    let machine = Debian::new();
    let before = machine.everything();
    for (asked, unit) in [
        ("mariadb", "mariadb.service"),
        ("nginx.service", "nginx.service"),
        ("ssh", "ssh.service"),
    ] {
        let out = machine.saiga(&["enable", asked]);
        assert_eq!(
            (out.code, out.stderr.as_str()),
            (Some(0), ""),
            "{asked}: {out:?}"
        );
        assert_eq!(machine.drop_in(unit), preload(""), "{asked}");
    }
    for unit in ["mariadb", "nginx", "ssh"] {
        assert_eq!(machine.saiga(&["disable", unit]).code, Some(0), "{unit}");
    }
    assert_eq!(machine.everything(), before, "every file is as before");
}

#[test]
fn an_alias_stands_for_its_unit() {
    let machine = Debian::new();
    assert_eq!(machine.saiga(&["enable", "mysql"]).code, Some(0));
    assert_eq!(machine.drop_in("mariadb.service"), preload(""));
    let out = machine.saiga(&["enable", "mariadb"]);
    assert!(
        out.stdout.contains("mariadb.service is already enabled"),
        "{out:?}"
    );
    assert_eq!(machine.saiga(&["disable", "mysql"]).code, Some(0));
    assert!(
        !machine
            .path("etc/systemd/system/mariadb.service.d")
            .exists()
    );
}

#[test]
fn a_sandbox_is_relaxed_on_request_and_only_as_necessary() {
    let families = "RestrictAddressFamilies= lacks AF_NETLINK, which the two ends of a connection \
                    need to find each other";
    let users = "PrivateUsers= hides the users of its clients: only clients of root and of its own \
                 user would be accelerated";
    let paths = "NoExecPaths= prevents the service from loading /usr/local/lib/saiga/libsaiga.so, \
                 and ExecPaths= does not list it";
    let of_redis = [
        (families, "RestrictAddressFamilies=AF_NETLINK"),
        (users, "PrivateUsers=no"),
        (paths, "ExecPaths=-/usr/local/lib/saiga"),
    ];
    let machine = Debian::new();
    let before = machine.everything();
    for (unit, relaxations) in [
        ("redis-server.service", &of_redis[..]),
        ("memcached.service", &of_redis[..1]),
    ] {
        let out = machine.saiga(&["enable", unit]);
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{out:?}");
        let named: String = relaxations
            .iter()
            .map(|(why, line)| format!("saiga:   {why}; --relax adds {line}\n"))
            .collect();
        let expected = format!(
            "saiga: {unit} was not enabled:\n{named}saiga: `saiga enable --relax {unit}` adds \
             these lines to Saiga's drop-in, and `saiga disable` removes them; the other sandbox \
             options stay\n"
        );
        assert_eq!(out.stderr, expected);
        assert_eq!(machine.everything(), before, "nothing is written");

        let out = machine.saiga(&["enable", "--relax", unit]);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
        let written: String = relaxations
            .iter()
            .map(|(why, line)| format!("# {why}\n{line}\n"))
            .collect();
        assert_eq!(machine.drop_in(unit), preload(&written));
        for (why, line) in relaxations {
            assert!(
                out.stdout.contains(&format!("  {line}  ({why})\n")),
                "{out:?}"
            );
        }
        let again = machine.saiga(&["enable", unit]);
        assert!(again.stdout.contains("is already enabled"), "{again:?}");
        assert_eq!(machine.saiga(&["disable", unit]).code, Some(0));
        assert_eq!(machine.everything(), before, "every file is as before");
    }
}

#[test]
fn a_later_drop_in_that_overrides_ours_is_an_obstacle() {
    let machine = Debian::new();
    let folder = machine.folder("etc/systemd/system/redis-server.service.d");
    for (text, words) in [
        ("PrivateUsers=yes", "PrivateUsers= hides"),
        ("RestrictAddressFamilies=~AF_NETLINK", "lacks AF_NETLINK"),
        ("Environment=LD_PRELOAD=/x.so", "sets another LD_PRELOAD"),
    ] {
        fs::write(folder.join("zz.conf"), format!("[Service]\n{text}\n")).unwrap();
        let out = machine.saiga(&["enable", "--relax", "redis-server"]);
        assert_eq!(
            (out.code, out.stdout.as_str()),
            (Some(1), ""),
            "{text}: {out:?}"
        );
        let expected = "a drop-in that systemd reads after Saiga's sets this";
        assert!(
            out.stderr.contains(words) && out.stderr.contains(expected),
            "{out:?}"
        );
        assert!(!folder.join("saiga.conf").exists(), "{text}");
    }
}

#[test]
fn mariadbd_is_checked_although_a_shell_starts_it() {
    let machine = Debian::new();
    let program = machine.stand_in("usr/sbin/mariadbd", &["-static"]);
    let out = machine.saiga(&["enable", "mariadb"]);
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(
        out.stderr.contains("sbin/mariadbd is statically linked"),
        "{out:?}"
    );
    machine.stand_in("usr/sbin/mariadbd", &[]);
    fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    let out = machine.saiga(&["enable", "mariadb"]);
    // The program belongs to the user that runs the tests, not to mysql.
    assert!(out.stderr.contains("sbin/mariadbd is setuid"), "{out:?}");
    fs::remove_file(&program).unwrap();
    let out = machine.saiga(&["enable", "mariadb"]);
    assert!(
        out.stderr.contains("/usr/sbin/mariadbd does not exist"),
        "{out:?}"
    );
}

#[test]
fn postgresql_is_refused_with_the_units_of_its_clusters() {
    let machine = Debian::new();
    machine.cluster("14", "old");
    for unit in ["postgresql", "postgresql@", "postgresql@15-none"] {
        let out = machine.saiga(&["enable", unit]);
        assert_eq!(
            (out.code, out.stdout.as_str()),
            (Some(1), ""),
            "{unit}: {out:?}"
        );
        let units = "postgresql@14-old.service, postgresql@15-main.service";
        assert!(out.stderr.contains(units), "{unit}: {out:?}");
        assert!(!machine.path("etc/systemd").exists());
    }
}

#[test]
fn a_cluster_is_enabled_by_a_line_that_pg_ctlcluster_reads() {
    let machine = Debian::new();
    let before = machine.everything();
    let file = machine.path("etc/postgresql/15/main/environment");
    let out = machine.saiga(&["enable", "postgresql@15-main"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    assert!(
        out.stdout.ends_with("pg_ctlcluster 15 main restart\n"),
        "{out:?}"
    );
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        format!("{ENVIRONMENT}{LINE}")
    );
    assert!(
        !machine.path("etc/systemd").exists(),
        "a drop-in would have no effect"
    );
    let again = machine.saiga(&["enable", "postgresql@15-main"]);
    assert!(again.stdout.contains("is already enabled"), "{again:?}");
    let shown = machine.saiga(&["status"]);
    assert!(
        shown
            .stdout
            .contains("enabled services: postgresql@15-main.service\n"),
        "{shown:?}"
    );
    assert_eq!(
        machine.saiga(&["disable", "postgresql@15-main"]).code,
        Some(0)
    );
    assert_eq!(machine.everything(), before, "every file is as before");
    let out = machine.saiga(&["disable", "postgresql@15-main"]);
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(
        out.stderr.contains("has no line written by Saiga"),
        "{out:?}"
    );
}

#[test]
fn other_lines_of_a_cluster_stay() {
    let machine = Debian::new();
    let file = machine.path("etc/postgresql/15/main/environment");
    let own = "LD_PRELOAD = '/usr/lib/libjemalloc.so'\nTZ = 'UTC'";
    fs::write(&file, own).unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    assert_eq!(
        machine.saiga(&["enable", "postgresql@15-main"]).code,
        Some(0)
    );
    let text = fs::read_to_string(&file).unwrap();
    let line = "\nLD_PRELOAD = '/usr/local/lib/saiga/libsaiga.so:/usr/lib/libjemalloc.so' #";
    assert!(text.starts_with(own) && text.contains(line), "{text}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    fs::write(&file, text + "\nB = 1\n").unwrap();
    assert_eq!(
        machine.saiga(&["disable", "postgresql@15-main"]).code,
        Some(0)
    );
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        format!("{own}\nB = 1\n")
    );
}

#[test]
fn a_sandboxed_cluster_gets_a_line_and_a_drop_in() {
    let machine = Debian::new();
    let folder = machine.folder("etc/systemd/system/postgresql@.service.d");
    let text = "[Service]\nRestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n";
    fs::write(folder.join("mine.conf"), text).unwrap();
    let before = machine.everything();
    let unit = "postgresql@15-main.service";
    assert_eq!(machine.saiga(&["enable", unit]).code, Some(1));
    assert_eq!(machine.saiga(&["enable", "--relax", unit]).code, Some(0));
    let written = machine.drop_in(unit);
    assert!(
        written.ends_with("\nRestrictAddressFamilies=AF_NETLINK\n"),
        "{written}"
    );
    assert!(!written.contains("LD_PRELOAD"), "{written}");
    let shown = machine.saiga(&["status"]);
    assert!(
        shown.stdout.contains(&format!("services: {unit}\n")),
        "{shown:?}"
    );
    assert_eq!(machine.saiga(&["disable", unit]).code, Some(0));
    assert_eq!(machine.everything(), before, "every file is as before");
}

#[test]
fn a_cluster_without_a_plain_file_of_variables_is_not_changed() {
    let machine = Debian::new();
    let file = machine.path("etc/postgresql/15/main/environment");
    let elsewhere = machine.path("etc/elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    let out = machine.saiga(&["enable", "postgresql@15-main"]);
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.stderr.contains("is not a plain file"), "{out:?}");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), ENVIRONMENT);
    fs::remove_file(&file).unwrap();
    let out = machine.saiga(&["enable", "postgresql@15-main"]);
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(
        !file.exists(),
        "pg_ctlcluster reads the file of all clusters then"
    );
}
