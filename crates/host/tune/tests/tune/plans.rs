//! What a plan contains, refuses, and accepts as its own text.

use saiga_topology::machine::Machine;
use saiga_tune::goal::{Engine, Goal, Role};
use saiga_tune::plan::{LoadError, Plan, PlanError, plan};

use crate::fake::Fake;
use crate::{faults, machines, recorded};

fn named(texts: &[&str]) -> Goal {
    Goal {
        named: texts.iter().map(|text| text.parse().unwrap()).collect(),
        ..Goal::default()
    }
}

fn error(texts: &[&str]) -> String {
    let machine = machines::kunpeng(32);
    let readings = Fake::of(&machine).readings(&machine);
    let error: PlanError = plan(&machine, &readings, &named(texts)).unwrap_err();
    error.to_string()
}

#[test]
fn a_wrong_name_or_value_is_named() {
    for (text, expected) in [
        (
            "vm.swapiness=1",
            "unknown knob `vm.swapiness`; the nearest is `vm.swappiness`",
        ),
        ("colour=red", "unknown knob `colour`"),
        (
            "vm.swappiness=201",
            "vm.swappiness: `201` is not a number from 0 to 200",
        ),
        (
            "vm.swappiness=-1",
            "vm.swappiness: `-1` is not a number from 0 to 200",
        ),
        (
            "thp.enabled=off",
            "thp.enabled: `off` is not always or madvise or never",
        ),
        (
            "net.ipv4.ip_local_port_range=60000 10000",
            "net.ipv4.ip_local_port_range: `60000 10000` is not the first and the last port",
        ),
        (
            "disk.scheduler=none; rm -r /",
            "disk.scheduler: `none; rm -r /` is not a word",
        ),
        (
            "disk.scheduler@sda=none",
            "disk.scheduler has no `sda` here; there is nvme0n1, nvme1n1",
        ),
    ] {
        assert_eq!(error(&[text]), expected);
    }
}

#[test]
fn what_cannot_be_set_says_why() {
    let machine = machines::kunpeng(32);
    let mut fake = Fake::of(&machine);
    fake.set(
        "/sys/kernel/security/lockdown",
        "none [integrity] confidentiality\n",
    );
    fake.set("/proc/net/tcp", "  0: 0100007F:3039 00000000:0000 0A 0\n");
    fake.values.remove("/proc/sys/fs/nr_open");
    for (text, expected) in [
        (
            "sched.steal=STEAL",
            "kernel lockdown (integrity) forbids writes to debugfs",
        ),
        (
            "nic.lro=on",
            "the device does not let it be changed (`[fixed]` in ethtool -k)",
        ),
        ("nic.queues=65", "the device has at most 64"),
        (
            "disk.scheduler@nvme0n1=cfq",
            "the disk has none, mq-deadline, kyber, bfq",
        ),
        (
            "irq.affinity@200=1",
            "the kernel places this interrupt itself (managed affinity)",
        ),
        ("irq.affinity@100=40", "none of the CPUs 40 is online"),
        ("fs.nr_open=10000", "/proc/sys/fs/nr_open does not exist"),
        (
            "hugepages.node@node0-2048kB=99999",
            "99999 more pages need 209713102848 bytes; 51539607552 are free",
        ),
        (
            "net.ipv4.ip_local_port_range=12000 13000",
            "processes listen on 12345 in this range: reserve them with \
             net.ipv4.ip_local_reserved_ports",
        ),
        (
            "mkfs.xfs",
            "it destroys the data on the disk; make the file system yourself, on a disk that \
             lsblk -f shows as empty",
        ),
    ] {
        let plan = fake.plan(&machine, &named(&[text]));
        assert!(plan.steps.is_empty(), "{text}");
        let left = plan.not_applicable.iter().chain(&plan.refused);
        let reasons: Vec<&str> = left.map(|left| left.reason.as_str()).collect();
        assert_eq!(reasons, [expected], "{text}");
    }
    // With the port reserved in the same plan, the range can be set.
    let both = [
        "net.ipv4.ip_local_port_range=12000 13000",
        "net.ipv4.ip_local_reserved_ports=12345",
    ];
    let plan = fake.plan(&machine, &named(&both));
    assert_eq!(plan.steps.len(), 2, "{:?}", plan.not_applicable);
    assert_eq!(plan.steps[0].knob, "net.ipv4.ip_local_reserved_ports");
}

