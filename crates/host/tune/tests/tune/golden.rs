//! The texts of plans, as files beside this one. `SAIGA_BLESS=1` writes them.
//!
//! A text is that of `saiga tune plan`: the division of cores, the placement of interrupts, the
//! changes, and how the server is started.

use std::fs;
use std::path::PathBuf;

use saiga_topology::machine::Machine;
use saiga_tune::cores::{interrupts, partition, starts};
use saiga_tune::goal::{Engine, Goal, Role};
use saiga_tune::render;

use crate::fake::Fake;
use crate::{machines, recorded};

pub(crate) fn check(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tune/golden")
        .join(name);
    if std::env::var_os("SAIGA_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name}: SAIGA_BLESS=1 writes the new text");
}

/// What the plan of a machine is for.
struct Case {
    machine: Machine,
    engine: Engine,
    role: Role,
    instances: usize,
    is_persistent: bool,
}

fn server(machine: Machine, engine: Engine) -> Case {
    Case {
        machine,
        engine,
        role: Role::Server,
        instances: 1,
        is_persistent: false,
    }
}

/// The text of `saiga tune plan` on a host with the values of its distribution.
fn text(case: &Case) -> String {
    let Case {
        machine,
        engine,
        role,
        ..
    } = case;
    let division = partition::Goal::of(*role);
    let partition = partition::divide(machine, &division).unwrap();
    let goal = Goal {
        engine: *engine,
        role: *role,
        placement: interrupts::placement(machine, &division, &partition).unwrap(),
        is_persistent: case.is_persistent,
        ..Goal::default()
    };
    let mut fake = Fake::of(machine);
    fake.distribution(machine);
    let plan = fake.plan(machine, &goal);
    assert_eq!(plan, fake.plan(machine, &goal));
    let starts = starts::starts(machine, &partition, *engine, case.instances).unwrap();
    render::text(&plan) + &starts::text(&partition, &starts)
}

#[test]
fn plans_of_known_machines() {
    let role = |role, case| Case { role, ..case };
    let opengauss = Case {
        is_persistent: true,
        ..server(machines::kunpeng_with(128, 16), Engine::OpenGauss)
    };
    let client = server(machines::kunpeng_with(128, 48), Engine::OpenGauss);
    let two_mysql = Case {
        instances: 2,
        ..server(machines::kunpeng_with(96, 16), Engine::Mysql)
    };
    let xeon = server(machines::xeon_smt(), Engine::Mysql);
    let container = server(machines::container(), Engine::Redis);
    let vm_client = server(machines::small_vm(), Engine::Postgres);
    for (name, case) in [
        ("kunpeng-128-opengauss", opengauss),
        ("kunpeng-128-client", role(Role::Client, client)),
        ("kunpeng-96-mysql", two_mysql),
        (
            "epyc-nps4-postgres",
            server(machines::epyc_nps4(), Engine::Postgres),
        ),
        (
            "xeon-smt-mysql",
            server(machines::xeon_smt(), Engine::Mysql),
        ),
        ("xeon-smt-mysql-both", role(Role::Both, xeon)),
        (
            "graviton-redis",
            server(machines::graviton(), Engine::Redis),
        ),
        (
            "small-vm-mysql",
            server(machines::small_vm(), Engine::Mysql),
        ),
        ("small-vm-client", role(Role::Client, vm_client)),
        ("container-redis", role(Role::Both, container)),
        (
            "memoryless-mysql",
            server(machines::memoryless(), Engine::Mysql),
        ),
        (
            "memory-only-postgres",
            server(machines::memory_only(), Engine::Postgres),
        ),
        (
            "cpuset-2-opengauss",
            server(machines::slice(), Engine::OpenGauss),
        ),
    ] {
        check(&format!("{name}.txt"), &text(&case));
    }
}

#[test]
fn plans_of_recorded_machines() {
    for (name, case) in [
        (
            "recorded-kunpeng-mysql",
            server(recorded::kunpeng_xa320(), Engine::Mysql),
        ),
        (
            "recorded-r910-mysql",
            server(recorded::r910(), Engine::Mysql),
        ),
        (
            "recorded-opteron-postgres",
            server(recorded::opteron_c6145(), Engine::Postgres),
        ),
        (
            "recorded-xeon-e5-redis",
            server(recorded::xeon_e5(), Engine::Redis),
        ),
        (
            "recorded-cpuset-1-postgres",
            server(recorded::opteron_cpuset(), Engine::Postgres),
        ),
        (
            "recorded-offline-mysql",
            server(recorded::offline(), Engine::Mysql),
        ),
        (
            "recorded-hybrid-postgres",
            server(recorded::hybrid(), Engine::Postgres),
        ),
        (
            "recorded-gb10-redis",
            server(recorded::gb10(), Engine::Redis),
        ),
    ] {
        check(&format!("{name}.txt"), &text(&case));
    }
}

#[test]
fn without_an_engine_nothing_is_proposed() {
    let machine = machines::small_vm();
    let plan = Fake::of(&machine).plan(&machine, &Goal::default());
    check("nothing.txt", &render::text(&plan));
}
