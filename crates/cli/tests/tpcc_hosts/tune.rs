//! The collection in `integrations/ansible`, built and installed as a user does it, on three hosts
//! over ssh. Each host has network, files and journals of its own, so that no value of this host
//! changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use saiga_trials::bounded::{Outcome, run_daemon};
use saiga_trials::parity::Arm;
use saiga_trials::witness::{Site, await_some};
use serde_json::{Value, json};

use crate::ansible::{environment, inventory, keys, sshd_config};
use crate::{HOSTS, fetched, repository, run_to_end, site};

/// Connects three network namespaces with that of Ansible, and starts an sshd in each. The PIDs of
/// their first processes are written to `pid-N`; Ansible has number 0.
const NETWORK: &str = r#"
exec >"$0/network.log" 2>&1
mount -t tmpfs own /run
mkdir /run/sshd /run/netns
ip link set lo up
for host in 1 2 3; do
    name=db-$host
    ip netns add $name
    ip link add to-$host type veth peer name eth0 netns $name
    ip addr add 10.77.$host.1/24 dev to-$host
    ip link set to-$host up
    ip -n $name addr add 10.77.$host.2/24 dev eth0
    ip -n $name link set eth0 up
    ip -n $name link set lo up
    ip netns exec $name sh -ec '
        mount -t tmpfs own /var/lib
        mount -t tmpfs own /var/tmp
        echo 3 >/var/tmp/affinity
        mount --bind /var/tmp/affinity /proc/irq/default_smp_affinity
        echo $$ >"$0/pid-$1"
        exec /usr/sbin/sshd -D -e -f "$0/sshd-$1.conf"' "$0" $host &
done
sleep infinity &
echo $! >"$0/pid-0"
"#;

/// One task with the options of a test.
const TASK: &str = "\
- hosts: databases
  gather_facts: false
  tasks:
    - saiga.host.tune:
      args: \"{{ options }}\"
      register: answer
    - ansible.builtin.debug:
        var: answer
";

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
const BACKLOG: &str = "/proc/sys/net/ipv4/tcp_max_syn_backlog";
/// A file of each host takes its place. A plan that changes it has to be confirmed.
const AFFINITY: &str = "/proc/irq/default_smp_affinity";
const PLAN: &str = "/var/lib/plan.toml";

/// The numbers of a host in Ansible's recap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Recap {
    changed: u32,
    unreachable: u32,
    failed: u32,
    rescued: u32,
}

/// A recap without failures.
const fn changed(changed: u32) -> Recap {
    Recap {
        changed,
        unreachable: 0,
        failed: 0,
        rescued: 0,
    }
}

const FAILED: Recap = Recap {
    failed: 1,
    ..changed(0)
};

/// The module, in the order in which an operator uses it.
#[test]
fn the_module_plans_applies_verifies_and_undoes_on_three_hosts() {
    let fleet = Fleet::start();
    let old = fleet.values(BACKLOG);
    let set = json!({ "net.core.somaxconn": 5000, "net.ipv4.tcp_max_syn_backlog": "9000" });
    let goal =
        |state: &str| json!({ "state": state, "set": set, "no_interrupts": true, "plan": PLAN });
    let file = |state: &str| json!({ "state": state, "plan": PLAN });

    fleet.all(changed(1), &["--check"], &goal("planned"));
    fleet.all(changed(1), &[], &goal("planned"));
    fleet.all(changed(0), &[], &goal("planned"));
    for options in [goal("applied"), file("applied")] {
        let said = fleet.all(changed(1), &["--check", "--diff"], &options);
        let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
        for line in [
            "-net.core.somaxconn = 4096",
            "+net.core.somaxconn = 5000",
            "+net.ipv4.tcp_max_syn_backlog = 9000",
        ] {
            let found = lines.iter().filter(|other| **other == line).count();
            assert_eq!(found, 3, "{line}: {said}");
        }
        fleet.assert_values(SOMAXCONN, ["4096"; 3]);
    }

    fleet.all(changed(1), &[], &file("applied"));
    fleet.assert_values(SOMAXCONN, ["5000"; 3]);
    fleet.assert_values(BACKLOG, ["9000"; 3]);
    fleet.all(changed(0), &[], &file("applied"));
    fleet.all(changed(0), &["--check", "--diff"], &goal("applied"));
    fleet.all(changed(0), &[], &goal("applied"));
    fleet.all(changed(0), &[], &file("confirmed"));

    fleet.all(changed(0), &[], &file("verified"));
    fleet.write(2, SOMAXCONN, "99");
    let (recaps, said) = fleet.task(&[], &file("verified"));
    assert_eq!(recaps, [changed(0), FAILED, changed(0)], "{said}");
    assert!(
        said.contains("net.core.somaxconn is 99, not 5000"),
        "{said}"
    );

    // The undo leaves what another program set, until this value is planned again.
    let (recaps, said) = fleet.task(&["--limit", "db-2"], &file("undone"));
    assert_eq!(recaps, [FAILED], "{said}");
    assert!(said.contains("another program set it to 99"), "{said}");
    fleet.write(2, SOMAXCONN, "5000");
    let (recaps, said) = fleet.task(&["--check"], &file("undone"));
    assert_eq!(recaps, [changed(1); 3], "{said}");
    fleet.all(changed(1), &[], &file("undone"));
    fleet.assert_values(SOMAXCONN, ["4096"; 3]);
    assert_eq!(fleet.values(BACKLOG), old);
    fleet.all(changed(0), &[], &file("undone"));
}

