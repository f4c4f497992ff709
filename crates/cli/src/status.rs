//! `saiga status [PID]`: the accelerated processes and sockets, and why others use kernel TCP.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, ensure};
use saiga_service::{NameError, Root, Service, UnitName};
use saiga_status::reader::{self, OpenError, Page};
use serde_json::{Value, json};

use crate::exit;
use crate::process::{Failure, Process, TcpSocket};
use crate::service;
use saiga_document::number;
use saiga_document::table::Table;

/// Options of `saiga status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without an argument, lists the accelerated processes of this user (for root, of all users), \
and the services that `saiga enable` has set up.\n\
Exit status: 1 when the process is not accelerated or the service does not run.")]
pub(crate) struct Args {
    /// Show the sockets of this process, or of the main process of this service
    #[arg(value_name = "PID|UNIT")]
    process: Option<Target>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Look for enabled services of the system below this directory
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// A process, by its PID or by the service whose main process it is.
#[derive(Debug, Clone)]
enum Target {
    Pid(u32),
    Unit(UnitName),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word.parse() {
            Ok(0) => Err("a PID is greater than zero".to_owned()),
            Ok(pid) => Ok(Self::Pid(pid)),
            Err(_) => word
                .parse()
                .map(Self::Unit)
                .map_err(|error: NameError| error.to_string()),
        }
    }
}

/// Prints the list of processes, or the details of one.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let root = Root::new(&args.root)?;
    let (text, code) = match args.process {
        None => (list(args.json, &root)?, ExitCode::SUCCESS),
        Some(Target::Pid(pid)) => one(pid, args.json)?,
        Some(Target::Unit(name)) => {
            of_service(&Service::new(root.clone(), &name), &root, args.json)?
        }
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(code)
}

fn list(json: bool, root: &Root) -> anyhow::Result<String> {
    let pages = reader::accelerated().context("cannot list processes; is /proc mounted?")?;
    let processes = Process::read_all(&pages);
    if json {
        return Ok(serde_json::to_string_pretty(&processes)? + "\n");
    }
    if processes.is_empty() {
        let none = "no accelerated process is running; start one with `saiga run -- CMD`\n";
        return Ok(none.to_owned() + &services(root));
    }
    let header = [
        "pid",
        "program",
        "connections",
        "upgraded",
        "by tcp",
        "by channel",
        "note",
    ];
    let mut table = Table::new(header);
    for process in &processes {
        let by_tcp = |socket: &TcpSocket| socket.tcp_rx.saturating_add(socket.tcp_tx);
        let by_channel = |socket: &TcpSocket| socket.channel_rx.saturating_add(socket.channel_tx);
        table.row([
            process.pid.to_string(),
            process.program.clone(),
            process.connections().to_string(),
            process.upgraded().to_string(),
            number::bytes(
                process
                    .sockets
                    .iter()
                    .map(by_tcp)
                    .fold(0, u64::saturating_add),
            ),
            number::bytes(
                process
                    .sockets
                    .iter()
                    .map(by_channel)
                    .fold(0, u64::saturating_add),
            ),
            process.disabled.clone().unwrap_or_default(),
        ]);
    }
    Ok(table.to_string() + &services(root))
}

/// The services that systemd starts under Saiga; empty if there are none.
fn services(root: &Root) -> String {
    let enabled: Vec<String> = saiga_service::enabled(root)
        .iter()
        .map(ToString::to_string)
        .collect();
    if enabled.is_empty() {
        return String::new();
    }
    format!("\nenabled services: {}\n", enabled.join(", "))
}

/// The main process of a service.
fn of_service(service: &Service, root: &Root, json: bool) -> anyhow::Result<(String, ExitCode)> {
    let name = service.name();
    ensure!(
        service.exists(),
        "invalid value '{}': it is neither a PID nor an installed service",
        name.stem()
    );
    let (pid, text, why) = match service::main_process(root, name)? {
        Some((pid, None)) => return one(pid, json),
        Some((pid, Some(why))) => {
            let text = service::without_library(name, pid, &why);
            (Some(pid), text, why.to_string())
        }
        None => {
            let why = "it does not run, or systemd does not run here".to_owned();
            (None, format!("{name} has no main process: {why}"), why)
        }
    };
    let answer = json!({ "pid": pid, "accelerated": false, "why": why });
    not_accelerated(&text, answer, json)
}