#[test]
fn queues_that_do_not_exist_yet_are_planned_later() {
    let machine = machines::kunpeng(32);
    let mut goal = Goal::default();
    goal.placement.queues = [("enp3s0".to_owned(), 16)].into();
    goal.placement.irqs = [(100, vec![28]), (115, vec![29])].into();
    goal.placement.receive = [
        (("enp3s0".to_owned(), 3), vec![1]),
        (("enp3s0".to_owned(), 4), vec![1]),
    ]
    .into();
    let plan = Fake::of(&machine).plan(&machine, &goal);
    let names: Vec<&str> = plan
        .not_applicable
        .iter()
        .map(|left| left.name.as_str())
        .collect();
    assert_eq!(names, ["irq.affinity@115", "nic.rps_cpus@enp3s0-4"]);
    let steps: Vec<String> = plan.steps.iter().map(|step| step.name()).collect();
    assert_eq!(
        steps,
        [
            "irqbalance.active",
            "nic.queues@enp3s0",
            "irq.affinity@100",
            "nic.rps_cpus@enp3s0-3"
        ]
    );
}

#[test]
fn ports_of_servers_are_reserved_before_the_range_grows() {
    let machine = machines::small_vm();
    let mut fake = Fake::of(&machine);
    fake.set(
        "/proc/net/tcp6",
        " 0: 00:8124 00:0000 0A 0\n 1: 00:0CEA 00:0000 0A 0\n",
    );
    let goal = Goal {
        engine: Engine::Mysql,
        role: Role::Both,
        ..Goal::default()
    };
    let plan = fake.plan(&machine, &goal);
    let ports: Vec<_> = plan
        .steps
        .iter()
        .filter(|step| step.knob.contains("local"))
        .collect();
    assert_eq!(ports[0].now, "33060", "3306 is below the range");
    assert_eq!(ports[1].now, "10000 60000");
}

#[test]
fn a_risky_knob_is_turned_by_name_only() {
    let machine = machines::kunpeng(32);
    let fake = Fake::of(&machine);
    for engine in [
        Engine::Mysql,
        Engine::Postgres,
        Engine::OpenGauss,
        Engine::Redis,
    ] {
        for role in [Role::Server, Role::Client, Role::Both] {
            let goal = Goal {
                engine,
                role,
                ..Goal::default()
            };
            let plan = fake.plan(&machine, &goal);
            assert!(plan.steps.iter().all(|step| step.risk.is_automatic()));
        }
    }
    let plan = fake.plan(&machine, &named(&["kernel.perf_event_paranoid=1"]));
    assert_eq!(plan.steps.len(), 1);
}

#[test]
fn a_plan_is_its_own_text_and_no_other() {
    let machine = machines::kunpeng(32);
    let plan = faults::host(&machine).plan(&machine, &faults::goal());
    let text = plan.to_toml().unwrap();
    assert_eq!(Plan::from_toml(&text).unwrap(), plan);
    let part = plan.with_steps(|step| step.knob == "vm.swappiness");
    assert_eq!(part.steps.len(), 1);
    assert_ne!(part.id, plan.id);
    part.check().unwrap();
    for (from, to, expected) in [
        (
            "\nnow = \"1\"",
            "\nnow = \"2\"",
            "the steps do not match the plan's id",
        ),
        ("version = 1", "version = 2", "a plan of format 2"),
        (
            "/proc/sys/vm/swappiness",
            "/etc/shadow",
            "the target is not one that the knob has",
        ),
        (
            "/proc/sys/vm/swappiness",
            "/sys/../etc/shadow",
            "the target is not one",
        ),
        (
            "/etc/sysctl.d/99-zz-saiga.conf",
            "/etc/cron.d/saiga",
            "not a file of Saiga's",
        ),
        (
            "irqbalance.service",
            "sshd.service",
            "the target is not one that the knob has",
        ),
        (
            "knob = \"vm.swappiness\"",
            "knob = \"vm.none\"",
            "there is no such knob",
        ),
        (
            "\nnow = \"1\"",
            "\nnow = \"one\"",
            "the knob cannot have this value",
        ),
        (
            "/bin/sh -c",
            "/bin/bash -c",
            "not a text that a plan writes",
        ),
        ("facts", "fact", "not a plan"),
    ] {
        assert!(text.contains(from), "{from}");
        let error: LoadError = Plan::from_toml(&text.replace(from, to)).unwrap_err();
        assert!(error.to_string().contains(expected), "{to}: {error}");
    }
}

