//! The command line of a load, and the figures in its output.
//!
//! In: the workload of the file, an arm, a seed. Out: a command line with the seed and the folder
//! for results; after the run, metrics and details from what the load printed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use saiga_experiment::file::{Arm, Experiment, Extract, Kind, Launch};
use saiga_experiment::result::Detail;
use saiga_process::child::CommandLine;
use saiga_redis::remote::Figures;
use saiga_redis::seed::OPTION as SEED_OF_REDIS;

use crate::record::{self, Times};
use crate::tables::DatabaseCheck;
use crate::{line, tables};

/// The parsed output of a load. Optional fields are `None` if the load does not report them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Output {
    pub(crate) metrics: BTreeMap<String, f64>,
    /// Length of the measured interval.
    pub(crate) seconds: Option<f64>,
    pub(crate) times: Option<Times>,
    pub(crate) detail: Option<Box<Detail>>,
    /// The reason for which the load rejects its own run.
    pub(crate) rejected: Option<String>,
    /// Connections without an answer at the end; the server may still process their requests.
    pub(crate) unanswered: u64,
}

/// Options of `saiga bench tpcc run` that differ from run to run.
#[derive(Clone, Copy)]
pub(crate) struct RunOptions<'a> {
    /// The folder for the results of the run.
    pub(crate) results: &'a Path,
    /// PIDs of the servers.
    pub(crate) servers: &'a [u32],
    /// Disks and network interfaces to sample.
    pub(crate) devices: &'a [String],
}

/// The command line that runs the load of `file` for `arm`; `test` is a test of redis-benchmark.
/// TPC-C, redis-benchmark, sysbench and pgbench are given `seed`, unless the file contains a seed.
/// Other programs are given none.
pub(crate) fn line(
    file: &Experiment,
    arm: &Arm,
    test: Option<&str>,
    tool: &Path,
    seed: Option<u64>,
    options_of_run: Option<RunOptions<'_>>,
) -> CommandLine {
    let words = match &file.workload.kind {
        Kind::Tpcc { props, options, .. } => {
            let mut words = vec![tool.to_string_lossy().into_owned()];
            words.extend(["bench", "tpcc", "run"].map(str::to_owned));
            for file in props {
                words.extend(["--props".to_owned(), file.to_string_lossy().into_owned()]);
            }
            words.extend(options.iter().cloned());
            // Separate steps check the tables.
            words.extend(["--no-check", "--json"].map(str::to_owned));
            if !options.iter().any(|word| word.starts_with("--seed")) {
                words.extend(
                    seed.into_iter()
                        .flat_map(|seed| ["--seed".to_owned(), seed.to_string()]),
                );
            }
            if let Some(of_run) = options_of_run {
                let dir = of_run.results;
                words.extend(["--out".to_owned(), dir.to_string_lossy().into_owned()]);
                let all = dir.parent().unwrap_or(dir);
                words.extend([
                    "--load-file".to_owned(),
                    load_file(all).to_string_lossy().into_owned(),
                ]);
                let servers = of_run.servers.iter().map(ToString::to_string);
                words.extend(servers.flat_map(|pid| ["--server-pid".to_owned(), pid]));
                let devices = of_run.devices.iter().cloned();
                words.extend(devices.flat_map(|name| ["--device".to_owned(), name]));
            }
            words
        }
        Kind::Redis { flags, .. } => {
            let port = arm.servers.first().and_then(|server| server.port);
            let port = port.map_or(String::new(), |port| port.to_string());
            let mut words = ["redis-benchmark", "-h", "127.0.0.1", "-p", &port]
                .map(str::to_owned)
                .to_vec();
            words.extend(flags.words(test.unwrap_or("set")));
            if !flags.others.iter().any(|word| word == SEED_OF_REDIS) {
                let seed = seed.map(|seed| [SEED_OF_REDIS.to_owned(), seed.to_string()]);
                words.extend(seed.into_iter().flatten());
            }
            words
        }
        Kind::Command { name, line, .. } => seeded(name, line, seed),
    };
    line::with_launch(&arm.client, &words, tool)
}

