//! Golden values of several machines, and differences to running servers.

use std::path::Path;

use saiga_topology::machine::{Disk, Machine};

use super::diff::{Change, Diff, Running, Settings, diff};
use super::procedures::{NAMES, like};
use super::resources::{DiskChoice, Use, data_directory, disk, resources};
use crate::cores::machines::Shape;

use super::{DiskKind, Engine, GIB, Resources, Wanted, refused, wanted};

const BIG: Resources = Resources {
    memory_bytes: 256 * GIB,
    cores: 112,
    nodes: 4,
    disk: DiskKind::Nvme,
    connections: 812,
    are_connections_given: true,
    is_dedicated: true,
};
const SMALL: Resources = Resources {
    memory_bytes: 4 * GIB,
    cores: 2,
    nodes: 1,
    disk: DiskKind::Ssd,
    connections: 100,
    are_connections_given: false,
    is_dedicated: false,
};

fn value<'a>(all: &'a [Wanted], name: &str) -> Option<&'a str> {
    let found = all.iter().find(|wanted| wanted.name == name);
    found.map(|wanted| wanted.value.as_str())
}

fn values(engine: Engine, resources: &Resources) -> Vec<String> {
    let wanted = wanted(engine, resources);
    let shown = wanted
        .iter()
        .map(|one| format!("{}={}", one.name, one.value));
    shown.collect()
}

#[test]
fn mysql_follows_the_hardware() {
    assert_eq!(
        values(Engine::MySql, &BIG),
        [
            "innodb_buffer_pool_size=192G",
            "innodb_buffer_pool_instances=16",
            "innodb_page_cleaners=16",
            "innodb_redo_log_capacity=16G",
            "innodb_flush_method=O_DIRECT",
            "max_connections=812",
            "thread_cache_size=812",
            "back_log=1624",
            "table_open_cache=10000",
            "table_open_cache_instances=56",
            "innodb_io_capacity=10000",
            "innodb_io_capacity_max=20000",
            "innodb_read_io_threads=16",
            "innodb_write_io_threads=16",
            "innodb_flush_neighbors=0",
            "innodb_adaptive_hash_index=OFF",
            "innodb_numa_interleave=ON",
        ]
    );
    let small = wanted(Engine::MySql, &SMALL);
    assert_eq!(value(&small, "innodb_buffer_pool_size"), Some("2G"));
    assert_eq!(value(&small, "innodb_redo_log_capacity"), Some("1G"));
    assert_eq!(value(&small, "innodb_numa_interleave"), None);
}

#[test]
fn postgres_opengauss_and_redis_follow_the_hardware() {
    let postgres = wanted(Engine::Postgres, &BIG);
    for (name, expected) in [
        ("shared_buffers", "64GB"),
        ("effective_cache_size", "192GB"),
        ("maintenance_work_mem", "2GB"),
        ("work_mem", "30MB"),
        ("huge_pages", "try"),
        ("max_worker_processes", "112"),
        ("random_page_cost", "1.1"),
    ] {
        assert_eq!(value(&postgres, name), Some(expected), "{name}");
    }
    let small = wanted(Engine::Postgres, &SMALL);
    assert_eq!(value(&small, "shared_buffers"), Some("512MB"));
    assert_eq!(value(&small, "huge_pages"), None);
    let opengauss = wanted(Engine::OpenGauss, &BIG);
    assert_eq!(value(&opengauss, "shared_buffers"), Some("117964MB"));
    assert_eq!(value(&opengauss, "autovacuum_max_workers"), Some("16"));
    assert_eq!(value(&opengauss, "numa_distribute_mode"), Some("all"));
    assert_eq!(value(&opengauss, "wal_buffers"), Some("1GB"));
    assert_eq!(value(&opengauss, "maintenance_work_mem"), Some("2GB"));
    assert_eq!(value(&wanted(Engine::Redis, &BIG), "io-threads"), Some("8"));
    assert_eq!(value(&wanted(Engine::Redis, &SMALL), "io-threads"), None);
}

#[test]
fn rules_never_reduce_safety() {
    for engine in [
        Engine::MySql,
        Engine::Postgres,
        Engine::OpenGauss,
        Engine::Redis,
    ] {
        for resources in [&BIG, &SMALL] {
            for wanted in wanted(engine, resources) {
                assert_eq!(wanted.trades, None, "{}", wanted.name);
                assert_eq!(refused::reason(engine, &wanted.name, &wanted.value), None);
            }
        }
    }
}

