//! The sampler on this host: its thread, and the CPU time of real processes.
//!
//! A child process uses CPU time until getrusage(2) reports enough; the accounting of its group
//! must find the same time. The child is this test program with a role in an environment variable.

#![expect(unsafe_code, reason = "getrusage has no safe wrapper in rustix")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use saiga_sampler::series::{Mark, Series};
use saiga_sampler::status::{Kind, ReadError, StatusSource, Variable};
use saiga_sampler::{Config, Group, Sampler, Sink};

const ROLE: &str = "SAIGA_TEST_BURNER";
const BURN_S: f64 = 0.4;
/// Four readings (user and system, before and after), each rounded to a tick of 10 ms.
const RESOLUTION_S: f64 = 0.04;
/// Timeout that only a broken sampler reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

fn cpu_s(who: libc::c_int) -> f64 {
    let mut usage = MaybeUninit::uninit();
    // SAFETY: `usage` has the size of the result.
    let failed = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    assert_eq!(failed, 0);
    // SAFETY: getrusage succeeded, so it filled the structure.
    let usage: libc::rusage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn burn(seconds: f64) {
    let end = cpu_s(libc::RUSAGE_SELF) + seconds;
    while cpu_s(libc::RUSAGE_SELF) < end {
        std::hint::spin_loop();
    }
}

fn burner(role: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_child_burns", "--nocapture"])
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The child process of other tests; does nothing without the environment variable.
#[test]
fn a_child_burns() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let mut line = String::new();
    if role == "once" {
        return burn(BURN_S / 4.0);
    }
    println!("READY");
    std::io::stdin().read_line(&mut line).unwrap();
    let both = || cpu_s(libc::RUSAGE_SELF) + cpu_s(libc::RUSAGE_CHILDREN);
    let before = both();
    match role.as_str() {
        "itself" => burn(BURN_S),
        "children" => {
            for _ in 0..4 {
                let mut child = burner("once");
                child
                    .stdout
                    .take()
                    .unwrap()
                    .read_to_end(&mut Vec::new())
                    .unwrap();
                assert!(child.wait().unwrap().success());
            }
        }
        other => panic!("no such role: {other}"),
    }
    println!("USED {}", both() - before);
    // Keeps running until the sampler of the parent has read it.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Waits for a line with `word` and returns the text after it.
fn wait_for(output: &mut impl BufRead, word: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "no {word}");
        // The test harness writes its own text before the word.
        if let Some((_, rest)) = line.split_once(word) {
            return rest.trim().to_owned();
        }
    }
}

fn a_new_row(sampler: &Sampler) {
    let newest = sampler.latest().row;
    // The next row may have started before this call; the row after it has not.
    sampler
        .wait_after(newest + 1, TIMEOUT)
        .expect("a row before the timeout");
}

fn check_cpu_time_of(role: &str) {
    let mut child = burner(role);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    wait_for(&mut output, "READY");
    let config = Config {
        interval: Duration::from_millis(20),
        groups: vec![
            Group {
                name: "server".into(),
                pids: vec![child.id()],
            },
            Group {
                name: "client".into(),
                pids: vec![std::process::id()],
            },
        ],
        ..Config::default()
    };
    let sampler = Sampler::start(config, &Sink::default()).unwrap();
    a_new_row(&sampler);
    writeln!(input, "burn").unwrap();
    let used: f64 = wait_for(&mut output, "USED ").parse().unwrap();
    a_new_row(&sampler);
    let summary = sampler.stop();
    drop(input);
    output.read_to_end(&mut Vec::new()).unwrap();
    assert!(child.wait().unwrap().success());

    assert!(used >= BURN_S, "{used}");
    let found = summary.cpu.groups["server"];
    assert!(
        (found - used).abs() <= RESOLUTION_S,
        "found {found} of {used}"
    );
    let busiest = summary.metrics["server_cpu_percent"].max;
    assert!(busiest > 0.0 && summary.metrics["server_rss_kb"].max > 0.0);
    assert!(summary.cpu.sampler_s > 0.0, "{:?}", summary.cpu);
    assert!(summary.cpu.busy_s >= BURN_S / 2.0, "{:?}", summary.cpu);
}

#[test]
fn cpu_time_of_a_process_is_found_in_its_group() {
    check_cpu_time_of("itself");
}

/// Each child runs for a few rows at most, and some start and end between two rows.
#[test]
fn cpu_time_of_short_lived_children_is_found() {
    check_cpu_time_of("children");
}

/// A source whose variables count its reads.
struct Reads {
    names: [Variable; 2],
    reads: f64,
}

impl StatusSource for Reads {
    fn label(&self) -> &str {
        "test"
    }

    fn names(&self) -> &[Variable] {
        &self.names
    }

    fn read(&mut self) -> Result<Vec<f64>, ReadError> {
        self.reads += 1.0;
        Ok(vec![self.reads, self.reads])
    }
}

#[test]
fn the_thread_makes_rows_and_writes_them_to_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("host.csv");
    let interval = Duration::from_millis(10);
    let variable = |name: &str, kind| Variable {
        name: name.into(),
        kind,
    };
    let source = Reads {
        names: [
            variable("reads", Kind::Counter),
            variable("level", Kind::Gauge),
        ],
        reads: 0.0,
    };
    let config = Config {
        interval,
        groups: vec![Group::named("server")],
        directories: vec![directory.path().into()],
        sources: vec![Box::new(source)],
        ..Config::default()
    };
    let sink = Sink {
        series: Some(path.clone()),
        ..Sink::default()
    };
    let sampler = Sampler::start(config, &sink).unwrap();
    assert!(sampler.set_group("server", &[std::process::id()]));
    assert!(!sampler.set_group("nobody", &[1]));
    sampler.mark("measured");
    for _ in 0..5 {
        a_new_row(&sampler);
    }
    let newest = sampler.latest();
    assert_eq!(newest.phase, "measured");
    assert!(newest.get("mem_total_kb").is_some() && newest.get("no_such_metric").is_none());
    let summary = sampler.stop();
    assert_eq!(summary.warnings, [""; 0]);
    assert!(
        summary.metrics["db_test_reads_s"].mean > 0.0,
        "{:?}",
        summary.metrics
    );
    assert!(summary.metrics["db_test_level"].max >= 5.0);
    assert!(summary.metrics["server_threads"].max >= 2.0);
    assert!(summary.file_systems[0].before.is_some());

    let series = Series::read(&path).unwrap();
    assert!(!series.is_torn);
    let marks = |marks: &[Mark]| -> Vec<(String, f64)> {
        let mark = |mark: &Mark| (mark.name.clone(), (mark.time_s * 1e3).round());
        marks.iter().map(mark).collect()
    };
    assert_eq!(marks(&series.marks), marks(&summary.marks));
    assert!(series.times_s.len() as u64 > newest.row);
    // No row is early except the last one, which `stop` makes.
    let (_, rows) = series.times_s.split_last().unwrap();
    for (row, time_s) in rows.iter().enumerate() {
        let due_s = row as f64 * interval.as_secs_f64();
        assert!(time_s + 0.000_5 >= due_s, "{row}: {:?}", series.times_s);
    }
}

#[test]
fn dropping_the_sampler_ends_its_thread() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("host.csv");
    let sink = Sink {
        series: Some(path.clone()),
        ..Sink::default()
    };
    drop(Sampler::start(Config::default(), &sink).unwrap());
    let series = Series::read(&path).unwrap();
    assert_eq!((series.times_s.len(), series.is_torn), (1, false));
    let refused = Sampler::start(Config::default(), &sink).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("host.csv: File exists"), "{text}");
}
