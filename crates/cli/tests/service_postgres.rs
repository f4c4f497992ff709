//! An enabled PostgreSQL cluster, started by Debian's pg_ctlcluster with the arguments of its unit.
//! Settings and data are in a temporary folder.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use saiga_trials::{port, postgres::Account};

mod support;
use support::{Installation, Said, said, text};

/// A variable of the user in the file to which Saiga adds a line.
const OWN: &str = "# mine\nSAIGA_TEST_OWN = 'kept'\n";

/// A root with one cluster, which is stopped when this is dropped.
struct Host {
    files: Installation,
    version: String,
}

impl Host {
    fn new() -> Self {
        let installed = fs::read_dir("/usr/lib/postgresql").unwrap();
        let versions = installed.filter_map(|entry| entry.unwrap().file_name().into_string().ok());
        let host = Self {
            files: Installation::with_real_library(),
            version: versions
                .max()
                .expect("tools/setup test installs PostgreSQL"),
        };
        for folder in ["usr/lib/systemd/system", "run", "etc"] {
            fs::create_dir_all(host.path(folder)).unwrap();
        }
        symlink("/usr/lib/postgresql", host.path("usr/lib/postgresql")).unwrap();
        let unit = "usr/lib/systemd/system/postgresql@.service";
        for file in [unit, "etc/passwd", "etc/group"] {
            fs::copy(Path::new("/").join(file), host.path(file)).unwrap();
        }
        host.make_cluster();
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path("system").join(name)
    }

    fn make_cluster(&self) {
        let settings = self.path(&format!("etc/postgresql/{}/main", self.version));
        fs::create_dir_all(&settings).unwrap();
        fs::create_dir(self.path("data")).unwrap();
        let quoted = |name: &str| format!("'{}'", self.path(name).display());
        let (data, run, pid) = (quoted("data"), quoted("run"), quoted("run/pid"));
        let conf = format!(
            "data_directory = {data}\nunix_socket_directories = {run}\nexternal_pid_file = \
             {pid}\nport = {}\n\
             listen_addresses = '127.0.0.1'\nfsync = off\ndynamic_shared_memory_type = mmap\n",
            port::free()
        );
        for (name, text) in [
            ("postgresql.conf", conf.as_str()),
            ("pg_hba.conf", "local all all trust\n"),
            ("pg_ident.conf", ""),
            ("start.conf", "manual\n"),
            ("environment", OWN),
        ] {
            fs::write(settings.join(name), text).unwrap();
            Account::Server.own(&settings.join(name));
        }
        fs::write(self.path("run/log"), "").unwrap();
        symlink(self.path("run/log"), settings.join("log")).unwrap();
        for folder in [
            &settings,
            &self.path("data"),
            &self.path("run"),
            &self.path("run/log"),
        ] {
            Account::Server.own(folder);
        }
        let program = format!("/usr/lib/postgresql/{}/bin/initdb", self.version);
        let mut initdb = self.as_owner(&program);
        initdb.args(["-D", text(&self.path("data")), "-A", "trust", "--no-sync"]);
        let out = said(&mut initdb);
        assert_eq!(out.code, Some(0), "{out:?}");
    }

    /// A command that runs as the cluster's owner, with the environment of a unit.
    fn as_owner(&self, program: &str) -> Command {
        let owner = fs::metadata(self.path("data")).unwrap();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::null());
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(owner.uid()).gid(owner.gid());
        }
        command
    }

    /// Runs pg_ctlcluster as ExecStart= and ExecStop= of the unit do.
    fn pg_ctlcluster(&self, arguments: &[&str]) -> Said {
        let mut command = self.as_owner("/usr/bin/pg_ctlcluster");
        command
            .arg("--skip-systemctl-redirect")
            .args(arguments)
            .env("PG_CLUSTER_CONF_ROOT", self.path("etc/postgresql"))
            .stdout(Stdio::null());
        // The server would keep a pipe open; its messages are in the log.
        command.stderr(Stdio::null());
        said(&mut command)
    }

    fn instance(&self) -> String {
        format!("{}-main", self.version)
    }

    fn saiga(&self, verb: &str) -> Said {
        let (root, unit) = (self.path(""), format!("postgresql@{}", self.instance()));
        said(&mut self.files.saiga(&[verb, "--root", text(&root), &unit]))
    }

    /// Starts the server, calls `examine` with its PID, and stops the server.
    fn with_server(&self, examine: impl FnOnce(u32)) {
        let out = self.pg_ctlcluster(&[&self.instance(), "start"]);
        let log = fs::read_to_string(self.path("run/log")).unwrap();
        assert_eq!(out.code, Some(0), "{out:?}\n{log}");
        let pid = fs::read_to_string(self.path("data/postmaster.pid")).unwrap();
        examine(pid.lines().next().unwrap().parse().unwrap());
        let out = self.pg_ctlcluster(&["-m", "fast", &self.instance(), "stop"]);
        assert_eq!(out.code, Some(0), "{out:?}");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.path("data/postmaster.pid").exists() {
            self.pg_ctlcluster(&["-m", "immediate", &self.instance(), "stop"]);
        }
    }
}

fn variables(pid: u32) -> String {
    let raw = fs::read(format!("/proc/{pid}/environ")).unwrap();
    String::from_utf8(raw).unwrap().replace('\0', "\n")
}

#[test]
fn a_cluster_runs_under_saiga_while_it_is_enabled() {
    let host = Host::new();
    let status = |pid: u32| said(&mut host.files.saiga(&["status", &pid.to_string()]));
    let environment = host.path(&format!("etc/postgresql/{}/main/environment", host.version));
    let owner = |path: &Path| {
        (
            path.metadata().unwrap().uid(),
            path.metadata().unwrap().gid(),
        )
    };
    let (before, owned_by) = (fs::read(&environment).unwrap(), owner(&environment));

    let library = host.files.path("lib/saiga");
    fs::set_permissions(&library, PermissionsExt::from_mode(0o700)).unwrap();
    let out = host.saiga("enable");
    let is_closed = owner(&library).0 != owned_by.0;
    assert_eq!(
        out.stderr.contains("the user of the service cannot read"),
        is_closed,
        "{out:?}"
    );
    assert_eq!(host.saiga("disable").code, Some(i32::from(is_closed)));
    fs::set_permissions(&library, PermissionsExt::from_mode(0o755)).unwrap();

    let out = host.saiga("enable");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    assert_eq!(owner(&environment), owned_by);
    host.with_server(|pid| {
        let library = host.files.path("lib/saiga/libsaiga.so");
        let expected = format!("LD_PRELOAD={}\n", library.display());
        let variables = variables(pid);
        assert!(variables.contains(&expected), "{variables}");
        assert!(variables.contains("SAIGA_TEST_OWN=kept\n"), "{variables}");
        let out = status(pid);
        assert_eq!(out.code, Some(0), "{out:?}");
        assert!(out.stdout.starts_with("postgres ("), "{out:?}");
    });

    assert_eq!(host.saiga("disable").code, Some(0));
    assert_eq!(fs::read(&environment).unwrap(), before);
    assert_eq!(owner(&environment), owned_by);
    host.with_server(|pid| {
        assert!(!variables(pid).contains("LD_PRELOAD"));
        let out = status(pid);
        assert_eq!(out.code, Some(1), "{out:?}");
    });
}
