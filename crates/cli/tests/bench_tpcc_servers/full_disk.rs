//! Servers whose data are on a small tmpfs, which a load fills.
//!
//! Only the server sees the tmpfs. Servers refuse to run as root, so they run as another user of a
//! nested user namespace.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use saiga_trials::witness::await_true;
use saiga_trials::{port, reaper};

use crate::marked::Marked;

/// Mounts a tmpfs with `$2` MiB at `$1`, fills `$3` MiB, and runs a script there as another user.
const SMALL: &str = "\
    mount -t tmpfs -o size=$2m,mode=700 none \"$1\" && cd \"$1\" && \
    head -c $3M /dev/zero >ballast && \
    exec unshare --user --map-user=1000 --map-group=1000 sh -c \"$4\" sh \"$1\" $5";

/// Runs a server in `$1` on port `$2`. PostgreSQL's write-ahead log is elsewhere, because the
/// server could not even report a full disk without it; and checkpoints are rare, because one on a
/// full disk ends in a PANIC. PDEATHSIG is set last, because a change of user resets it.
const POSTGRES: &str = "\
    bin=$(echo /usr/lib/postgresql/*/bin | sed 's/.* //'); \
    $bin/initdb -U tpcc -A trust --no-sync --locale=C --wal-segsize=1 -X $1-wal -D data \
    >/dev/null && \
    exec setpriv --pdeathsig QUIT $bin/postgres -D data -p $2 -k '' -c fsync=off \
    -c listen_addresses=127.0.0.1 -c max_wal_size=2GB -c checkpoint_timeout=1h \
    -c dynamic_shared_memory_type=mmap";
const MARIADB: &str = "\
    PATH=$PATH:/usr/sbin; mkdir tmp; echo 'create database if not exists tpcc;' >init; \
    mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db \
    --innodb-log-file-size=16M --datadir=$1/data >/dev/null && \
    exec setpriv --pdeathsig KILL mariadbd --no-defaults --datadir=$1/data --tmpdir=$1/tmp \
    --socket=$1/socket --pid-file=$1/pid --port=$2 --bind-address=127.0.0.1 --skip-name-resolve \
    --innodb-log-file-size=16M --innodb-flush-log-at-trx-commit=2 --init-file=$1/init";

/// A server in a small directory.
struct Small {
    child: Child,
    folder: PathBuf,
    log: PathBuf,
}

impl Small {
    fn start(test: &Marked, script: &str, port: u16, ready: &str, mib: [u32; 2]) -> Self {
        let (folder, log) = (test.path("small"), test.path("small.log"));
        fs::create_dir(&folder).unwrap();
        let mut command = Command::new("unshare");
        command
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                SMALL,
                "sh",
            ])
            .arg(&folder)
            .args(mib.map(|mib| mib.to_string()))
            .args([script, &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap());
        // Armed in the child; the thread that starts the process must live on.
        let child = reaper::spawn(command, saiga_trials::Signal::KILL).unwrap();
        let server = Self { child, folder, log };
        let is_ready = || server.said().contains(ready);
        await_true(is_ready, || server.said());
        server
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Removes the file that fills the file system.
    fn make_room(&self) {
        let root = Path::new("/proc")
            .join(self.child.id().to_string())
            .join("root");
        let folder = root.join(self.folder.strip_prefix("/").unwrap());
        fs::remove_file(folder.join("ballast")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // All processes end with the first process of the PID namespace.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
    }
}

/// A load fills the disk, reports that, and continues when space is free.
fn continues_when_space_is_free(test: &Marked, server: &Small, conn: &str, user: &str, full: &str) {
    let props = test.path("props.conf");
    let text = format!("conn={conn}\nuser={user}\npassword=\nwarehouses=1\nloadWorkers=2\n");
    fs::write(&props, text).unwrap();
    let props = test.text("props.conf");
    let tpcc = |step, more: &[&str]| {
        test.said(&mut test.saiga(&[&["bench", "tpcc", step, "--props", &props], more].concat()))
    };
    let said = tpcc("build", &[]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{said:?}");
    let last = said.stderr.lines().last().unwrap();
    assert!(last.contains(": bmsql_") && last.contains(full), "{last}");
    assert!(
        last.contains("has the disk of the server's data room?"),
        "{last}"
    );
    let way_out = "rows that were loaded before are kept: continue with --resume";
    assert!(last.ends_with(way_out), "{last}");
    let said = tpcc("check", &[]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr
            .contains("the load is incomplete: 0 of 1 warehouses"),
        "{said:?}"
    );
    server.make_room();
    let said = tpcc("build", &["--resume"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = tpcc("check", &["--after-load"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.ends_with(": all rules hold\n"), "{said:?}");
}

#[test]
fn a_full_disk_of_postgres_is_named_and_the_run_continues() {
    let (test, port) = (Marked::new(), port::free());
    let ready = "ready to accept connections";
    let server = Small::start(&test, POSTGRES, port, ready, [500, 400]);
    let conn = format!("jdbc:postgresql://127.0.0.1:{port}/postgres");
    continues_when_space_is_free(&test, &server, &conn, "tpcc", "53100");
}

#[test]
fn a_full_disk_of_mariadb_is_named_and_the_run_continues() {
    let (test, port) = (Marked::new(), port::free());
    let ready = "ready for connections";
    let server = Small::start(&test, MARIADB, port, ready, [700, 520]);
    let conn = format!("jdbc:mysql://127.0.0.1:{port}/tpcc");
    continues_when_space_is_free(&test, &server, &conn, "root", "ERROR 1114");
}