#[test]
fn errors_are_those_of_the_binary_and_name_what_is_missing() {
    let fleet = Fleet::start();
    let archive = json!({ "state": "collected", "dest": "/var/tmp/machine.tar.gz" });
    for (expected, options) in [
        (1, archive.clone()),
        (0, archive.clone()),
        (1, merged(&archive, &json!({ "force": true }))),
    ] {
        fleet.all(changed(expected), &[], &options);
    }
    let planned = |more: &Value| merged(&json!({ "state": "planned" }), more);
    for (options, message) in [
        (
            planned(&json!({ "binary": "/nowhere/saiga" })),
            "/nowhere/saiga does not exist or is not executable on this host: install Saiga",
        ),
        (
            planned(&json!({ "binary": "saiga-none" })),
            "saiga-none is not in PATH on this host: install Saiga",
        ),
        (
            planned(&json!({ "set": { "vm.swapines": 1 } })),
            "saiga: unknown knob `vm.swapines`; the nearest is `vm.swappiness`",
        ),
        (
            planned(&json!({ "no_interrupts": true, "queues": 4 })),
            "cannot be used with '--no-interrupts'",
        ),
        (
            planned(&json!({ "set": { "nic.tso": true } })),
            "set: the value of nic.tso is a boolean; quote it",
        ),
        (
            planned(&json!({ "engine": "oracle" })),
            "value of engine must be one of: mysql,",
        ),
        (
            json!({ "state": "applied", "plan": "/nowhere/plan.toml" }),
            "the plan /nowhere/plan.toml does not exist on this host; make it with state=planned",
        ),
        (
            json!({ "state": "undone", "id": "0123" }),
            "saiga: there is no plan `0123` in the history",
        ),
        (
            json!({ "state": "verified" }),
            "state is verified but any of the following are missing: plan, id",
        ),
        (
            json!({ "state": "undone", "id": "0123", "engine": "mysql" }),
            "state=undone takes no options of a plan: engine",
        ),
    ] {
        let (recaps, said) = fleet.task(&["--limit", "db-1"], &options);
        assert_eq!(recaps, [FAILED], "{options}: {said}");
        assert!(said.contains(message), "{options}: {said}");
    }
}

