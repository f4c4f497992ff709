//! Prints a campaign without executing it: each step as a comment and as shell commands.
//!
//! In: a job, its plan and a machine. Out: a text in which `# ! not here:` marks requirements that
//! the machine lacks. Lines for commands that Saiga executes itself, such as `fuser`, show the
//! nearest shell command. Secrets in commands are masked.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use saiga_experiment::file::{
    Arm, Experiment, Hook, How, Kind, Point, Probe, Reflink, Server, Stop, StopHow,
};
use saiga_experiment::plan::{Cell, Plan};
use saiga_experiment::workload::Workload;
use saiga_hosts::{Layout, Places};
use saiga_process::child::{CommandLine, quoted};
use saiga_process::numbers::ranges;
use saiga_process::secret;

use crate::loads::JobLoad;
use crate::machine::{self, Machine};
use crate::reach::check_reach;
use crate::step::{Side, Step, Steps};
use crate::workload::Job;
use crate::{client, hosts, line};

/// The name of this program in printed commands, in place of its full path.
const TOOL: &str = "saiga";

/// The steps of all runs of `plan`, in order, with the requirements that `machine` does not meet.
#[must_use]
pub fn dry_run(job: &Job, plan: &Plan<JobLoad>, machine: &dyn Machine) -> String {
    let mut text = head(job, plan, machine);
    let visits = plan.visits(job.core.file.arms.len());
    experiment_hooks(job, Side::Before, &mut text);
    for visit in visits {
        let cell = &plan.cells[visit.cell];
        for arm in visit.order {
            let name = &job.core.file.arms[arm].name;
            paragraph(
                &mut text,
                &format!("{}, pair {}, arm {name}", cell.id, visit.pair + 1),
            );
            let seed = plan.seed_of(visit.pair);
            run(job, arm, cell, seed, machine, &mut text);
        }
    }
    experiment_hooks(job, Side::After, &mut text);
    text
}

fn head(job: &Job, plan: &Plan<JobLoad>, machine: &dyn Machine) -> String {
    let file = &job.core.file;
    let mut text = format!("# {}\n", file.name);
    for line in file.goal.iter().flat_map(|goal| goal.lines()) {
        let _ = writeln!(text, "# {line}");
    }
    let (cells, arms) = (plan.cells.len(), file.arms.len());
    let runs = cells * arms * usize::try_from(plan.pairs).unwrap_or(usize::MAX);
    let _ = writeln!(
        text,
        "# {cells} cells x {arms} arms x {} pairs = {runs} runs, seed {}; a run {}",
        plan.pairs,
        plan.seed,
        match file.workload.limit() {
            Some(limit) => format!("is stopped after {}", length(limit)),
            None => "has no time limit".to_owned(),
        }
    );
    if let Some(checks) = job.check_time_notice(plan) {
        let _ = writeln!(text, "# {checks}");
    }
    if let Some(until) = file.plan.until {
        let percent = until * 100.0;
        let _ = writeln!(
            text,
            "# ends earlier, as soon as the confidence interval is within {percent} %"
        );
    }
    if file.restore.how == How::None && job.private.is_none() {
        text.push_str(
            "# nothing is restored between runs: each run begins with the data of the previous run\n",
        );
    }
    if let Err(error) = check_reach(file, &job.core.props, machine) {
        let _ = writeln!(text, "# ! refused: {error}");
    }
    text
}