/// Inserts the option for the seed after the program's name. The words stay unchanged if they
/// contain a seed, or if the program's name is not among them (a script starts the tool).
fn seeded(name: &str, line: &[String], seed: Option<u64>) -> Vec<String> {
    let mut words = line.to_vec();
    let option = match name {
        "sysbench" => "--rand-seed",
        "pgbench" => "--random-seed",
        _ => return words,
    };
    let is_seed = |word: &String| word.replace('_', "-").starts_with(option);
    let program = words
        .iter()
        .position(|word| Path::new(word).ends_with(name));
    if let (Some(seed), Some(program)) = (seed, program)
        && !words.iter().any(is_seed)
    {
        words.insert(program + 1, format!("{option}={seed}"));
    }
    words
}

/// The command line that checks the tables of a database. It is started like the client, but never
/// under Saiga.
pub(crate) fn check_line(
    file: &Experiment,
    arm: &Arm,
    check: DatabaseCheck,
    tool: &Path,
) -> CommandLine {
    let props: &[PathBuf] = match &file.workload.kind {
        Kind::Tpcc { props, .. } => props,
        Kind::Redis { .. } | Kind::Command { .. } => &[],
    };
    let none = PathBuf::new();
    let props = props.get(check.database).unwrap_or(&none);
    let words = tables::words(tool, props, check.scope);
    let launch = Launch {
        saiga: false,
        ..arm.client.clone()
    };
    line::with_launch(&launch, &words, tool)
}

/// The file into which a running TPC-C load writes its progress; `results` contains the folders of
/// all runs.
pub(crate) fn load_file(results: &Path) -> PathBuf {
    results.join("load.json")
}

/// Whether a load with this exit code has measured. `saiga bench tpcc run` exits with 1 if a check
/// failed; its record then names the check.
pub(crate) fn has_measured(kind: &Kind, code: Option<i32>) -> bool {
    code == Some(0) || (matches!(kind, Kind::Tpcc { .. }) && code == Some(1))
}

/// Parses the output of a load.
///
/// # Errors
/// Returns a message that names the figure or record that is missing.
pub(crate) fn read(kind: &Kind, text: &str) -> Result<Output, String> {
    match kind {
        Kind::Tpcc { .. } => record::read(text),
        Kind::Redis { flags, .. } => {
            let figures = Figures::parse(text).ok_or("redis-benchmark printed no figures")?;
            #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
            let requests = flags.requests as f64;
            let mut metrics = figures.latencies;
            metrics.insert("throughput_ops_s".to_owned(), figures.requests_per_s);
            Ok(Output {
                metrics,
                seconds: Some(requests / figures.requests_per_s),
                ..Output::default()
            })
        }
        Kind::Command { metrics, .. } => extracted(metrics, text),
    }
}

/// The number in the last match of each pattern, multiplied by its scale; all patterns must match.
fn extracted(wanted: &[Extract], text: &str) -> Result<Output, String> {
    let mut metrics = BTreeMap::new();
    for Extract {
        metric,
        pattern,
        scale,
    } in wanted
    {
        let last = pattern.captures_iter(text).last();
        let number = last.and_then(|found| found.get(1)?.as_str().parse::<f64>().ok());
        let scaled = number.map(|number| number * scale);
        // `nan` and `inf` parse as floats, but are not measurements.
        let number = scaled.filter(|number| number.is_finite()).ok_or_else(|| {
            format!(
                "the output has no number for {} (regex {:?})",
                metric.name,
                pattern.as_str()
            )
        })?;
        metrics.insert(metric.name.clone(), number);
    }
    Ok(Output {
        metrics,
        ..Output::default()
    })
}

#[cfg(test)]
mod tests {
    use saiga_experiment::file::Experiment;

    use super::*;

    fn kind(workload: &str) -> Kind {
        let text = format!(
            "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
             [[server]]\nname = \"s\"\ncommand = \"x\"\nport = 1\n[workload]\n{workload}"
        );
        Experiment::parse(Path::new("/f.toml"), &text, &[])
            .unwrap()
            .workload
            .kind
    }

    #[test]
    fn the_output_of_sysbench_and_pgbench_is_parsed() {
        let sysbench = "    transactions:      12345  (1234.50 per sec.)\nLatency (ms):\n\
                        \x20        avg:      8.10\n         95th percentile:     12.30\n";
        let read = read(
            &kind("kind = \"sysbench\"\ncommand = \"sysbench x run\""),
            sysbench,
        );
        let metrics = read.unwrap().metrics;
        assert_eq!(metrics["throughput_ops_s"], 1234.5);
        assert_eq!(
            (metrics["latency_mean_us"], metrics["latency_p95_us"]),
            (8100.0, 12300.0)
        );

        let pgbench =
            "latency average = 1.500 ms\ntps = 10.0 (including)\ntps = 12.5 (excluding)\n";
        let kind = kind("kind = \"pgbench\"\ncommand = \"pgbench -T 1\"");
        let metrics = super::read(&kind, pgbench).unwrap().metrics;
        assert_eq!(
            (metrics["throughput_ops_s"], metrics["latency_mean_us"]),
            (12.5, 1500.0)
        );
    }

