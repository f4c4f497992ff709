//! Complete rows of complete hosts: a captured one, and a generated one with 256 cores.

use std::fmt::Write;
use std::path::Path;

use super::*;
use crate::config::{BenchmarkSqlSink, Group};
use crate::series::Series;
use crate::source::testing::Host;

/// Copies a capture over the host. The captures `before` and `after` are from a machine with two
/// cores, 2.03 s apart, while `dd` wrote 20 MiB.
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
fn every_metric_of_a_captured_host_is_known() {
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
        let found = found.unwrap_or_else(|| panic!("{name} is unknown"));
        assert!((found - value).abs() < 1e-6, "{name}: {found}");
    }
    // Both captures contain all of these metrics, so `None` means that the reader failed.
    for (name, value) in row.metrics() {
        let is_new = name.starts_with("irq_") && name.contains("_cpu");
        let is_without_requests = name.ends_with("_wait_ms");
        let is_numa = name.starts_with("numa_"); // The kernel of the captures has no NUMA.
        assert!(
            value.is_some() || is_new || is_without_requests || is_numa,
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

/// Writes the files of a host with 256 cores on two nodes, a thousand interrupt lines, twelve
/// disks, and a network card with 64 queues.
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

/// Expensive files are read less often, and the number of interrupt columns is limited.
#[test]
fn the_cost_of_a_large_host_is_limited() {
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
    // 2.9 MB of text at 128 KiB per row are read in every 23rd row; the first read has no rate.
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
fn the_summary_covers_only_the_measured_phase() {
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
fn a_row_has_the_name_of_the_current_phase() {
    let host = Host::new();
    captured(&host, "before");
    let mut engine = engine(config(&host), &Sink::default());
    assert_eq!(engine.tick(0.0, 0.0).phase, "");
    mark(&mut engine, 0.5, "warm-up");
    assert_eq!(engine.tick(1.0, 0.0).phase, "warm-up");
}

/// Every write to `/dev/full` fails.
#[test]
fn sampling_continues_with_a_warning_when_the_disk_is_full() {
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
        [
            "/out/host.csv is incomplete, because a write failed: No space left on device (os error 28)"
        ]
    );
}

#[test]
fn benchmarksql_files_have_the_devices_of_its_props() {
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
fn an_error_at_the_start_names_its_cause() {
    let host = Host::new();
    let refused = Engine::new(config(&host), &Sink::default(), Instant::now()).unwrap_err();
    let message = refused.to_string();
    assert!(
        message.ends_with("/proc/stat; is /proc mounted?"),
        "{message}"
    );
    captured(&host, "before");
    let sink = Sink {
        series: Some("/proc/none/host.csv".into()),
        ..Sink::default()
    };
    let refused = Engine::new(config(&host), &sink, Instant::now()).unwrap_err();
    let message = refused.to_string();
    assert!(
        message.starts_with("cannot create /proc/none/host.csv: "),
        "{message}"
    );
}

/// A series file that remains would make the next start fail.
#[test]
fn a_failed_start_leaves_no_series_file() {
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
    let message = refused.to_string();
    assert!(message.contains("sys_info.csv: File exists"), "{message}");
    assert!(!directory.path().join("host.csv").exists());
}

/// The second directory does not exist.
#[test]
fn the_summary_has_the_usage_of_file_systems() {
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

/// No truncated file makes the engine panic, and later complete files are read.
#[test]
fn truncated_files_do_not_panic() {
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