#[test]
fn a_canary_that_loses_is_undone_and_the_others_are_not_touched() {
    let fleet = Fleet::start();
    let variables = |figure: &str| {
        json!({
            "tune_set": { "net.core.somaxconn": 5000, "irq.default_smp_affinity": "1" },
            "tune_no_interrupts": true,
            "tune_plan": "/var/lib/saiga/plan.toml",
            "tune_benchmark_command":
                format!("echo Transactions: && cat {SOMAXCONN} | sed 's/5000/{figure}/'"),
        })
    };
    let (recaps, said) = fleet.play("saiga.host.tune", &["--check", "--diff"], &variables("1"));
    assert_eq!(recaps.len(), 3, "{said}");
    assert!(said.contains("+net.core.somaxconn = 5000"), "{said}");
    fleet.assert_values(SOMAXCONN, ["4096"; 3]);

    // 4096 without the plan.
    let (recaps, said) = fleet.play("saiga.host.tune", &[], &variables("3900"));
    let [canary] = recaps[..] else {
        panic!("others than the canary were tuned: {said}")
    };
    assert_eq!((canary.failed, canary.rescued), (1, 1), "{said}");
    for part in [
        "4096.0 before, 3900.0 after, a loss of 4.79 %: more than the 3 % that are tolerated",
        "undone: 4096.0 before",
    ] {
        assert!(said.contains(part), "{said}");
    }
    fleet.assert_values(SOMAXCONN, ["4096"; 3]);
    fleet.assert_values(AFFINITY, ["3"; 3]);

    // The affinity may cut the connection, so the plan was confirmed over a new one.
    let (recaps, said) = fleet.play("saiga.host.tune", &[], &variables("4000"));
    assert_eq!(recaps.len(), 3, "{said}");
    assert!(
        recaps
            .iter()
            .all(|host| host.failed == 0 && host.unreachable == 0),
        "{said}"
    );
    let confirmed = said.split_once("TASK [saiga.host.tune : Confirm]");
    let confirmed = confirmed.and_then(|(_, rest)| rest.split_once("TASK"));
    assert!(
        confirmed.is_some_and(|(task, _)| task.contains("changed: [db-1]")),
        "{said}"
    );
    fleet.assert_values(SOMAXCONN, ["5000"; 3]);
    fleet.assert_values(AFFINITY, ["1"; 3]);
    for host in 1..=HOSTS {
        let history = fleet.inside(host, &["saiga", "tune", "history", "--json"]);
        assert!(history.contains(r#""state": "applied""#), "{history}");
    }
    let (recaps, said) = fleet.play("saiga.host.tune", &[], &variables("1"));
    assert_eq!(recaps, [changed(0); 3], "{said}");

    let (recaps, said) = fleet.play("saiga.host.undo", &[], &json!({}));
    assert_eq!(recaps, [changed(1); 3], "{said}");
    fleet.assert_values(SOMAXCONN, ["4096"; 3]);
    fleet.assert_values(AFFINITY, ["3"; 3]);
}

/// The playbook was interrupted after it had applied the plan, or cannot connect any more.
#[test]
fn a_plan_that_is_not_confirmed_is_undone_by_its_host() {
    let fleet = Fleet::start();
    let applied = |within: &str| {
        json!({
            "state": "applied",
            "set": { "irq.default_smp_affinity": "1" },
            "no_interrupts": true,
            "plan": PLAN,
            "confirm_within": within,
        })
    };
    let file = |state: &str| json!({ "state": state, "plan": PLAN });
    fleet.all(changed(1), &[], &applied("1h"));
    fleet.assert_values(AFFINITY, ["1"; 3]);
    // Nothing is left to change, but the plan still has to be confirmed.
    let said = fleet.all(changed(0), &[], &applied("1h"));
    let waiting = said.matches(r#""needs_confirmation": true"#).count();
    assert_eq!(waiting, 3, "{said}");
    let (recaps, said) = fleet.task(&["--limit", "db-1"], &file("confirmed"));
    assert_eq!(recaps, [changed(1)], "{said}");

    let others = ["--limit", "db-2,db-3"];
    for options in [file("undone"), applied("1s")] {
        let (recaps, said) = fleet.task(&others, &options);
        assert_eq!(recaps, [changed(1); 2], "{said}");
    }
    for host in 2..=HOSTS {
        await_some(
            || (fleet.inside(host, &["cat", AFFINITY]).trim() == "3").then_some(()),
            || format!("host {host} does not undo the plan"),
        );
    }
    fleet.assert_values(AFFINITY, ["1", "3", "3"]);
    let (recaps, said) = fleet.task(&[], &file("confirmed"));
    assert_eq!(recaps, [changed(0), FAILED, FAILED], "{said}");
    assert!(
        said.contains("saiga: the plan is not confirmed: plan"),
        "{said}"
    );
}

/// Three hosts, and the installed collection. They end with the test program.
///
/// They have no PID namespace, in which Saiga would take them for containers.
struct Fleet {
    site: Site,
}

impl Fleet {
    fn start() -> Self {
        let site = site();
        keys(&site);
        fs::create_dir(site.path("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_saiga"), site.path("bin/saiga")).unwrap();
        let hosts: Vec<(String, u16)> = (1..=HOSTS)
            .map(|host| (format!("10.77.{host}.2"), 22))
            .collect();
        for ((address, port), number) in hosts.iter().zip(1..) {
            sshd_config(&site, number, address, *port);
        }
        inventory(&site, "databases", "db", &hosts);
        site.write("task.yml", TASK);
        install(&site);
        let mut command = site.command("unshare", Arm::Kernel);
        command.args(["--net", "--mount", "sh", "-ec", NETWORK]);
        command.arg(site.path("").display().to_string().trim_end_matches('/'));
        environment(&mut command, &site);
        let outcome = run_daemon(command);
        let fleet = Self { site };
        assert!(outcome.is_success(), "{outcome:?} {}", fleet.said());
        for host in 0..=HOSTS {
            let pid = format!("pid-{host}");
            await_some(
                || fleet.site.read(&pid).ends_with('\n').then_some(()),
                || format!("host {host} does not start: {}", fleet.said()),
            );
        }
        fleet
    }

    /// Output of the daemons.
    fn said(&self) -> String {
        self.site.read("network.log")
    }

    /// A command in the namespaces of Ansible.
    fn command(&self, program: &Path) -> Command {
        let mut command = self.site.command("nsenter", Arm::Kernel);
        let first = self.site.read("pid-0");
        command.args(["--net", "--mount", "--target", first.trim()]);
        command.arg(format!("--wd={}", self.site.path("").display()));
        command.arg("--").arg(program);
        environment(&mut command, &self.site);
        // Connections stay open as for a user, and end with the namespace.
        command.env_remove("ANSIBLE_SSH_ARGS");
        command.env("ANSIBLE_PIPELINING", "True");
        command
    }

    /// Runs a playbook. Returns the recaps of the hosts, in order, and the output.
    fn play(&self, book: &str, flags: &[&str], variables: &Value) -> (Vec<Recap>, String) {
        let mut command = self.command(&fetched("ansible", "ansible-playbook"));
        command.args(["-i", "hosts", book]).args(flags);
        command.args(["-e", &variables.to_string()]);
        command.env("ANSIBLE_COLLECTIONS_PATH", self.site.path("collections"));
        let outcome = run_to_end(command);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        let recaps = recaps(&outcome);
        let is_success = recaps
            .iter()
            .all(|host| host.failed + host.unreachable == 0);
        assert_eq!(
            outcome.is_success(),
            is_success,
            "{outcome:#?}\n{}",
            self.said()
        );
        assert!(!recaps.is_empty(), "{outcome:#?}");
        (recaps, said)
    }

    /// Runs the module.
    fn task(&self, flags: &[&str], options: &Value) -> (Vec<Recap>, String) {
        self.play("task.yml", flags, &json!({ "options": options }))
    }

    /// Runs the module, whose recap must be the same on all hosts. Returns the output.
    fn all(&self, expected: Recap, flags: &[&str], options: &Value) -> String {
        let (recaps, said) = self.task(flags, options);
        assert_eq!(
            recaps, [expected; HOSTS as usize],
            "{flags:?} {options}: {said}"
        );
        said
    }

    /// Output of a command on a host.
    fn inside(&self, host: u32, words: &[&str]) -> String {
        let mut command = self.command(Path::new("nsenter"));
        let pid = self.site.read(&format!("pid-{host}"));
        command.args(["--net", "--mount", "--target", pid.trim(), "--"]);
        command.args(words);
        let outcome = run_to_end(command);
        outcome.stdout
    }

    fn write(&self, host: u32, path: &str, value: &str) {
        let script = format!("echo {value} >{path}");
        self.inside(host, &["sh", "-c", &script]);
        assert_eq!(self.inside(host, &["cat", path]).trim(), value);
    }

    /// A value on each host.
    fn values(&self, path: &str) -> Vec<String> {
        let values = (1..=HOSTS).map(|host| self.inside(host, &["cat", path]).trim().to_owned());
        values.collect()
    }

    #[track_caller]
    fn assert_values(&self, path: &str, expected: [&str; HOSTS as usize]) {
        assert_eq!(self.values(path), expected, "{path}");
    }
}

/// Builds the collection and installs the archive.
fn install(site: &Site) {
    let root = fetched("ansible", "root/usr");
    let galaxy = |words: &[&str]| {
        let mut command = site.command("/usr/bin/python3", Arm::Kernel);
        command
            .arg(root.join("bin/ansible-galaxy"))
            .arg("collection")
            .args(words);
        environment(&mut command, site);
        command
            .env("PYTHONPATH", root.join("lib/python3/dist-packages"))
            .current_dir(site.path(""));
        site.done(command);
    };
    let source = repository()
        .join("integrations/ansible")
        .display()
        .to_string();
    galaxy(&["build", &source]);
    galaxy(&[
        "install",
        "--offline",
        "-p",
        "collections",
        "saiga-host-0.1.0.tar.gz",
    ]);
}

/// The recap of each host, by name.
fn recaps(outcome: &Outcome) -> Vec<Recap> {
    let (_, recap) = outcome.stdout.split_once("PLAY RECAP").unwrap_or_default();
    let hosts: BTreeMap<&str, &str> = recap
        .lines()
        .filter_map(|line| line.split_once(" : "))
        .collect();
    let recap = |line: &&str| {
        let number = |name: &str| {
            let mut words = line.split_whitespace();
            let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.unwrap().parse().unwrap()
        };
        Recap {
            changed: number("changed"),
            unreachable: number("unreachable"),
            failed: number("failed"),
            rescued: number("rescued"),
        }
    };
    hosts.values().map(recap).collect()
}

/// Two objects of options as one.
fn merged(one: &Value, other: &Value) -> Value {
    let mut all = one.as_object().unwrap().clone();
    all.extend(other.as_object().unwrap().clone());
    Value::Object(all)
}