#[test]
fn a_file_of_another_program_is_not_replaced() {
    let machine = machines::kunpeng(32);
    let mut fake = Fake::of(&machine);
    let path = "/etc/sysctl.d/99-zz-saiga.conf";
    fake.set(path, "vm.swappiness = 60\n");
    let mut goal = named(&["vm.swappiness=1"]);
    goal.is_persistent = true;
    let plan = fake.plan(&machine, &goal);
    assert_eq!(plan.steps.len(), 1);
    let reason = |plan: &Plan| plan.not_applicable[0].reason.clone();
    assert_eq!(reason(&plan), "the existing file was not written by Saiga");
    let mark = "# Written by `saiga tune`; removed by `saiga tune undo`.";
    fake.set(
        path,
        &format!(
            "{mark}
kernel.core_pattern = |/bin/crash
"
        ),
    );
    let plan = fake.plan(&machine, &goal);
    assert_eq!(
        reason(&plan),
        "it has lines that no plan wrote: move them to another file"
    );
    fake.set(
        path,
        &format!(
            "{mark}
vm.swappiness = 10
vm.stat_interval = 5
"
        ),
    );
    let plan = fake.plan(&machine, &goal);
    let file = &plan.steps[1];
    assert_eq!(
        file.now,
        format!(
            "{mark}
vm.swappiness = 1
vm.stat_interval = 5
"
        )
    );
}

#[test]
fn programs_that_would_override_the_plan_are_named() {
    let machine = machines::kunpeng(32);
    let mut fake = Fake::of(&machine);
    fake.start("tuned");
    fake.start("NetworkManager");
    let plan = fake.plan(&machine, &named(&["vm.swappiness=1"]));
    let names: Vec<&str> = plan
        .overriders
        .iter()
        .map(|over| over.name.as_str())
        .collect();
    assert_eq!(names, ["tuned"], "NetworkManager does not touch this one");

    // A service that the plan itself stops overrides nothing.
    fake.start("irqbalance");
    let overriders = |without: &[&str]| {
        let mut goal = Goal::default();
        goal.placement.irqs = [(100, vec![3])].into();
        goal.without = without.iter().map(|knob| (*knob).to_owned()).collect();
        let plan = fake.plan(&machine, &goal);
        plan.overriders.len()
    };
    assert_eq!(overriders(&[]), 0);
    assert_eq!(overriders(&["irqbalance.active"]), 1);
}

/// The steps of a plan, after `change` of a host with the values of its distribution.
fn steps(
    machine: &Machine,
    (engine, role): (Engine, Role),
    change: impl Fn(&mut Fake),
) -> Vec<String> {
    let mut fake = Fake::of(machine);
    fake.distribution(machine);
    change(&mut fake);
    let goal = Goal {
        engine,
        role,
        ..Goal::default()
    };
    let plan = fake.plan(machine, &goal);
    let line = |step: &saiga_tune::step::Step| format!("{} {}", step.name(), step.now);
    plan.steps.iter().map(line).collect()
}

#[test]
fn a_value_that_is_better_already_stays() {
    let machine = machines::epyc_nps4();
    for (engine, role, file, value, knob) in [
        (
            Engine::Mysql,
            Role::Server,
            "net/core/somaxconn",
            "65535",
            "net.core.somaxconn",
        ),
        (
            Engine::Mysql,
            Role::Server,
            "vm/swappiness",
            "0",
            "vm.swappiness",
        ),
        (
            Engine::Mysql,
            Role::Server,
            "kernel/numa_balancing",
            "2",
            "kernel.numa_balancing",
        ),
        (
            Engine::Postgres,
            Role::Server,
            "vm/dirty_bytes",
            "536870912",
            "vm.dirty_bytes",
        ),
        (
            Engine::Postgres,
            Role::Client,
            "net/ipv4/ip_local_port_range",
            "1024\t65535",
            "net.ipv4.ip_local_port_range",
        ),
    ] {
        let found = steps(&machine, (engine, role), |fake| {
            fake.set(&format!("/proc/sys/{file}"), &format!("{value}\n"));
        });
        let is_it = |step: &String| step.split(' ').next() == Some(knob);
        assert!(!found.iter().any(is_it), "{found:?}");
    }
}

