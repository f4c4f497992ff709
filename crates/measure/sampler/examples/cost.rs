//! Measures the cost of sampling: CPU seconds per minute, memory, and bytes per row.
//!
//! `cargo run --release -p saiga-sampler --example cost -- ROWS CORES THREADS PROCESSES MS`
//! samples ROWS rows (default 60) of this host, or of a generated host with CORES cores and 1000
//! interrupt lines. The sampled group has THREADS threads and PROCESSES child processes. MS is the
//! interval (default 1000). For a generated host the result excludes the time that a kernel needs
//! to print the files.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use saiga_sampler::{Config, Group, Roots, Sampler, Sink};

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| {
        let arg = args.next();
        arg.map_or(default, |arg| arg.parse().expect("a number"))
    };
    let (rows, cores, threads) = (number(60), number(0), number(0));
    let (processes, interval_ms) = (number(0), number(1000));
    let directory = tempfile::tempdir().expect("a directory for the series file");
    let roots = if cores == 0 {
        Roots::default()
    } else {
        generate_host(directory.path(), cores)
    };
    for _ in 0..threads {
        std::thread::spawn(std::thread::park);
    }
    let sleeper = |_| {
        Command::new("sleep")
            .arg("infinity")
            .spawn()
            .expect("sleep")
    };
    let mut children: Vec<Child> = (0..processes).map(sleeper).collect();
    let before_kb = resident_kb();
    let sampler = start(directory.path(), &roots, Duration::from_millis(interval_ms));
    let mut row = 0;
    while row < rows {
        if let Some(snapshot) = sampler.wait_after(row, Duration::from_secs(10)) {
            row = snapshot.row;
        }
        if cores > 0 {
            write_stat(&roots, cores, row);
        }
    }
    let after_kb = resident_kb();
    let columns = sampler.latest().metrics().count();
    let cost = sampler.stop().cost;
    for child in &mut children {
        child
            .kill()
            .and_then(|()| child.wait())
            .expect("a child that ends");
    }
    let rows = row as f64;
    println!("rows                 {row} in {:.1} s", cost.wall_s);
    println!("CPU per row          {:.3} ms", 1e3 * cost.cpu_s / rows);
    println!(
        "at a row per second  {:.4} CPU s/min",
        60.0 * cost.cpu_s / rows
    );
    println!(
        "                     {:.3} % of one core",
        100.0 * cost.cpu_s / rows
    );
    println!(
        "resident             {after_kb} kB, {} kB of it since the start",
        after_kb - before_kb
    );
    println!("columns              {columns}");
    println!("series file          {} B/row", cost.file_bytes / (row + 1));
}

fn start(directory: &Path, roots: &Roots, interval: Duration) -> Sampler {
    let sink = Sink {
        series: Some(directory.join("host.csv")),
        ..Sink::default()
    };
    let config = Config {
        interval,
        roots: roots.clone(),
        groups: vec![Group {
            name: "client".into(),
            pids: vec![std::process::id()],
        }],
        ..Config::default()
    };
    Sampler::start(config, &sink).expect("sampling begins")
}

fn resident_kb() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn generate_host(directory: &Path, cores: u64) -> Roots {
    let roots = Roots {
        proc: directory.join("proc"),
        sys: directory.join("sys"),
    };
    fs::create_dir_all(roots.proc.join("net")).expect("the generated /proc");
    for file in [
        "meminfo",
        "vmstat",
        "diskstats",
        "loadavg",
        "net/dev",
        "net/snmp",
        "net/netstat",
    ] {
        let own = fs::read(Path::new("/proc").join(file)).unwrap_or_default();
        fs::write(roots.proc.join(file), own).expect("a file of the generated /proc");
    }
    let mut interrupts: String = (0..cores).map(|core| format!(" CPU{core}")).collect();
    let counts = (0..cores).map(|_| " 1234567890").collect::<String>();
    for line in 0..1000 {
        // Writing into a string cannot fail.
        let _ = write!(
            interrupts,
            "\n{line}:{counts} PCI-MSI {line}-edge nvme{line}"
        );
    }
    interrupts.push('\n');
    fs::write(roots.proc.join("interrupts"), interrupts).expect("generated interrupts");
    write_stat(&roots, cores, 0);
    roots
}

/// Writes `/proc/stat` with cores that are busy in several kinds, each with other percentages.
fn write_stat(roots: &Roots, cores: u64, row: u64) {
    let mut stat = format!("cpu {row} {row} {row} {row} {row} 0 {row} 0 0 0\n");
    for core in 0..cores {
        let [user, system, soft] = [31, 17, 7].map(|share| row * ((core * share) % 33));
        let idle = row * 100 - user - system - soft;
        // Writing into a string cannot fail.
        let _ = writeln!(stat, "cpu{core} {user} 0 {system} {idle} 0 0 {soft} 0 0 0");
    }
    // Renamed into place, because the sampler may read at any moment.
    let (new, path) = (roots.proc.join("stat.new"), roots.proc.join("stat"));
    fs::write(&new, stat)
        .and_then(|()| fs::rename(&new, &path))
        .expect("a generated stat");
}
