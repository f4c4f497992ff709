//! Saiga's services under a real systemd in namespaces, with the programs of the host (`boot.sh`).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;

#[path = "../support/mod.rs"]
mod support;

use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;

use saiga_streams::hint::Hint;
use saiga_streams::setter::{Fcntl, Setter as _};
use serde_json::Value;

use machine::Machine;

#[test]
fn the_unit_of_the_labeller_works_without_root() {
    let machine = Machine::boot();
    let data = machine.data.join("mysql");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    let metrics = "/var/lib/metrics/saiga.prom";
    machine.run("mkdir /var/lib/metrics");
    machine.run(&format!(
        "saiga streams unit /srv/db/mysql --rules mysql --mode gate --metrics {metrics} --install"
    ));
    machine.run("systemctl start saiga-streams");
    let property = |name| machine.run(&format!("systemctl show --value -p {name} saiga-streams"));
    let pid = property("MainPID");
    let user = machine.run(&format!("stat -c %u /proc/{pid}"));
    assert_ne!(user, "0");

    // From inside and outside of the machine, where the same disk has another path.
    machine.run("true >/srv/db/mysql/ibdata1");
    let file = File::open(data.join("ibdata1")).unwrap();
    assert_eq!(Fcntl.read(file.as_fd()).unwrap(), Hint::Long);
    let file = File::create_new(data.join("undo_001")).unwrap();
    assert_eq!(Fcntl.read(file.as_fd()).unwrap(), Hint::Long);

    machine.run("systemctl reload saiga-streams");
    let counted = "saiga_streams_rules_reloads_total 1";
    machine.wait_until(&format!("grep -qx '{counted}' {metrics}"));

    machine.run(&format!("kill -9 {pid}"));
    machine.wait_until("test $(systemctl show --value -p NRestarts saiga-streams) = 1");
    machine.wait_until("systemctl is-active -q saiga-streams");
    assert_ne!(property("MainPID"), pid);
    let ended = machine.run("saiga streams stop /srv/db/mysql");
    assert!(
        ended.contains("stopped the labeller of /srv/db/mysql"),
        "{ended}"
    );
    machine.wait_until("test $(systemctl is-active saiga-streams) = inactive");
    machine.run("saiga streams unit --remove");
    machine.run("! systemctl cat saiga-streams");
}

/// systemd removes the directory of the locks, which has the labels, whenever the service ends.
#[test]
fn a_restarted_labeller_may_change_its_own_labels() {
    let machine = Machine::boot();
    let hint = |name: &str| {
        let file = File::open(machine.data.join(name)).unwrap();
        Fcntl.read(file.as_fd()).unwrap()
    };
    let theirs = File::create(machine.data.join("theirs")).unwrap();
    Fcntl.set(theirs.as_fd(), Hint::Medium).unwrap();
    File::create(machine.data.join("ours")).unwrap();
    let starts_with = |wanted: &str, verb: &str| {
        // Another file each time, because a changed rule file is reloaded without a restart.
        machine.run(&format!(
            "printf '[[rule]]\\npath = \"*\"\\nhint = \"{wanted}\"\\nwhy = \"w\"\\n' \
             >/etc/{wanted}.toml && \
             saiga streams unit /srv/db --rules /etc/{wanted}.toml --install && systemctl {verb} \
             saiga-streams"
        ));
    };
    starts_with("short", "start");
    assert_eq!([hint("ours"), hint("theirs")], [Hint::Short, Hint::Medium]);
    starts_with("long", "restart");
    assert_eq!([hint("ours"), hint("theirs")], [Hint::Long, Hint::Medium]);
    // A second restart: the file that systemd stores survives several runs.
    starts_with("extreme", "restart");
    let found = [hint("ours"), hint("theirs")];
    assert_eq!(found, [Hint::Extreme, Hint::Medium]);
}

#[test]
fn the_timer_takes_samples() {
    let machine = Machine::boot();
    let mut identity = vec![b' '; 72];
    identity.resize(4096, 0);
    identity[..2].copy_from_slice(&[0xe5, 0x19]);
    identity[4..10].copy_from_slice(b"SERIAL");
    identity[24..40].copy_from_slice(b"HWE52P431T6M002N");
    let mut counters = vec![0; 512];
    counters[0x1c4] = 1;
    counters[0x1d0] = 1;
    fs::write(machine.data.join("identify-controller.bin"), identity).unwrap();
    fs::write(machine.data.join("log-c0.bin"), counters).unwrap();
    // Each unit is written under the name in the line above it.
    machine.run(
        "cd /etc/systemd/system && saiga waf timer /srv/db --every 1h | \
         awk '/^# \\// { file = $2 } file { print >file }' && systemctl daemon-reload",
    );
    machine.run("systemctl start saiga-waf.timer");
    machine.wait_until("saiga waf report | grep -q 'first sample'");
    machine.run("systemctl start saiga-waf.service");
    let report = machine.run("saiga waf report");
    assert!(report.contains("HWE52P431T6M002N SERIAL"), "{report}");
}

#[test]
fn a_sandboxed_redis_is_enabled_and_disabled() {
    let machine = Machine::boot();
    machine.run("saiga enable --relax redis-server && systemctl restart redis-server");
    machine.wait_until("redis-cli ping");
    machine.run("saiga run redis-benchmark -t set -n 20000 -c 4 -q");
    let status: Value = serde_json::from_str(&machine.run("saiga status --json")).unwrap();
    let mut processes = status.as_array().unwrap().iter();
    let redis = processes.find(|it| it["program"] == "redis-server");
    assert!(redis.unwrap()["upgrades"].as_u64() >= Some(4), "{status}");
    machine.run("saiga disable redis-server && systemctl restart redis-server");
    machine.wait_until("redis-cli ping");
    let maps = machine.run("cat /proc/$(systemctl show --value -p MainPID redis-server)/maps");
    assert!(!maps.contains("libsaiga"), "{maps}");
}

#[test]
fn a_service_that_runs_without_the_library_is_told_from_one_with_it() {
    let machine = Machine::boot();
    let answers = |command: &str, code: u8, words: &str| {
        let out = machine.run(&format!("saiga {command} 2>&1; echo = $?"));
        assert!(out.contains(words), "{command}: {words}: {out}");
        assert!(out.ends_with(&format!("= {code}")), "{command}: {out}");
    };
    machine.run("systemctl start redis-server && saiga enable --relax redis-server");
    for (command, code) in [
        ("enable --relax redis-server", 0),
        ("status redis-server", 1),
    ] {
        answers(
            command,
            code,
            "runs without the library: it was not restarted",
        );
    }
    machine.run("systemctl restart redis-server");
    answers("enable --relax redis-server", 0, "has the library");
    answers("status redis-server", 0, "0 of 0 connections upgraded");

    machine.run(
        "printf '[Service]\\nExecStart=sleep infinity\\nEnvironmentFile=-/etc/default/%%n.*\\n' \
         >/etc/systemd/system/plain.service && saiga enable plain",
    );
    answers("status plain", 1, "has no main process");
    // `enable` would have refused a service with this file.
    machine.run("echo LD_PRELOAD=x.so >/etc/default/plain.service.1; systemctl start plain");
    answers("status plain", 1, "its LD_PRELOAD is \"x.so\"");
    answers(
        "enable plain",
        1,
        "/etc/default/plain.service.1 (EnvironmentFile=) sets LD_PRELOAD",
    );
    machine.run("rm /etc/default/plain.service.1; systemctl restart plain");
    answers("enable plain", 0, "has the library");
}