/// Without huge pages nobody waits for one, and PostgreSQL asks for none.
#[test]
fn huge_pages_are_changed_only_where_it_has_an_effect() {
    let machine = machines::epyc_nps4();
    let set = |fake: &mut Fake, enabled: &str, defrag: &str| {
        let folder = "/sys/kernel/mm/transparent_hugepage";
        fake.set(&format!("{folder}/enabled"), enabled);
        fake.set(&format!("{folder}/defrag"), defrag);
    };
    let all = "[always] defer defer+madvise madvise never\n";
    for (engine, enabled, expected) in [
        (
            Engine::Mysql,
            "[always] madvise never\n",
            &["thp.enabled never"][..],
        ),
        (
            Engine::Redis,
            "always [madvise] never\n",
            &["thp.enabled never"],
        ),
        (
            Engine::Postgres,
            "[always] madvise never\n",
            &["thp.enabled madvise", "thp.defrag madvise"],
        ),
        (Engine::Postgres, "always madvise [never]\n", &[]),
    ] {
        let found = steps(&machine, (engine, Role::Server), |fake| {
            set(fake, enabled, all)
        });
        let found: Vec<&String> = found
            .iter()
            .filter(|step| step.starts_with("thp"))
            .collect();
        assert_eq!(found, expected, "{engine:?} {enabled}");
    }
}

/// A host of clients gets ports and interrupts, and nothing of a server.
#[test]
fn a_client_gets_no_knobs_of_a_server() {
    for engine in [
        Engine::Mysql,
        Engine::Postgres,
        Engine::OpenGauss,
        Engine::Redis,
    ] {
        let found = steps(&machines::kunpeng(128), (engine, Role::Client), |_| ());
        assert_eq!(
            found,
            [
                "net.core.netdev_max_backlog 16384",
                "net.ipv4.ip_local_port_range 10000 60000",
                "net.ipv4.tcp_tw_reuse 1"
            ]
        );
    }
}

#[test]
fn advice_is_for_machines_of_its_kind() {
    let ids = |machine: &Machine, engine| {
        let goal = Goal {
            engine,
            ..Goal::default()
        };
        let plan = Fake::of(machine).plan(machine, &goal);
        let ids: Vec<String> = plan.advice.into_iter().map(|advice| advice.id).collect();
        ids
    };
    let has = |ids: &[String], id: &str| ids.iter().any(|other| other == id);
    let kunpeng = ids(&machines::kunpeng(128), Engine::OpenGauss);
    assert!(has(&kunpeng, "bios.prefetching") && has(&kunpeng, "place.opengauss"));
    let smaller = ids(&machines::kunpeng(96), Engine::OpenGauss);
    assert!(!has(&smaller, "place.opengauss"), "the CPUs of 128 cores");
    let gb10 = ids(&recorded::gb10(), Engine::Redis);
    assert_eq!(gb10, ["bios.power"], "other Arm machines have another BIOS");
    let epyc = ids(&machines::epyc_nps4(), Engine::Postgres);
    assert!(!has(&epyc, "nvme.streams"), "Linux 6.12 has no streams");
    let container = ids(&machines::container(), Engine::Postgres);
    assert!(!has(&container, "place.interleave"), "one node is allowed");
}

#[test]
fn the_last_named_value_counts_and_each_is_checked() {
    let machine = machines::small_vm();
    let fake = Fake::of(&machine);
    let plan = fake.plan(&machine, &named(&["vm.swappiness=1", "vm.swappiness=10"]));
    assert_eq!(plan.steps[0].now, "10");
    assert!(error(&["vm.swappiness=900", "vm.swappiness=10"]).contains("`900` is not"));
}

/// After a restart, an interrupt of the plan may belong to another device.
#[test]
fn a_plan_is_for_the_interrupts_of_the_devices() {
    let machine = machines::kunpeng(32);
    let fake = Fake::of(&machine);
    let plan = fake.plan(&machine, &named(&["vm.swappiness=1"]));
    let mut other = machine.clone();
    for irq in &mut other.nics[0].irqs {
        *irq += 1;
    }
    let changed = plan.facts.differences(&crate::fake::identity(&other));
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].what, "interrupts of network devices");
}

/// An administrator names a list without the port of a server: it replaces the proposal.
#[test]
fn a_named_list_of_reserved_ports_is_checked_as_it_is() {
    let machine = machines::small_vm();
    let mut fake = Fake::of(&machine);
    fake.set("/proc/net/tcp", "  0: 0100007F:3039 00000000:0000 0A 0\n");
    let mut goal = named(&[
        "net.ipv4.ip_local_reserved_ports=9999",
        "net.ipv4.ip_local_port_range=10000 60000",
    ]);
    goal.engine = Engine::Mysql;
    goal.role = Role::Client;
    let plan = fake.plan(&machine, &goal);
    let left = plan.not_applicable.iter();
    let mut left = left.filter(|left| left.name == "net.ipv4.ip_local_port_range");
    let reason = &left.next().unwrap().reason;
    assert!(reason.contains("12345"), "{reason}");
}