fn one(pid: u32, json: bool) -> anyhow::Result<(String, ExitCode)> {
    let page = match Page::open(pid) {
        Ok(page) => page,
        Err(OpenError::NotAccelerated { .. }) => {
            let why = why_not_accelerated(pid);
            let text = format!("process {pid} is not accelerated: {why}");
            let answer = json!({ "pid": pid, "accelerated": false, "why": why });
            return not_accelerated(&text, answer, json);
        }
        Err(error) => return Err(error.into()),
    };
    let process = Process::read(&page)?;
    let text = if json {
        let mut answer = serde_json::to_value(&process)?;
        answer["accelerated"] = json!(true);
        serde_json::to_string_pretty(&answer)? + "\n"
    } else {
        describe(&process)
    };
    Ok((text, ExitCode::SUCCESS))
}

fn not_accelerated(text: &str, answer: Value, json: bool) -> anyhow::Result<(String, ExitCode)> {
    let text = if json {
        serde_json::to_string_pretty(&answer)?
    } else {
        text.to_owned()
    };
    Ok((text + "\n", ExitCode::from(exit::NO)))
}

fn why_not_accelerated(pid: u32) -> &'static str {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    if saiga_service::is_loaded(&maps) {
        "the library is loaded, but has not made its status page yet, or could not make it"
    } else {
        "the library is not loaded; start the program with `saiga run`, which prints the reason \
         if that fails"
    }
}

fn describe(process: &Process) -> String {
    let Process {
        pid,
        program,
        upgrades,
        downgrades,
        resets,
        spins,
        sleeps,
        rings,
        wake_cost_us,
        ..
    } = process;
    let mut text = format!(
        "{program} ({pid}): {} of {} connections upgraded\n",
        process.upgraded(),
        process.connections()
    );
    if let Some(why) = &process.disabled {
        text.push_str(&format!("no connection is accelerated: {why}\n"));
    }
    if !process.sockets.is_empty() {
        text.push('\n');
        text.push_str(&socket_table(&process.sockets));
    }
    text.push_str(&format!(
        "\nsince its start: {upgrades} upgraded, {downgrades} downgraded, {resets} reset\n\
         waits: {spins} ended while spinning, {sleeps} in the kernel; {rings} doorbells rung\n"
    ));
    if let Some(cost) = wake_cost_us {
        text.push_str(&format!(
            "a wake-up from another CPU costs {cost:.0} µs here\n"
        ));
    }
    for (what, failures) in [
        ("not upgraded", &process.not_upgraded),
        ("downgraded", &process.taken_back),
        ("reset", &process.reset_for),
    ] {
        for Failure { meaning, count, .. } in failures {
            text.push_str(&format!("{what} {count} times: {meaning}\n"));
        }
    }
    text
}

fn socket_table(sockets: &[TcpSocket]) -> String {
    let absent = || "-".to_owned();
    let mut table = Table::new([
        "fd",
        "local",
        "remote",
        "state",
        "tcp in",
        "tcp out",
        "channel in",
        "channel out",
        "peer",
        "why",
    ]);
    for socket in sockets {
        table.row([
            socket.fd.to_string(),
            socket.local.clone().unwrap_or_else(absent),
            socket.remote.clone().unwrap_or_else(absent),
            socket.state.to_owned(),
            number::bytes(socket.tcp_rx),
            number::bytes(socket.tcp_tx),
            number::bytes(socket.channel_rx),
            number::bytes(socket.channel_tx),
            socket.peer_pid.map_or_else(absent, |pid| pid.to_string()),
            socket.meaning.to_owned(),
        ]);
    }
    table.to_string()
}
