//! Whole rows from whole hosts: captured here, and made up as large as they get.

use std::fmt::Write;
use std::path::Path;

use super::*;
use crate::config::{BenchmarkSqlSink, Group};
use crate::series::Series;
use crate::source::testing::Host;

/// Captured on this project's machine with two cores, 2.03 s apart, while `dd` wrote 20 MiB.
fn captured(host: &Host, moment: &str) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/two-cores");
    host.copy(&fixtures.join(moment));
}

fn config(host: &Host) -> Config {
    Config {
        roots: host.roots(),
        ..Config::default()
    }
}

fn engine(config: Config, sink: &Sink) -> Engine {
    Engine::new(config, sink, Instant::now()).unwrap()
}

fn mark(engine: &mut Engine, time_s: f64, name: &str) {
    engine.mark(Mark {
        time_s,
        name: name.into(),
    });
}

#[test]
fn a_captured_host_is_read_whole() {
    let host = Host::new();
    captured(&host, "before");
    let mut engine = engine(config(&host), &Sink::default());
    let first = engine.tick(0.0, 0.0);
    assert_eq!(first.get("mem_total_kb"), Some(24_684_084.0));
    assert_eq!(first.get("cpu_user_percent"), None);
    captured(&host, "after");
    let row = engine.tick(2.0, 0.001);
    for (name, value) in [
        ("disk_vda_reads_s", 20.5),
        ("disk_vda_writes_s", 26.5),
        ("disk_vda_write_kb_s", 15_562.0),
        ("disk_vda_util_percent", 0.8),
        ("irq_other_interrupts_s", 99.5),
        ("irq_loc_interrupts_s", 138.0),
        ("load_1min_tasks", 1.05),
        ("mem_free_kb", 21_239_560.0),
    ] {
        let found = row.get(name);
        let found = found.unwrap_or_else(|| panic!("{name} is not known"));
        assert!((found - value).abs() < 1e-6, "{name}: {found}");
    }
    // Every one of these is in the two captures; what is `None` was not understood.
    for (name, value) in row.metrics() {
        let is_new = name.starts_with("irq_") && name.contains("_cpu");
        let is_without_requests = name.ends_with("_wait_ms");
        let is_group = name.starts_with("numa_"); // This kernel is built without NUMA.
        assert!(
            value.is_some() || is_new || is_without_requests || is_group,
            "{name}"
        );
    }
    let shares = ["user", "nice", "system", "idle", "iowait", "irq", "softirq"];
    let shares = shares.map(|kind| row.get(&format!("cpu_{kind}_percent")).unwrap());
    let total: f64 = shares.iter().sum::<f64>() + row.get("steal_percent").unwrap();
    assert!((total - 100.0).abs() < 1e-9, "{total}");
    for absent in ["disk_loop0_reads_s", "net_ifb0_rx_kb_s"] {
        assert!(row.metrics().all(|(name, _)| name != absent), "{absent}");
    }
}

/// 256 cores on two nodes, a thousand interrupt lines, twelve disks and a card with 64 queues.
fn large(host: &Host, second: u64) {
    let mut stat = String::from("cpu 0 0 0 0 0 0 0 0 0 0\n");
    let mut header = String::from("     ");
    for core in 0..256 {
        let (user, idle) = (second * (core % 100), second * (100 - core % 100));
        writeln!(stat, "cpu{core} {user} 0 0 {idle} 0 0 0 0 0 0").unwrap();
        write!(header, " CPU{core}").unwrap();
    }
    host.proc("stat", &stat);
    let mut interrupts = format!("{header}\n");
    let idle = format!(" {:>10}", 0).repeat(256);
    let fired = format!(" {:>10}", 1000 + second * 500);
    for line in 0..1000 {
        let mut counts = idle.clone();
        if line < 64 {
            let core = line * 2 * fired.len();
            counts.replace_range(core..core + fired.len(), &fired);
        }
        let device = format!("{line}-edge mlx5_comp{line}@pci:0000:81:00.0");
        writeln!(interrupts, "{line:>4}:{counts} PCI-MSI {device}").unwrap();
    }
    host.proc("interrupts", &interrupts);
    let mut disks = String::new();
    for disk in 0..12 {
        let writes = second * 1000;
        writeln!(
            disks,
            "259 {disk} nvme{disk}n1 0 0 0 0 {writes} 0 {writes} {writes} 0 {writes} 0"
        )
        .unwrap();
        host.sys(&format!("block/nvme{disk}n1/device/model"), "");
    }
    host.proc("diskstats", &disks);
    for node in 0..2 {
        let directory = format!("devices/system/node/node{node}");
        let free = 1_000_000 * (node + 1) - second;
        host.sys(
            &format!("{directory}/meminfo"),
            &format!("Node {node} MemFree: {free} kB\n"),
        );
        host.sys(
            &format!("{directory}/numastat"),
            &format!("other_node {}\n", second * 7),
        );
    }
}