#[test]
fn procedures_are_reproduced() {
    let mysql = like("procedure-001").unwrap();
    for (name, expected) in [
        ("innodb_buffer_pool_size", "150G"),
        ("innodb_log_files_in_group", "32"),
        ("innodb_io_capacity", "30000"),
        ("innodb_spin_wait_delay", "180"),
        ("back_log", "4000"),
    ] {
        assert_eq!(value(&mysql, name), Some(expected));
    }
    let trades = mysql.iter().filter(|wanted| wanted.trades.is_some());
    let names: Vec<&str> = trades.map(|wanted| wanted.name.as_str()).collect();
    assert_eq!(names, ["performance_schema", "binlog_expire_logs_seconds"]);
    for (name, _) in NAMES {
        assert!(like(name).is_some(), "{name}");
    }
    assert_eq!(like("procedure-009"), None);
}

fn running(rows: &[(&str, &str, Option<&str>)]) -> Settings {
    let setting = |(name, value, unit): &(&str, &str, Option<&str>)| {
        let running = Running {
            value: (*value).to_owned(),
            unit: unit.map(str::to_owned),
            from: None,
            needs_restart: false,
        };
        ((*name).to_owned(), running)
    };
    rows.iter().map(setting).collect()
}

fn one(name: &str, value: &str, trades: Option<&str>) -> Wanted {
    Wanted {
        name: name.to_owned(),
        value: value.to_owned(),
        why: String::new(),
        trades: trades.map(str::to_owned),
        is_minimum: false,
    }
}

#[test]
fn only_differences_are_changes() {
    let server = running(&[
        ("innodb_buffer_pool_size", "161061273600", None),
        ("innodb_io_capacity", "200", None),
        ("innodb_log_file_size", "100663296", None),
        ("performance_schema", "ON", None),
    ]);
    let wanted = [
        one("innodb_buffer_pool_size", "150G", None),
        one("innodb_io_capacity", "30000", None),
        one("innodb_redo_log_capacity", "16G", None),
        one("innodb_page_cleaners", "16", None),
        one("performance_schema", "OFF", Some("blind")),
        one("skip_grant_tables", "", None),
    ];
    let found = diff(Engine::MySql, &server, &wanted, &[], 256 * GIB);
    let changes: Vec<(&str, &str)> = found
        .changes
        .iter()
        .map(|change| (change.wanted.name.as_str(), change.wanted.value.as_str()))
        .collect();
    // MariaDB has one redo log file, whose size is the capacity.
    assert_eq!(
        changes,
        [
            ("innodb_io_capacity", "30000"),
            ("innodb_log_file_size", "16G")
        ]
    );
    assert_eq!(
        found.changes[1].renamed_from.as_deref(),
        Some("innodb_redo_log_capacity")
    );
    assert_eq!(found.same, ["innodb_buffer_pool_size"]);
    assert_eq!(found.unknown, ["innodb_page_cleaners"]);
    assert_eq!(found.traded[0].name, "performance_schema");
    assert_eq!(found.refused[0].0.name, "skip_grant_tables");

    let named = ["performance_schema".to_owned()];
    let found = diff(Engine::MySql, &server, &wanted, &named, 256 * GIB);
    assert!(found.traded.is_empty());
    assert_eq!(found.changes[2].wanted.name, "performance_schema");

    // Applied, there is no difference left.
    let applied = running(&[
        ("innodb_buffer_pool_size", "161061273600", None),
        ("innodb_io_capacity", "30000", None),
        ("innodb_log_file_size", "17179869184", None),
        ("performance_schema", "OFF", None),
    ]);
    assert!(
        diff(Engine::MySql, &applied, &wanted, &named, 256 * GIB)
            .changes
            .is_empty()
    );
}

#[test]
fn units_of_postgres_are_understood() {
    let server = running(&[
        ("shared_buffers", "16384", Some("8kB")),
        ("work_mem", "4096", Some("kB")),
        ("checkpoint_timeout", "300", Some("s")),
    ]);
    let wanted = [
        one("shared_buffers", "128MB", None),
        one("work_mem", "8MB", None),
        one("checkpoint_timeout", "15min", None),
    ];
    let found = diff(Engine::Postgres, &server, &wanted, &[], 256 * GIB);
    assert_eq!(found.same, ["shared_buffers"]);
    assert_eq!(found.changes.len(), 2);
}

