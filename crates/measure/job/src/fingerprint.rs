//! Fingerprint of a job: everything besides arms and cells that determines its runs.
//!
//! `--resume` continues a campaign only if the fingerprint is unchanged. Steps are recorded as a
//! dry run prints them, with every option of the file; programs are recorded by the hash of their
//! bytes, because starting them for `--version` could have side effects. Deliberately absent:
//! passwords, and settings that only a running server can report (`settings`).

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use saiga_experiment::campaign::contents;
use saiga_experiment::file::{Experiment, How, Kind, Point};
use saiga_snapshot::Snapshot;
use serde_json::{Map, Value, json};

use crate::dry_run;
use crate::workload::Job;

/// The fingerprint by name; unknown values are null.
pub(crate) fn of(job: &Job) -> BTreeMap<String, Value> {
    let file = &job.core.file;
    let arms = || file.arms.iter().enumerate();
    let load = job.loads().into_iter().next();
    let steps = |index: usize| match &load {
        Some(load) if job.private.is_none() => dry_run::step_lines(job, index, load),
        Some(_) | None => Vec::new(),
    };
    let steps: Map<String, Value> = arms()
        .map(|(index, arm)| (arm.name.clone(), json!(steps(index))))
        .collect();
    let clients: Map<String, Value> = arms()
        .map(|(_, arm)| (arm.name.clone(), json!(format!("{:?}", arm.client))))
        .collect();
    let around = file.hooks.at(Point::Experiment);
    let hooks = [("before", &around.before), ("after", &around.after)];
    let hooks: Map<String, Value> = hooks
        .into_iter()
        .map(|(when, hooks)| {
            let lines: Vec<String> = hooks.iter().map(dry_run::whole_hook).collect();
            (when.to_owned(), json!(lines))
        })
        .collect();
    let mut fingerprint = BTreeMap::from([
        ("steps".to_owned(), Value::Object(steps)),
        ("clients".to_owned(), Value::Object(clients)),
        ("experiment_hooks".to_owned(), Value::Object(hooks)),
        ("figures".to_owned(), json!(figures(file))),
        ("props".to_owned(), props(job)),
        ("programs".to_owned(), programs(job)),
    ]);
    if let How::Snapshot { snapshot, .. } = &file.restore.how
        && !job.core.generates_data.get()
    {
        let of_snapshot = Snapshot::open(snapshot).ok();
        let of_snapshot = of_snapshot.map(|snapshot| snapshot.fingerprint());
        fingerprint.insert("snapshot".to_owned(), json!(of_snapshot));
    }
    fingerprint
}

/// The rules that extract figures from the output of the load and of hooks.
fn figures(file: &Experiment) -> Vec<String> {
    let of_hooks = file.hook_metrics.iter();
    let of_hooks = of_hooks.map(|one| format!("{}: of a hook, in {}", one.name, one.unit));
    let of_load: Vec<String> = match &file.workload.kind {
        Kind::Command { metrics, .. } => metrics
            .iter()
            .map(|one| {
                format!(
                    "{}: {} x {}",
                    one.metric.name,
                    one.pattern.as_str(),
                    one.scale
                )
            })
            .collect(),
        Kind::Tpcc { .. } | Kind::Redis { .. } => Vec::new(),
    };
    of_load.into_iter().chain(of_hooks).collect()
}

/// Keys and values of the props files with masked passwords; for props files in TOML also the
/// command-line options that follow from them.
fn props(job: &Job) -> Value {
    let files = job.core.props.iter().map(|props| {
        let entries = props.entries.iter();
        let mut entries: Map<String, Value> = entries
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect();
        entries.insert("options".to_owned(), json!(props.options));
        (props.path.display().to_string(), Value::Object(entries))
    });
    Value::Object(files.collect())
}

/// Hashes of this tool, the library (if an arm uses it), the servers and the load generator.
fn programs(job: &Job) -> Value {
    let file = &job.core.file;
    let mut all: Map<String, Value> =
        Map::from_iter([("saiga".to_owned(), json!(contents(&job.core.tool)))]);
    let launches = file.arms.iter().flat_map(|arm| {
        let servers = arm.servers.iter().map(|server| &server.launch);
        servers.chain([&arm.client])
    });
    let library = job.library.as_deref();
    if let Some(library) = library.filter(|_| launches.into_iter().any(|launch| launch.saiga)) {
        all.insert("libsaiga.so".to_owned(), json!(contents(library)));
    }
    let servers = file.arms.iter().flat_map(|arm| &arm.servers);
    let mut lines: Vec<&[String]> = servers.map(|server| server.command.as_slice()).collect();
    let benchmark = ["redis-benchmark".to_owned()];
    match &file.workload.kind {
        Kind::Redis { .. } => lines.push(&benchmark),
        Kind::Command { line, .. } => lines.push(line),
        Kind::Tpcc { .. } => {}
    }
    for word in lines.into_iter().flat_map(programs_in) {
        let bytes = resolve(word).and_then(|path| contents(&path));
        all.insert(word.to_owned(), json!(bytes));
    }
    Value::Object(all)
}