fn length(limit: std::time::Duration) -> String {
    let seconds = limit.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

fn paragraph(text: &mut String, title: &str) {
    let _ = writeln!(text, "\n# {title}");
}

fn experiment_hooks(job: &Job, side: Side, text: &mut String) {
    let around = job.core.file.hooks.at(Point::Experiment);
    let hooks = match side {
        Side::Before => &around.before,
        Side::After => &around.after,
    };
    let snapshot = match &job.core.file.restore.how {
        How::Snapshot { snapshot, .. } if side == Side::Before => Some(snapshot),
        How::Snapshot { .. } | How::None | How::Logical(_) | How::FlushAll => None,
    };
    if hooks.is_empty() && snapshot.is_none() {
        return;
    }
    paragraph(
        text,
        &format!("{} {}", side.name(), Point::Experiment.name()),
    );
    for hook in hooks {
        let _ = writeln!(text, "{}", hook_line(hook));
    }
    if let Some(snapshot) = snapshot {
        let from = quoted(&snapshot.to_string_lossy());
        let _ = writeln!(
            text,
            "# read the snapshot and compare it with its fingerprints\nsaiga snapshot verify {from}"
        );
    }
}

fn run(
    job: &Job,
    arm: usize,
    cell: &Cell<JobLoad>,
    seed: u64,
    machine: &dyn Machine,
    text: &mut String,
) {
    if let (Some(private), Some(cell)) = (&job.private, job.private_cell(arm, cell)) {
        for program in ["redis-server", "redis-benchmark"] {
            if !machine.program(program) {
                let _ = writeln!(text, "# ! not here: program {program}");
            }
        }
        let operations = job.requests();
        for line in private.steps(arm, &cell, operations) {
            let _ = writeln!(
                text,
                "{}",
                line.replace(&*job.core.tool.to_string_lossy(), TOOL)
            );
        }
        return;
    }
    let Steps { before, after } = job.steps_of(arm, &cell.load);
    for step in before.iter().chain([&Step::Load]).chain(&after) {
        let (description, commands) = describe(job, arm, &cell.load, step, Some(seed));
        let _ = writeln!(text, "# {description}");
        for missing in machine::missing(&job.core.file, &job.core.file.arms[arm], step, machine) {
            let _ = writeln!(text, "# ! not here: {}", missing.name);
        }
        for command in commands {
            let _ = writeln!(text, "{command}");
        }
    }
}

/// The shell commands of one run, without descriptions.
pub(crate) fn shell_lines(job: &Job, arm: usize, load: &JobLoad) -> Vec<String> {
    let Steps { before, after } = job.steps_of(arm, load);
    let steps = before.iter().chain([&Step::Load]).chain(&after);
    steps
        .flat_map(|step| describe(job, arm, load, step, None).1)
        .collect()
}

/// The steps of a run, one line each, with all options of the file that apply to them.
pub(crate) fn step_lines(job: &Job, arm: usize, load: &JobLoad) -> Vec<String> {
    let Steps { before, after } = job.steps_of(arm, load);
    let steps = before.iter().chain([&Step::Load]).chain(&after);
    let line = |step| {
        let (description, commands) = describe(job, arm, load, step, None);
        format!("{description}: {}", commands.join("; "))
    };
    steps.map(line).collect()
}

/// A hook's command with its limit and failure rule.
pub(crate) fn whole_hook(hook: &Hook) -> String {
    format!("{}{}", hook_line(hook), rules(hook))
}

/// The description of a step and its shell commands. `seed` is the seed of the pair; `None` if the
/// step is not described for a particular pair.
fn describe(
    job: &Job,
    arm: usize,
    load: &JobLoad,
    step: &Step,
    seed: Option<u64>,
) -> (String, Vec<String>) {
    let file = &job.core.file;
    let own = &file.arms[arm];
    let server = |index: &usize| &own.servers[*index];
    let places = file.wire.map(|_| Places::placeholders());
    match step {
        Step::CheckFree(index) => check_free(server(index), file.wire.is_some()),
        Step::Hook { point, side, hook } => {
            let words = format!("hook {} {}{}", side.name(), point.name(), rules(hook));
            (words, vec![hook_line(hook)])
        }
        Step::Restore | Step::Verify => snapshot(&file.restore.how, *step == Step::Restore),
        Step::DropCaches => (
            "drop the page cache of the kernel".to_owned(),
            vec!["sync && echo 3 > /proc/sys/vm/drop_caches".to_owned()],
        ),
        Step::MakeHosts => of_hosts(file, own, "make the two hosts", Layout::steps),
        Step::RemoveHosts => of_hosts(file, own, "remove the two hosts", Layout::last_steps),
        Step::Start(index) => {
            let server = server(index);
            let mut line = line::with_launch(&server.launch, &server.command, Path::new(TOOL));
            line.network = places.map(|places| places.server);
            (
                format!("start server {:?}", server.name),
                vec![format!("{line} &")],
            )
        }
        Step::AwaitReady(index) => ready(server(index), places.map(|places| places.client)),
        Step::Logical(hook) => {
            let words = format!("restore through the server{}", rules(hook));
            (words, vec![hook_line(hook)])
        }
        Step::Flush => {
            let command = format!("redis-cli -p {} FLUSHALL", port(own.servers.first()));
            ("remove all keys".to_owned(), vec![command])
        }
        Step::Fill { keys, value_bytes } => {
            let words = format!(
                "set the {} keys that GETs will read, {value_bytes} bytes each, so that every GET hits",
                (*keys).max(1)
            );
            let first = if *keys == 0 {
                "key:__rand_int__"
            } else {
                "key:000000000000 ..."
            };
            let command = format!("redis-cli -p {} SET {first}", port(own.servers.first()));
            (words, vec![command])
        }
        Step::Check { side, check } => {
            let mut line = client::check_line(file, own, *check, Path::new(TOOL));
            line.network = places.map(|places| places.client);
            let words = format!("check the tables {} the run", side.name());
            (words, vec![line.to_string()])
        }
        Step::Load => load_step(job, arm, load, seed),
        Step::Stop(index) => stop(server(index)),
        Step::AwaitPortClosed(index) => {
            let server = server(index);
            (
                format!(
                    "wait until server {:?} has closed port {}",
                    server.name,
                    port(Some(server))
                ),
                vec![],
            )
        }
    }
}

fn port(server: Option<&Server>) -> String {
    let port = server.and_then(|server| server.port);
    port.map_or("(none)".to_owned(), |port| port.to_string())
}

fn rules(hook: &Hook) -> String {
    format!(
        " ({} s at most; failure: {}{})",
        hook.limit.as_secs_f64(),
        hook.failure.name(),
        if hook.measures {
            "; records figures"
        } else {
            ""
        }
    )
}

fn hook_line(hook: &Hook) -> String {
    secret::line(hook.command.trim_end())
}

/// A step with commands for the hosts of `arm`.
fn of_hosts(
    file: &Experiment,
    arm: &Arm,
    words: &str,
    commands: fn(&Layout) -> Vec<String>,
) -> (String, Vec<String>) {
    let layout = hosts::layout(file, arm, Path::new(TOOL));
    let commands = layout.as_ref().map_or_else(Vec::new, commands);
    (words.to_owned(), commands)
}

fn check_free(server: &Server, has_own_host: bool) -> (String, Vec<String>) {
    let mut commands = Vec::new();
    if let Some(port) = server.port.filter(|_| !has_own_host) {
        commands.push(format!("ss -ltnp 'sport = :{port}'"));
    }
    commands.extend(
        server
            .data
            .iter()
            .map(|dir| format!("fuser -v {}", quoted(&dir.to_string_lossy()))),
    );
    let what = match (has_own_host, server.data.is_empty()) {
        (true, _) => "the directories",
        (false, true) => "the port",
        (false, false) => "the port or the directories",
    };
    let words = format!(
        "check that no process uses {what} of server {:?}",
        server.name
    );
    (words, commands)
}

fn snapshot(how: &How, restoring: bool) -> (String, Vec<String>) {
    let How::Snapshot {
        parts,
        snapshot,
        reflink,
        linked_files: _,
    } = how
    else {
        return (String::new(), vec![]);
    };
    let from = quoted(&snapshot.to_string_lossy());
    if !restoring {
        let words = format!("compare names, sizes, times and owners with snapshot {from}");
        return (
            words,
            vec![format!("saiga snapshot verify {from} --quick --parts")],
        );
    }
    let (method, flag) = match reflink {
        Reflink::Auto => ("sharing blocks if the file system supports it", ""),
        Reflink::Never => ("copying all differing bytes", " --no-reflink"),
    };
    let dirs: Vec<_> = parts.iter().map(|part| part.to_string_lossy()).collect();
    let words = format!("restore {} from snapshot {from}, {method}", dirs.join(", "));
    (words, vec![format!("saiga snapshot restore {from}{flag}")])
}

fn ready(server: &Server, network: Option<PathBuf>) -> (String, Vec<String>) {
    let (condition, command) = match &server.ready.probe {
        Probe::Port => ("accepts connections".to_owned(), None),
        Probe::Redis => (
            "answers PING".to_owned(),
            Some(format!("redis-cli -p {} PING", port(Some(server)))),
        ),
        Probe::MySql => ("sends the handshake of MySQL".to_owned(), None),
        Probe::Postgres => (
            "accepts log-ins of PostgreSQL".to_owned(),
            Some(pg_isready(&port(Some(server)), network).to_string()),
        ),
        Probe::Command(command) => {
            let words = "is ready according to its command".to_owned();
            (words, Some(secret::line(command)))
        }
    };
    let limit = length(server.ready.limit);
    let words = format!(
        "wait at most {limit} until server {:?} {condition}",
        server.name
    );
    (words, command.into_iter().collect())
}

fn pg_isready(port: &str, network: Option<PathBuf>) -> CommandLine {
    let address = hosts::address(network.as_deref());
    CommandLine {
        network,
        ..CommandLine::new("pg_isready", ["-h", address, "-p", port])
    }
}

fn stop(server: &Server) -> (String, Vec<String>) {
    let limit = length(server.stop.limit);
    let words = format!(
        "stop server {:?} and wait at most {limit} for its end",
        server.name
    );
    let command = match &server.stop.how {
        StopHow::Signal(signal) => {
            format!("kill -{} (PID of the server)", Stop::signal_name(*signal))
        }
        StopHow::Command(command) => secret::line(command),
    };
    (words, vec![command])
}

fn load_step(job: &Job, arm: usize, load: &JobLoad, seed: Option<u64>) -> (String, Vec<String>) {
    let file = &job.core.file;
    let own = &file.arms[arm];
    // redis-benchmark's `--seed` depends on its version, and a dry run starts no program.
    let seed = seed.filter(|_| !matches!(file.workload.kind, Kind::Redis { .. }));
    let mut line = client::line(file, own, load.test.as_deref(), Path::new(TOOL), seed, None);
    line.network = file.wire.map(|_| Places::placeholders().client);
    let mut words = match file.workload.limit() {
        Some(limit) => format!(
            "run the load for at most {}; record CPU time",
            length(limit)
        ),
        None => "run the load; record CPU time".to_owned(),
    };
    if !own.client.cpus.is_empty() {
        let _ = write!(words, " (client on CPUs {})", ranges(&own.client.cpus));
    }
    if !file.metrics.devices.is_empty() {
        let _ = write!(words, ", devices {}", file.metrics.devices.join(", "));
    }
    if !file.metrics.waf.is_empty() {
        let drives: Vec<String> = file
            .metrics
            .waf
            .iter()
            .map(|one| one.display().to_string())
            .collect();
        let _ = write!(words, ", write amplification of {}", drives.join(", "));
    }
    if !file.metrics.fill.is_empty() {
        let dirs: Vec<String> = file
            .metrics
            .fill
            .iter()
            .map(|dir| dir.display().to_string())
            .collect();
        let _ = write!(
            words,
            ", fill level of {} before and after",
            dirs.join(", ")
        );
    }
    (words, vec![line.to_string()])
}