#[test]
fn opengauss_fits_a_small_and_shared_host() {
    let shown = |resources: &Resources| -> Vec<String> {
        let all = wanted(Engine::OpenGauss, resources);
        let names = [
            "max_process_memory",
            "shared_buffers",
            "maintenance_work_mem",
            "wal_buffers",
        ];
        let value = |name| value(&all, name).unwrap_or("none").to_owned();
        names.map(value).to_vec()
    };
    assert_eq!(shown(&SMALL), ["2GB", "921MB", "128MB", "32MB"]);
    let alone = Resources {
        is_dedicated: true,
        ..SMALL
    };
    assert_eq!(shown(&alone), ["2457MB", "1843MB", "256MB", "64MB"]);
    let tiny = Resources {
        memory_bytes: GIB,
        ..SMALL
    };
    assert_eq!(shown(&tiny), ["none", "230MB", "32MB", "16MB"]);
}

fn changed(diff: &Diff) -> Vec<String> {
    let name = |change: &Change| change.wanted.name.clone();
    diff.changes.iter().map(name).collect()
}

fn higher(diff: &Diff) -> Vec<String> {
    let name = |change: &Change| change.wanted.name.clone();
    diff.higher.iter().map(name).collect()
}

#[test]
fn capacities_are_lowered_for_given_connections_only() {
    let mysql = running(&[
        ("max_connections", "5000", None),
        ("thread_cache_size", "5000", None),
        ("back_log", "9000", None),
        ("table_open_cache", "60000", None),
        ("innodb_io_capacity", "90000", None),
    ]);
    let redis = running(&[("maxclients", "50000", None), ("tcp-backlog", "4000", None)]);
    let capacities = [
        "max_connections",
        "thread_cache_size",
        "back_log",
        "table_open_cache",
    ];
    let queues = ["tcp-backlog", "maxclients"];
    let lowered = |engine, running: &Settings, resources: &Resources| {
        let found = diff(engine, running, &wanted(engine, resources), &[], 256 * GIB);
        (changed(&found), higher(&found))
    };
    let io = "innodb_io_capacity".to_owned();
    let (changes, kept) = lowered(Engine::MySql, &mysql, &SMALL);
    assert_eq!(
        (changes, kept),
        (vec![io.clone()], capacities.map(str::to_owned).to_vec())
    );
    let (changes, kept) = lowered(Engine::Redis, &redis, &SMALL);
    assert_eq!(
        (changes, kept),
        (vec![], queues.map(str::to_owned).to_vec())
    );
    let given = Resources {
        are_connections_given: true,
        ..SMALL
    };
    let (changes, kept) = lowered(Engine::MySql, &mysql, &given);
    let mut all = capacities.map(str::to_owned).to_vec();
    all.push(io);
    assert_eq!((changes, kept), (all, vec![]));
    let (changes, kept) = lowered(Engine::Redis, &redis, &given);
    assert_eq!(
        (changes, kept),
        (queues.map(str::to_owned).to_vec(), vec![])
    );
}

#[test]
fn a_larger_buffer_pool_is_kept_where_it_fits() {
    let server = running(&[("innodb_buffer_pool_size", "214748364800", None)]);
    let changes = |resources: &Resources| {
        let wanted = wanted(Engine::MySql, resources);
        changed(&diff(
            Engine::MySql,
            &server,
            &wanted,
            &[],
            resources.memory_bytes,
        ))
    };
    let pool = ["innodb_buffer_pool_size"];
    assert_eq!(changes(&BIG), [""; 0]);
    let shared = Resources {
        is_dedicated: false,
        ..BIG
    };
    assert_eq!(changes(&shared), pool);
    let half = Resources {
        memory_bytes: 128 * GIB,
        ..BIG
    };
    assert_eq!(changes(&half), pool);
}

#[test]
fn procedures_neither_lower_capacities_nor_exceed_the_memory() {
    let server = running(&[
        ("max_connections", "5000", None),
        ("innodb_buffer_pool_size", "134217728", None),
        ("innodb_log_buffer_size", "16777216", None),
    ]);
    let wanted = like("procedure-001").unwrap();
    let found = diff(Engine::MySql, &server, &wanted, &[], 64 * GIB);
    assert_eq!(changed(&found), ["innodb_log_buffer_size"]);
    assert_eq!(higher(&found), ["max_connections"]);
    assert_eq!(found.too_large.len(), 1);
    assert_eq!(found.too_large[0].name, "innodb_buffer_pool_size");
    let found = diff(Engine::MySql, &server, &wanted, &[], 256 * GIB);
    assert_eq!(found.too_large, []);
}

