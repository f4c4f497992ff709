//! Real databases under the gate: every byte that reaches the block layer is attributed to a hint,
//! which must be that of the rule for its file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::site::{Labeller, Site, run};
use crate::support::text;

/// Starts a server, which is killed with the test, and waits for its ready message on stderr.
fn server(command: &mut Command, ready: &str) -> Labeller {
    let mut server = Labeller::warning(command.stdin(Stdio::null()).stdout(Stdio::null()));
    server.wait_for(ready);
    server
}

/// Stops the server as an administrator does, so that its files are complete.
fn end(mut server: Labeller, signal: &str) {
    server.signal(signal);
    assert!(
        server.child.wait().unwrap().success(),
        "{:#?}",
        server.rest()
    );
}

/// A disk with a labeller in gate mode and a process that follows the writes.
struct FollowedDisk {
    data: PathBuf,
    labeller: Labeller,
    check: Labeller,
}

impl FollowedDisk {
    /// Creates the directories that the server would create and write to immediately, before the
    /// gate covers them (docs/streams.md).
    fn new(site: &mut Site, kind: &str, rules: &str, folders: &[&str]) -> Self {
        let disk = site.disk(kind);
        // Servers without root need access to it, and PostgreSQL wants an empty directory.
        fs::set_permissions(disk.parent().unwrap(), fs::Permissions::from_mode(0o711)).unwrap();
        let data = disk.join("data");
        fs::create_dir(&data).unwrap();
        for folder in folders {
            fs::create_dir(data.join(folder)).unwrap();
        }
        Self::of(site, data, rules)
    }

    /// Like [`Self::new`], for an existing directory.
    fn of(site: &Site, data: PathBuf, rules: &str) -> Self {
        // A machine may stand still for longer than a second, the usual limit: the gate would stay
        // open.
        let more = ["--rules", rules, "--mode", "gate", "--stall-limit", "60s"];
        let labeller = site.labeller(&data, &more);
        let words = [
            "check",
            text(&data),
            "--rules",
            rules,
            "--any-route",
            "--json",
        ];
        let mut command = site.streams(&[&words[..], &["--for", "1h"]].concat());
        let mut check = Labeller::warning(command.stdout(Stdio::piped()));
        check.wait_for("following writes to ");
        Self {
            data,
            labeller,
            check,
        }
    }

    /// Stops both; returns the followed writes.
    fn end(mut self) -> Accounts {
        self.check.signal("INT");
        let mut out = self.check.child.stdout.take().unwrap();
        let answer: Value =
            serde_json::from_str(&std::io::read_to_string(&mut out).unwrap()).unwrap();
        let code = self.check.child.wait().unwrap().code();
        let accounts = Accounts::of(&answer["traffic"]);
        let is_clean = answer["traffic"]["astray"] == Value::Array(Vec::new());
        assert_eq!(
            code,
            Some(if is_clean { 0 } else { 1 }),
            "{:#?} {:#?}",
            answer["traffic"],
            self.check.rest()
        );
        assert_eq!(self.labeller.end(), Some(0));
        accounts
    }
}

/// Bytes of files by hint; `-` stands for no hint.
struct Accounts(BTreeMap<String, u64>);

/// Most bytes of files that may be written before these files have a hint: the labeller is notified
/// of a new directory after its creation, and its gate starts later (docs/streams.md).
///
/// How many bytes these are depends on how long the labeller waits for a CPU. In twenty runs beside
/// two programs that used a core each and one that wrote to the disk continuously, MariaDB had 8192
/// bytes in two files; PostgreSQL had 786,432 bytes in one file, a catalogue. Beside a compiler, a
/// database server and its load on two CPUs, PostgreSQL had 475,136 bytes in 28 files of a
/// directory that initdb copied.
const EARLY_BYTES: u64 = 2 << 20;

impl Accounts {
    fn of(traffic: &Value) -> Self {
        let astray = traffic["astray"].as_array().unwrap();
        assert!(
            astray.iter().all(|one| one["found"].is_null()),
            "{astray:?}"
        );
        let early: u64 = astray
            .iter()
            .map(|one| one["bytes"].as_u64().unwrap())
            .sum();
        assert!(early <= EARLY_BYTES, "{early} {astray:?}");
        assert_eq!(traffic["lost_writes"], 0);
        let rows = traffic["written"].as_array().unwrap().iter();
        let rows = rows.map(|row| {
            let hint = row["hint"].as_str().unwrap_or("-").to_owned();
            let early = if hint == "-" { early } else { 0 };
            (
                hint,
                row["file_bytes"].as_u64().unwrap().saturating_sub(early),
            )
        });
        Self(rows.filter(|(_, bytes)| *bytes > 0).collect())
    }