/// Costly files are read less often, columns stay few, and the file has one name per metric.
#[test]
fn a_large_host_costs_what_its_size_allows() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let series = directory.path().join("host.csv");
    let sink = Sink {
        series: Some(series.clone()),
        ..Sink::default()
    };
    large(&host, 0);
    let mut engine = engine(config(&host), &sink);
    let mut interrupts_known = 0;
    for second in 0..60 {
        large(&host, second);
        let row = engine.tick(second as f64, 0.0);
        interrupts_known += u32::from(row.get("irq_other_interrupts_s").is_some());
    }
    let summary = engine.finish(60.0, 0.0);
    // 2.9 MB of text at 128 KiB a row: every 23rd row, and the first look has no rate.
    assert_eq!(interrupts_known, 2);
    assert_eq!(summary.metrics["cpu99_user_percent"].mean, 99.0);
    assert_eq!(summary.metrics["disk_nvme11n1_writes_s"].max, 1000.0);
    assert_eq!(summary.metrics["node1_other_node_pages_s"].mean, 7.0);
    let lines = summary.metrics.keys().filter(|name| name.contains("mlx5"));
    assert_eq!(lines.filter(|name| !name.contains("_cpu")).count(), 64);
    let file = std::fs::read_to_string(&series).unwrap();
    assert_eq!(file.len() as u64, summary.cost.file_bytes);
    let read = Series::read(&series).unwrap();
    assert_eq!(read.times_s.len(), 60);
    let core: Vec<Option<f64>> = read.column("cpu7_idle_percent").unwrap().collect();
    assert_eq!(core[0], None);
    assert!(core[1..].iter().all(|idle| *idle == Some(93.0)));
}

#[test]
fn marks_split_the_run_and_only_the_measured_part_is_summed_up() {
    let host = Host::new();
    captured(&host, "before");
    let directory = tempfile::tempdir().unwrap();
    let sink = Sink {
        series: Some(directory.path().join("host.csv")),
        ..Sink::default()
    };
    let mut engine = engine(config(&host), &sink);
    let running = |count: u32| {
        let stat = "cpu 1 0 0 1 0 0 0 0\n";
        host.proc("stat", &format!("{stat}procs_running {count}\n"));
    };
    mark(&mut engine, 0.0, "warm-up");
    for second in 0..8_u32 {
        running(second);
        engine.tick(f64::from(second), 0.0);
        match second {
            2 => mark(&mut engine, 2.0, "measured"),
            5 => mark(&mut engine, 5.5, "end"),
            _ => {}
        }
    }
    let summary = engine.finish(8.0, 0.25);
    let metric = summary.metrics["run_queue_tasks"];
    assert_eq!((metric.rows, metric.mean, metric.max), (3, 4.0, 5.0));
    assert_eq!((summary.rows, summary.seconds), (3, 3.0));
    assert_eq!((summary.cost.cpu_s, summary.cost.wall_s), (0.25, 8.0));
    let series = Series::read(sink.series.as_ref().unwrap()).unwrap();
    assert_eq!(series.marks, summary.marks);
}

#[test]
fn the_last_word_of_a_phase_is_in_the_row() {
    let host = Host::new();
    captured(&host, "before");
    let mut engine = engine(config(&host), &Sink::default());
    assert_eq!(engine.tick(0.0, 0.0).phase, "");
    mark(&mut engine, 0.5, "warm-up");
    assert_eq!(engine.tick(1.0, 0.0).phase, "warm-up");
}

/// `/dev/full` takes no byte: the run goes on, and the user is told.
#[test]
fn a_full_disk_ends_the_files_and_not_the_run() {
    let host = Host::new();
    captured(&host, "before");
    let full = |path: &Path| {
        let file = std::fs::OpenOptions::new().write(true).open("/dev/full");
        (path.to_owned(), Writer::to(file.unwrap()))
    };
    let mut engine = engine(config(&host), &Sink::default());
    engine.series = Some(full(Path::new("/out/host.csv")));
    engine.tick(0.0, 0.0);
    let row = engine.tick(1.0, 0.0);
    assert_eq!((row.row, row.get("mem_total_kb")), (1, Some(24_684_084.0)));
    let summary = engine.finish(1.0, 0.0);
    assert_eq!(
        summary.warnings,
        ["/out/host.csv ends early: No space left on device (os error 28)"]
    );
}

