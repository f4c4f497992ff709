//! Servers with made-up command lines and option files.

use std::os::unix::fs::symlink;

use super::*;

struct Site {
    root: tempfile::TempDir,
}

impl Site {
    /// A data directory, and a directory for logs.
    fn new() -> Self {
        let site = Self {
            root: tempfile::tempdir().unwrap(),
        };
        for dir in ["data/mysql", "logs", "proc"] {
            fs::create_dir_all(site.path(dir)).unwrap();
        }
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn server(&self, words: &[&str]) {
        let process = self.path("proc/17");
        fs::create_dir(&process).unwrap();
        symlink(self.path("data"), process.join("cwd")).unwrap();
        fs::write(process.join("cmdline"), words.join("\0") + "\0").unwrap();
    }

    /// Returns the kind and the directory name of all files found outside the data directory.
    fn found(&self, defaults: &dyn Fn(&[String]) -> Vec<String>) -> Vec<String> {
        let dirs = [self.path("data")];
        let found = find(&dirs, &System::at(self.root.path()), defaults);
        let name = |it: &Elsewhere| it.dir.file_name().unwrap().to_string_lossy().into_owned();
        found
            .iter()
            .map(|it| format!("{} in {}", it.what, name(it)))
            .collect()
    }
}

fn nothing(_: &[String]) -> Vec<String> {
    Vec::new()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn logs_are_found_by_their_index() {
    let site = Site::new();
    let logs = site.path("logs");
    let index = format!(
        "./prod.000001\n{0}/prod.000002\n{0}/prod.000003\n{0}/host-relay-bin.000001\n/nowhere/notes.txt\n",
        logs.display()
    );
    fs::write(site.path("data/prod.index"), index).unwrap();
    let expected = ["binary logs in logs", "relay logs in logs"];
    assert_eq!(site.found(&nothing), expected);
    let dirs = [site.path("data"), logs.clone()];
    let system = System::at(site.root.path());
    assert_eq!(find(&dirs, &system, &nothing), []);
    // Option files are not read for other databases.
    fs::remove_dir(site.path("data/mysql")).unwrap();
    assert_eq!(site.found(&|_| panic!()), [""; 0]);

    let text = Elsewhere {
        what: BINARY_LOGS,
        dir: "/data/binlogs".into(),
    };
    assert_eq!(
        text.to_string(),
        "binary logs are in /data/binlogs, which is not labelled; give this directory, too"
    );
}

#[test]
fn files_are_found_by_the_options_of_a_running_server() {
    let site = Site::new();
    site.server(&[
        "/usr/sbin/mysqld",
        "--defaults-file=/etc/my2.cnf",
        "--defaults-extra-file=beside.cnf",
        "--log_bin=../logs/prod",
        "--relay-log",
        "--loose-innodb_undo_directory=undo",
        "--innodb-doublewrite-dir=/elsewhere/dw",
    ]);
    let asked = std::cell::RefCell::new(Vec::new());
    let defaults = |own: &[String]| {
        *asked.borrow_mut() = own.to_vec();
        owned(&[
            "--log-bin=/overruled/prod",
            "--innodb_log_group_home_dir=/elsewhere/redo",
            "--relay-log=/overruled/relay",
        ])
    };
    // Directories in the data directory are labelled; the second option file has a relative path,
    // which is not valid in this process.
    let expected = [
        "binary logs in logs",
        "redo logs in redo",
        "doublewrite files in dw",
    ];
    assert_eq!(site.found(&defaults), expected);
    assert_eq!(*asked.borrow(), ["--defaults-file=/etc/my2.cnf"]);
}

#[test]
fn no_defaults_disables_option_files() {
    let site = Site::new();
    site.server(&[
        "mariadbd",
        "--no-defaults",
        "--log-bin=/elsewhere/logs/prod",
    ]);
    assert_eq!(site.found(&|_| panic!()), ["binary logs in logs"]);
}

#[test]
fn the_name_of_a_program_tells_whether_it_is_a_server() {
    for (program, is_server) in [
        ("mysqld-debug", true),
        ("mysqld_safe", false),
        ("mysqld_exporter", false),
        ("mariadbd-safe", false),
    ] {
        let site = Site::new();
        site.server(&[program, "--no-defaults", "--log-bin=/elsewhere/logs/prod"]);
        assert_eq!(
            site.found(&nothing).len(),
            usize::from(is_server),
            "{program}"
        );
    }
}

#[test]
fn without_a_server_the_default_option_files_count_for_their_directory() {
    let site = Site::new();
    // A shell whose working directory is the data directory is not a server.
    site.server(&["bash"]);
    let of = |dir: &str| {
        let datadir = format!("--datadir={}", site.path(dir).display());
        site.found(&|own| {
            assert_eq!(own, [""; 0]);
            owned(&[&datadir, "--log-bin=/elsewhere/logs/prod"])
        })
    };
    assert_eq!(of("data"), ["binary logs in logs"]);
    assert_eq!(of("data/../data/"), ["binary logs in logs"]);
    assert_eq!(of("other"), [""; 0]);
    assert_eq!(site.found(&|_| owned(&["--log-bin=/x/prod"])), [""; 0]);
}

#[test]
fn the_target_of_a_link_is_labelled() {
    let site = Site::new();
    let logs = site.path("logs");
    symlink(&logs, site.path("data/binlogs")).unwrap();
    let option = format!("--log-bin={}/deep/prod", logs.display());
    site.server(&["mysqld", "--no-defaults", &option]);
    assert_eq!(site.found(&nothing), [""; 0]);
    fs::remove_file(site.path("data/binlogs")).unwrap();
    assert_eq!(site.found(&nothing), ["binary logs in deep"]);
}