    /// Checks that each of these hints has at least this many bytes of files, and that there are no
    /// others.
    fn assert(&self, least: &[(&str, u64)]) {
        let hints: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let expected: Vec<&str> = least.iter().map(|(hint, _)| *hint).collect();
        assert_eq!(hints, expected, "{:?}", self.0);
        for (hint, least) in least {
            let bytes = self.0[*hint];
            assert!(bytes >= *least, "{hint}: {bytes} of at least {least}");
        }
    }
}

#[test]
fn every_byte_of_mariadb_has_its_hint() {
    let mut site = Site::new();
    let watched = FollowedDisk::new(&mut site, "xfs", "mariadb", &[]);
    let (data, socket) = (text(&watched.data), site.path("sql"));
    let datadir = format!("--datadir={data}");
    let log = "--innodb-log-file-size=8M";
    run(
        "mariadb-install-db",
        &[
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--user=root",
            &datadir,
            log,
        ],
    );
    let mut command = Command::new("mariadbd");
    command.args([
        "--no-defaults",
        "--user=root",
        "--skip-networking",
        &datadir,
    ]);
    command.args([log, "--innodb-buffer-pool-size=8M", "--log-bin=shop-bin"]);
    command.arg(format!("--socket={}", text(&socket)));
    let server = server(&mut command, "ready for connections");
    let sql = "create database shop; use shop; create table t (id int primary key auto_increment, v varchar(1000)); \
               insert into t (v) select repeat('x', 900) from seq_1_to_20000; \
               update t set v = repeat('y', 900) where id % 3 = 0; create temporary table s \
               engine=innodb select * from t;";
    run(
        "mariadb",
        &["--no-defaults", "-uroot", "-S", text(&socket), "-e", sql],
    );
    end(server, "TERM");
    // No rule; tables; binary log; redo; doublewrite, within the system tablespace.
    watched.end().assert(&[
        ("-", 1),
        ("extreme", 18 << 20),
        ("long", 12 << 20),
        ("medium", 12 << 20),
        ("short", 4 << 20),
    ]);
}

/// MySQL's own server in `target/mysql`, with a name of its binary logs that is not a default.
#[cfg(feature = "soak")]
#[test]
fn every_byte_of_mysql_has_its_hint() {
    let mysql = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mysql");
    let program = |name: &str| {
        let program = mysql.join(name);
        assert!(
            program.exists(),
            "{} is missing: run tools/mysql target/mysql",
            program.display()
        );
        program
    };
    let mut site = Site::new();
    let data = site.disk("xfs").join("data");
    fs::create_dir(&data).unwrap();
    let datadir = format!("--datadir={}", text(&data));
    let own = ["--no-defaults", "--user=root", &datadir];
    let small = [
        "--innodb-redo-log-capacity=8M",
        "--innodb-buffer-pool-size=8M",
    ];
    let server_program = program("mysqld");
    // Before the labeller starts: files that the server writes before their directory has its gate.
    run(
        text(&server_program),
        &[&own[..], &small, &["--initialize-insecure"]].concat(),
    );
    let watched = FollowedDisk::of(&site, data, "mysql");
    let socket = site.path("sql");
    let mut command = Command::new(&server_program);
    command.args(own).args(small);
    command.args(["--skip-networking", "--mysqlx=OFF", "--log-bin=prod"]);
    command.arg("--secure-file-priv=");
    command.arg(format!("--socket={}", text(&socket)));
    command.arg(format!("--pid-file={}", text(&site.path("pid"))));
    let server = server(&mut command, "ready for connections");
    let sql = "create database shop; use shop; set cte_max_recursion_depth = 20000; \
               create table t (id int primary key auto_increment, v varchar(1000)); \
               insert into t (v) with recursive n (i) as (select 1 union all select i + 1 from n \
               where i < 20000) \
               select repeat('x', 900) from n; update t set v = repeat('y', 900) where id % 3 = 0;";
    run(
        text(&program("mysql")),
        &["--no-defaults", "-uroot", "-S", text(&socket), "-e", sql],
    );
    end(server, "TERM");
    // No rule; tables; undo; redo and binary log; doublewrite.
    watched.end().assert(&[
        ("-", 1),
        ("extreme", 18 << 20),
        ("long", 1 << 20),
        ("medium", 24 << 20),
        ("short", 4 << 20),
    ]);
}