    /// The words after `--seed` in the command line of a run.
    fn seeds(options: &str) -> Vec<String> {
        let text = format!(
            "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
             [[server]]\nname = \"s\"\ncommand = \"x\"\nport = 1\n\
             [workload]\nkind = \"tpcc\"\nprops = [\"p\"]\noptions = [{options}]"
        );
        let file = Experiment::parse(Path::new("/f.toml"), &text, &[]).unwrap();
        let line = line(
            &file,
            &file.arms[0],
            None,
            Path::new("saiga"),
            Some(4711),
            None,
        );
        let words = line.args;
        let at = |(i, word): (usize, &String)| (word == "--seed").then(|| words[i + 1].clone());
        words.iter().enumerate().filter_map(at).collect()
    }

    #[test]
    fn tpcc_is_given_the_seed_of_its_pair_unless_the_file_has_one() {
        assert_eq!(seeds("\"--think\""), ["4711"]);
        assert_eq!(seeds("\"--seed\", \"3\""), ["3"]);
    }

    /// The command line of a workload for the seed 4711.
    fn seeded_line(workload: &str) -> String {
        let text = format!(
            "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
             [[server]]\nname = \"s\"\ncommand = \"x\"\nport = 1\n[workload]\n{workload}"
        );
        let file = Experiment::parse(Path::new("/f.toml"), &text, &[]).unwrap();
        let tool = Path::new("saiga");
        line(&file, &file.arms[0], Some("set"), tool, Some(4711), None).to_string()
    }

    #[test]
    fn load_generators_are_given_the_seed_of_their_pair_unless_their_line_has_one() {
        for (kind, command, wanted) in [
            (
                "sysbench",
                "sysbench x run",
                "sysbench --rand-seed=4711 x run",
            ),
            (
                "sysbench",
                "nice /usr/bin/sysbench x run",
                "nice /usr/bin/sysbench --rand-seed=4711 x run",
            ),
            (
                "sysbench",
                "sysbench --rand-seed=3 x run",
                "sysbench --rand-seed=3 x run",
            ),
            (
                "sysbench",
                "sysbench --rand_seed=3 x run",
                "sysbench --rand_seed=3 x run",
            ),
            ("sysbench", "sh load.sh", "sh load.sh"),
            (
                "pgbench",
                "pgbench -T 1 db",
                "pgbench --random-seed=4711 -T 1 db",
            ),
            (
                "pgbench",
                "pgbench --random-seed time db",
                "pgbench --random-seed time db",
            ),
        ] {
            let workload = format!("kind = \"{kind}\"\ncommand = \"{command}\"");
            assert_eq!(seeded_line(&workload), wanted);
        }
        for (flags, wanted) in [("-c 9", "--seed 4711"), ("--seed 3", "--seed 3")] {
            let line = seeded_line(&format!("kind = \"redis-benchmark\"\nflags = \"{flags}\""));
            assert_eq!(line.matches("--seed").count(), 1, "{line}");
            assert!(line.contains(wanted), "{line}");
        }
    }

    #[test]
    fn a_missing_figure_is_named() {
        let kind = kind("kind = \"pgbench\"\ncommand = \"pgbench -T 1\"");
        let error = read(&kind, "tps = fast").unwrap_err();
        assert!(
            error.starts_with("the output has no number for throughput_ops_s"),
            "{error}"
        );
    }

    #[test]
    fn nan_and_inf_are_rejected() {
        let kind = kind(
            "kind = \"command\"\ncommand = \"x\"\n[[workload.metric]]\nname = \"rate_s\"\n\
             regex = \"rate (\\\\S+)\"\nunit = \"1/s\"\nbetter = \"higher\"\nscale = 1000",
        );
        assert_eq!(read(&kind, "rate 2").unwrap().metrics["rate_s"], 2000.0);
        for word in ["nan", "inf", "-inf", "1e307"] {
            let error = read(&kind, &format!("rate {word}")).unwrap_err();
            assert!(error.contains("no number for rate_s"), "{error}");
        }
    }
}
