//! `saiga tune database`: the settings of a running server that should have other values.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use saiga_document::number;
use saiga_process::root::Root;
use saiga_tune::database::diff::{Diff, diff};
use saiga_tune::database::file;
use saiga_tune::database::procedures::{NAMES, like};
use saiga_tune::database::resources::{self, DiskChoice, Use, resources};
use saiga_tune::database::{DiskKind, Engine, Resources, Wanted, wanted};
use serde::Serialize;

use super::machine;
use super::running;
use crate::exit;
use crate::print::{print_json, print_text};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads the values of the running server over its protocol, and changes nothing. The password comes \
from MYSQL_PWD or PGPASSWORD; Redis is read on this host, without one. Values that reduce safety \
are shown, but are part of the file only if --accept names them.\n\
Exit status: 0 when something should be changed, 1 when nothing should.")]
pub(super) struct Args {
    /// The server
    #[arg(value_enum)]
    engine: ServerName,
    #[command(flatten)]
    at: running::At,
    /// Take the values of a procedure instead of those that follow from the hardware:
    /// procedure-001 (MySQL), procedure-002 (Redis), procedure-004 and gs_perfconfig (openGauss)
    #[arg(long, value_name = "NAME")]
    like: Option<String>,
    /// Number of connections to expect; may lower the limits of the server (default: its own
    /// limit)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections: Option<u32>,
    /// Number of servers that share the host
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    instances: u32,
    /// Other programs use the memory of the host, too
    #[arg(long)]
    shared: bool,
    /// Accept that the value of this setting reduces safety
    #[arg(long, value_name = "SETTING")]
    accept: Vec<String>,
    /// Write the changes as a file for the server's configuration directory
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerName {
    Mysql,
    Mariadb,
    Postgres,
    Opengauss,
    Redis,
}

impl ServerName {
    pub(crate) fn engine(self) -> Engine {
        match self {
            Self::Mysql | Self::Mariadb => Engine::MySql,
            Self::Postgres => Engine::Postgres,
            Self::Opengauss => Engine::OpenGauss,
            Self::Redis => Engine::Redis,
        }
    }
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    resources: Resources,
    /// The disk that the values assume.
    disk: &'a DiskChoice,
    #[serde(flatten)]
    diff: &'a Diff,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let engine = args.engine.engine();
    let named = args.like.as_ref();
    let procedure = named.map(|name| procedure(name, engine)).transpose()?;
    let machine = machine(&Root::host())?;
    let server = running::read(engine, &args.at)?;
    let directory = resources::data_directory(engine, &server.settings);
    let directory = directory.filter(|_| args.at.is_this_host());
    let disk = resources::disk(&machine.disks, directory.and_then(real).as_deref());
    let usage = Use {
        connections: args.connections,
        instances: args.instances,
        is_shared: args.shared,
    };
    let resources = resources(&machine, engine, &server.settings, &usage, disk.kind);
    let wanted = procedure.unwrap_or_else(|| wanted(engine, &resources));
    let memory = resources.memory_bytes;
    let diff = diff(engine, &server.settings, &wanted, &args.accept, memory);
    if args.json {
        let disk = &disk;
        let diff = &diff;
        print_json(&Report {
            resources,
            disk,
            diff,
        })?;
    } else {
        let mut shown = format!("{}\n", server.version);
        shown += &text_of(&resources, &disk);
        shown += &text(&diff, memory);
        print_text(&shown)?;
    }
    if let Some(out) = &args.out {
        let file = file::text(engine, &diff);
        saiga_process::replace::create(out, file.as_bytes(), 0o644)
            .map_err(|error| anyhow::anyhow!("cannot create {}: {error}", out.display()))?;
        exit::say(&format!("wrote {}", out.display()));
    }
    Ok(if diff.changes.is_empty() {
        ExitCode::from(exit::NO)
    } else {
        ExitCode::SUCCESS
    })
}

/// The path of a directory without symbolic links; `None` if this host does not have it, as when
/// the server runs in a container. A directory that this user may not enter is taken as it is.
fn real(directory: &Path) -> Option<PathBuf> {
    match fs::canonicalize(directory) {
        Ok(real) => Some(real),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(directory.to_owned()),
        Err(_) => None,
    }
}

fn procedure(name: &str, engine: Engine) -> anyhow::Result<Vec<Wanted>> {
    let of = NAMES.iter().find(|(known, _)| *known == name);
    let names = || NAMES.map(|(name, _)| name).join(", ");
    match (like(name), of) {
        (Some(wanted), Some((_, of))) if *of == engine => Ok(wanted),
        (Some(_), _) => anyhow::bail!("{name} has no values for this kind of server"),
        (None, _) => anyhow::bail!("there is no procedure {name}; there are {}", names()),
    }
}

/// The resources that the values assume.
fn text_of(resources: &Resources, disk: &DiskChoice) -> String {
    let kind = match disk.kind {
        DiskKind::Rotational => "rotational",
        DiskKind::Ssd => "SSD",
        DiskKind::Nvme => "NVMe",
    };
    let reason = match &disk.name {
        Some(name) => format!("{name}, under the data directory"),
        None => "the slowest of this host: the disk of the data directory is not known".to_owned(),
    };
    let memory = number::bytes(resources.memory_bytes);
    let cores = number::counted(resources.cores as u64, "core");
    format!("  for {memory}, {cores}, disk: {kind} ({reason})\n")
}

fn text(diff: &Diff, memory: u64) -> String {
    let mut text = String::new();
    for change in &diff.changes {
        let (running, wanted) = (&change.running, &change.wanted);
        let unit = running.unit.as_deref().unwrap_or_default();
        text += &format!(
            "  {}: {}{unit} -> {}",
            wanted.name, running.value, wanted.value
        );
        if let Some(from) = &running.from {
            text += &format!(" (now from {from})");
        }
        text += &format!("\n      {}", wanted.why);
        if running.needs_restart {
            text += "; needs a restart of the server";
        }
        if let Some(trades) = &wanted.trades {
            text += &format!("\n      reduces safety: {trades}");
        }
        text += "\n";
    }
    for change in &diff.higher {
        let (name, value) = (&change.wanted.name, &change.running.value);
        let unit = change.running.unit.as_deref().unwrap_or_default();
        let least = &change.wanted.value;
        text += &format!("  stays: {name} = {value}{unit}, which is higher than {least}\n");
    }
    for wanted in &diff.too_large {
        let (name, value) = (&wanted.name, &wanted.value);
        let memory = number::bytes(memory);
        text += &format!("  too large: {name} = {value}; the instance has {memory} of memory\n");
    }
    for wanted in &diff.traded {
        let trades = wanted.trades.as_deref().unwrap_or_default();
        let (name, value) = (&wanted.name, &wanted.value);
        text += &format!("  not {name} = {value}: {trades}; --accept {name} takes it\n");
    }
    for (wanted, why) in &diff.refused {
        text += &format!("  refused: {} = {}: {why}\n", wanted.name, wanted.value);
    }
    if !diff.unknown.is_empty() {
        let unknown = diff.unknown.join(", ");
        text += &format!("  not known to this server: {unknown}\n");
    }
    let same = diff.same.len() as u64;
    text += &format!("{} as wanted already\n", number::counted(same, "setting"));
    text
}