#[test]
fn every_byte_of_postgres_has_its_hint() {
    let mut site = Site::new();
    let watched = FollowedDisk::new(&mut site, "ext4", "postgres", &[]);
    let data = text(&watched.data);
    run("chown", &["postgres:", data]);
    let newest = fs::read_dir("/usr/lib/postgresql").unwrap();
    let newest = newest.map(|entry| entry.unwrap().path().join("bin")).max();
    let bin = newest.unwrap();
    let as_postgres = |program: &str, words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        command.arg(bin.join(program)).args(words).current_dir("/");
        command
    };
    let must = |program: &str, words: &[&str]| {
        let output = as_postgres(program, words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}: {said}");
    };
    must(
        "initdb",
        &["-D", data, "--no-locale", "-E", "UTF8", "-A", "trust"],
    );
    let socket = format!("unix_socket_directories={data}");
    let settings = [
        "listen_addresses=",
        &socket,
        "max_wal_size=32MB",
        "min_wal_size=32MB",
        "shared_buffers=4MB",
    ];
    let mut words = vec!["-D", data];
    words.extend(settings.iter().flat_map(|setting| ["-c", setting]));
    let server = server(
        &mut as_postgres("postgres", &words),
        "ready to accept connections",
    );
    must("pgbench", &["-h", data, "-i", "-s", "2", "-q", "postgres"]);
    must("pgbench", &["-h", data, "-t", "500", "-c", "2", "postgres"]);
    must(
        "psql",
        &[
            "-h",
            data,
            "-c",
            "set work_mem='64kB'; select count(*) from (select * from pgbench_accounts order by \
             filler, aid desc) s",
            "postgres",
        ],
    );
    end(server, "INT");
    // Write-ahead log, sort spill; maps of free space and visibility; tables; no rule.
    watched.end().assert(&[
        ("-", 1),
        ("long", 24 << 20),
        ("medium", 1),
        ("short", 24 << 20),
    ]);
}

#[test]
fn every_byte_of_redis_has_its_hint() {
    let mut site = Site::new();
    let watched = FollowedDisk::new(&mut site, "xfs", "redis", &["appendonlydir"]);
    let socket = site.path("redis.sock");
    let mut command = Command::new("redis-server");
    command.args(["--port", "0", "--unixsocket", text(&socket)]);
    command.args([
        "--dir",
        text(&watched.data),
        "--appendonly",
        "yes",
        "--save",
        "",
    ]);
    // Redis logs to stdout.
    let mut said = Labeller::telling(command.stdin(Stdio::null()));
    said.wait_for("eady to accept connections");
    let redis = |words: &[&str]| {
        run("redis-cli", &[&["-s", text(&socket)], words].concat());
    };
    let bench = [
        "-s",
        text(&socket),
        "-q",
        "-t",
        "set",
        "-n",
        "20000",
        "-r",
        "1000",
        "-d",
        "512",
    ];
    run("redis-benchmark", &bench);
    redis(&["save"]);
    redis(&["shutdown", "nosave"]);
    assert!(said.child.wait().unwrap().success());
    // Append-only files; the snapshot.
    watched
        .end()
        .assert(&[("medium", 20_000 * 512), ("short", 500 * 512)]);
}

#[test]
fn bytes_without_the_hint_of_their_file_are_named() {
    let mut site = Site::new();
    let data = site.disk("xfs");
    let words = [
        "check",
        text(&data),
        "--rules",
        "mysql",
        "--any-route",
        "--for",
        "1h",
    ];
    let mut check = Labeller::warning(site.streams(&words).stdout(Stdio::piped()));
    check.wait_for("following writes to ");
    write_through(&data.join("ibdata1"), 3 << 20);
    write_through(&data.join("unruly"), 1 << 20);
    check.signal("INT");
    let out = std::io::read_to_string(check.child.stdout.take().unwrap()).unwrap();
    assert_eq!(check.child.wait().unwrap().code(), Some(1));
    let line = format!(
        "{}: 3.00 MiB written with no hint, not long",
        data.join("ibdata1").display()
    );
    assert!(out.contains(&line), "{out}");
    assert!(!out.contains("unruly: "), "{out}");
}

fn write_through(path: &Path, bytes: usize) {
    let file = fs::File::create(path).unwrap();
    std::io::Write::write_all(&mut &file, &vec![7; bytes]).unwrap();
    file.sync_all().unwrap();
}