fn disk_named(name: &str, is_rotational: bool, mounts: &[&str]) -> Disk {
    Disk {
        name: name.to_owned(),
        model: None,
        driver: None,
        device: None,
        node: None,
        bytes: 1 << 40,
        is_rotational,
        queues: 1,
        scheduler: None,
        requests: None,
        irqs: Vec::new(),
        mounts: mounts.iter().map(|mount| (*mount).to_owned()).collect(),
    }
}

#[test]
fn the_disk_is_that_of_the_data_directory() {
    let disks = [
        disk_named("nvme0n1", false, &["/", "/var/lib"]),
        disk_named("sda", true, &["/var/lib/mysql", "/raid"]),
        disk_named("sdb", false, &["/var/lib/mysql2", "/raid"]),
    ];
    for (directory, kind, name) in [
        (
            Some("/var/lib/mysql/data"),
            DiskKind::Rotational,
            Some("sda"),
        ),
        (Some("/var/lib/mysql2"), DiskKind::Ssd, Some("sdb")),
        (Some("/var/lib/mysql3"), DiskKind::Nvme, Some("nvme0n1")),
        (Some("/raid/mysql"), DiskKind::Rotational, Some("sda")),
        (None, DiskKind::Rotational, None),
    ] {
        let choice = DiskChoice {
            kind,
            name: name.map(str::to_owned),
        };
        assert_eq!(
            disk(&disks, directory.map(Path::new)),
            choice,
            "{directory:?}"
        );
    }
    assert_eq!(disk(&[], None).kind, DiskKind::Ssd);
    let server = running(&[("datadir", "/var/lib/mysql/", None), ("dir", "./", None)]);
    let of_mysql = data_directory(Engine::MySql, &server);
    assert_eq!(of_mysql, Some(Path::new("/var/lib/mysql")));
    assert_eq!(data_directory(Engine::Postgres, &server), None);
    assert_eq!(data_directory(Engine::Redis, &server), None);
}

/// Four cores of two hardware threads.
fn eight_cpus() -> Machine {
    let shape = Shape {
        packages: 1,
        nodes: 1,
        cores: 4,
        cluster: 0,
        threads: 2,
    };
    let mut machine = shape.machine();
    machine.nodes[0].memory_bytes = 8 * GIB;
    machine
}

#[test]
fn an_instance_has_the_cores_of_its_cpuset_and_quota() {
    let alone = Use {
        connections: None,
        instances: 1,
        is_shared: false,
    };
    let cores = |cpus: &[u32], quota: Option<&str>, instances: u32| {
        let mut machine = eight_cpus();
        machine.limits.cpus = cpus.to_vec();
        machine.limits.cpu_quota = quota.map(str::to_owned);
        let usage = Use { instances, ..alone };
        let none = Settings::new();
        resources(&machine, Engine::MySql, &none, &usage, DiskKind::Ssd).cores
    };
    let second = |core: &Vec<u32>| core[1];
    let siblings: Vec<u32> = eight_cpus().cores().values().map(second).collect();
    assert_eq!(siblings.len(), 4);
    assert_eq!(cores(&siblings, None, 1), 4);
    assert_eq!(cores(&siblings[..2], None, 1), 2);
    assert_eq!(cores(&siblings, Some("2.5"), 1), 2);
    assert_eq!(cores(&siblings, Some("0.5"), 1), 1);
    assert_eq!(cores(&siblings, Some("64"), 1), 4);
    assert_eq!(cores(&siblings, Some("2"), 4), 1);
}

#[test]
fn connections_are_those_of_the_running_server() {
    let machine = eight_cpus();
    let server = running(&[
        ("max_connections", "5000", None),
        ("maxclients", "10000", None),
    ]);
    let found = |engine, connections| {
        let usage = Use {
            connections,
            instances: 1,
            is_shared: true,
        };
        let found = resources(&machine, engine, &server, &usage, DiskKind::Ssd);
        assert!(!found.is_dedicated);
        (found.connections, found.are_connections_given)
    };
    assert_eq!(found(Engine::MySql, None), (5000, false));
    assert_eq!(found(Engine::Postgres, Some(300)), (300, true));
    assert_eq!(found(Engine::Redis, None), (200, false));
}