/// The programs in a command line: its first word, and further executable files, such as the
/// program that `numactl` or `taskset` starts.
fn programs_in(line: &[String]) -> impl Iterator<Item = &str> {
    let is_executable = |path: &Path| {
        let metadata = path.metadata().ok();
        metadata.is_some_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    line.iter().enumerate().filter_map(move |(index, word)| {
        let is_program = || resolve(word).is_some_and(|path| is_executable(&path));
        (index == 0 || is_program()).then_some(word.as_str())
    })
}

/// The path of a program; names without a slash are searched in `PATH`.
fn resolve(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| Path::is_file(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use saiga_experiment::campaign::{Begin, Campaign, Identity};
    use saiga_experiment::file::Experiment;
    use saiga_experiment::host;

    use super::*;

    const FILE: &str = r#"
        [[arm]]
        name = "kernel"
        [[arm]]
        name = "saiga"
        saiga = true
        [[server]]
        name = "db"
        command = "nice ${HERE}/server --port 1"
        port = 1
        [workload]
        kind = "tpcc"
        props = ["${HERE}/tpcc.props"]
        [hooks]
        before_run = ["sync"]
    "#;
    const PROPS: &str = "conn=jdbc:mariadb://127.0.0.1:1/tpcc\nuser=u\npassword=secret\n\
                         warehouses=1\nterminals=1\nrunMins=5\n";

    /// The error of `--resume` after `change`, which returns the changed experiment file; `None`
    /// if the campaign is resumed.
    fn refusal(change: impl Fn(&Path) -> String) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        for name in ["server", "saiga", "libsaiga.so"] {
            write(name, "1");
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(dir.path().join(name), executable).unwrap();
        }
        write("tpcc.props", PROPS);
        let open = |text: &str, begin| {
            let path = dir.path().join("x.toml");
            let file = Experiment::parse(&path, text, &[]).unwrap();
            let library = dir.path().join("libsaiga.so");
            let tool = dir.path().join("saiga");
            let job = Job::described(file, tool, Some(&library)).unwrap();
            let identity = Identity::of(&job, &job.plan(6, 1), None, &host::describe(1));
            Campaign::open(dir.path(), &identity, begin)
        };
        drop(open(FILE, Begin::Fresh).unwrap());
        let text = change(dir.path());
        let refused = open(&text, Begin::Resume).err()?.to_string();
        assert!(!refused.contains("secret"), "{refused}");
        Some(refused.replace(&dir.path().display().to_string(), "DIR"))
    }

    #[test]
    fn a_changed_input_of_the_runs_is_named() {
        let rebuilt = |name: &'static str| {
            move |dir: &Path| {
                fs::write(dir.join(name), "2").unwrap();
                FILE.to_owned()
            }
        };
        let edited = |from: &'static str, to: &'static str| {
            move |_: &Path| {
                assert!(FILE.contains(from));
                FILE.replace(from, to)
            }
        };
        let longer = |dir: &Path| {
            let text = PROPS.replace("runMins=5", "runMins=50");
            fs::write(dir.join("tpcc.props"), text).unwrap();
            FILE.to_owned()
        };
        assert_eq!(refusal(|_| FILE.to_owned()), None);
        let restored = "[restore]\nkind = \"none\"\ndrop_caches = true\n[hooks]";
        for (refused, wanted) in [
            (
                refusal(rebuilt("libsaiga.so")),
                "facts.programs.libsaiga.so: ",
            ),
            (refusal(rebuilt("saiga")), "facts.programs.saiga: "),
            (refusal(rebuilt("server")), "facts.programs.DIR/server: "),
            (
                refusal(longer),
                "facts.props.DIR/tpcc.props.runMins: \"5\" there, \"50\" here",
            ),
            (
                refusal(edited("\"sync\"", "\"sync && sync\"")),
                "sync && sync",
            ),
            (refusal(edited("[hooks]", restored)), "facts.steps.kernel: "),
        ] {
            let refused = refused.expect(wanted);
            assert!(refused.contains(wanted), "{wanted}: {refused}");
        }
    }
}