#[test]
fn benchmarksql_gets_its_files_with_the_devices_of_its_props() {
    let host = Host::new();
    captured(&host, "before");
    let directory = tempfile::tempdir().unwrap();
    let sink = Sink {
        benchmarksql: Some(BenchmarkSqlSink {
            directory: directory.path().into(),
            run: 3,
        }),
        ..Sink::default()
    };
    let config = Config {
        devices: Device::list("net_eth0 blk_vda blk_gone").unwrap(),
        groups: vec![Group::named("server")],
        ..config(&host)
    };
    let mut engine = engine(config, &sink);
    engine.tick(0.0, 0.0);
    captured(&host, "after");
    engine.tick(2.0, 0.0);
    for (name, row) in [
        ("blk_vda.csv", "3,2000,blk_vda,20.5,0,198,26.5,0.5,15562"),
        ("blk_gone.csv", "3,2000,blk_gone,,,,,,"),
    ] {
        let text = std::fs::read_to_string(directory.path().join(name)).unwrap();
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(rows, [row], "{name}");
    }
    assert!(directory.path().join("net_eth0.csv").exists());
    assert!(directory.path().join("sys_info.csv").exists());
}

#[test]
fn what_cannot_begin_says_what_is_in_the_way() {
    let host = Host::new();
    let refused = Engine::new(config(&host), &Sink::default(), Instant::now()).unwrap_err();
    let said = refused.to_string();
    assert!(said.ends_with("/proc/stat; is /proc mounted?"), "{said}");
    captured(&host, "before");
    let sink = Sink {
        series: Some("/proc/none/host.csv".into()),
        ..Sink::default()
    };
    let refused = Engine::new(config(&host), &sink, Instant::now()).unwrap_err();
    let said = refused.to_string();
    assert!(
        said.starts_with("cannot make /proc/none/host.csv: "),
        "{said}"
    );
}

/// The next try must not find a file of the last one in its way.
#[test]
fn a_start_that_failed_leaves_no_series_behind() {
    let host = Host::new();
    captured(&host, "before");
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("sys_info.csv"), "an older run").unwrap();
    let sink = Sink {
        series: Some(directory.path().join("host.csv")),
        benchmarksql: Some(BenchmarkSqlSink {
            directory: directory.path().into(),
            run: 1,
        }),
    };
    let refused = Engine::new(config(&host), &sink, Instant::now()).unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("sys_info.csv: File exists"), "{said}");
    assert!(!directory.path().join("host.csv").exists());
}

/// Directories are looked at before and after.
#[test]
fn file_systems_are_in_the_summary() {
    let host = Host::new();
    captured(&host, "before");
    let directories = vec![PathBuf::from("/"), PathBuf::from("/no/such/directory")];
    let config = Config {
        directories: directories.clone(),
        ..config(&host)
    };
    let summary = engine(config, &Sink::default()).finish(0.0, 0.0);
    let named: Vec<PathBuf> = summary
        .file_systems
        .iter()
        .map(|found| found.directory.clone())
        .collect();
    assert_eq!(named, directories);
    assert!(summary.file_systems[0].before.is_some() && summary.file_systems[0].after.is_some());
    assert_eq!(summary.file_systems[1].after, None);
    assert_eq!((summary.rows, summary.metrics.len()), (0, 0));
}

/// The kernel's files end anywhere: no row may panic, and what is left is still read.
#[test]
fn files_that_end_early_are_no_panic() {
    let fixtures =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/two-cores/after/proc");
    for name in [
        "stat",
        "interrupts",
        "softirqs",
        "meminfo",
        "vmstat",
        "diskstats",
        "loadavg",
        "net/dev",
        "net/snmp",
        "net/netstat",
    ] {
        let whole = std::fs::read_to_string(fixtures.join(name)).unwrap();
        let host = Host::new();
        captured(&host, "before");
        let mut engine = engine(config(&host), &Sink::default());
        for (row, end) in (0..whole.len()).step_by(whole.len() / 40 + 1).enumerate() {
            host.proc(name, &whole[..end]);
            engine.tick(row as f64, 0.0);
        }
        captured(&host, "after");
        let row = engine.tick(1000.0, 0.0);
        assert_eq!(row.get("mem_free_kb"), Some(21_239_560.0), "{name}");
    }
}
