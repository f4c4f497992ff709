//! `saiga diagnose`: the bottleneck that holds now, with its evidence.
//!
//! The crate `saiga-diagnose` has the rules. This module collects their sources: files, and this
//! host while a load runs.

mod live;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use saiga_diagnose::observation::Observation;
use saiga_diagnose::source::{capture, load_csv};
use saiga_diagnose::{page, verdict};
use saiga_document::{html, text};
use saiga_process::sockets::listener_at;
use saiga_tpcc::counters::DatabaseStatus;

use crate::outfile;
use crate::tune::configure::ServerName;
use crate::tune::running::{self, At};

/// Length of an observation without `--for`.
const USUAL: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without FILE and --hop, this host is observed for --for while its load runs, with the server of \
--pid or --port if one is given. A FILE is a packet capture (pcap, pcapng) of MySQL, PostgreSQL, \
Redis or HTTP, in which --port chooses the server; or the load at one place as CSV: the columns \
time, N (clients), X (requests per second) and R_ms (response time), in any order. Several places \
are hops: --hop client=a.csv --hop client/database=b.csv.\n\
One bottleneck hides the others: diagnose again after each change.\n\
Exit status: 1 when a bottleneck was found, 2 when the sources cannot be read.")]
pub(crate) struct Args {
    /// A packet capture, or the load as CSV
    #[arg(value_name = "FILE", conflicts_with = "hop")]
    file: Option<PathBuf>,
    /// The load at a hop, outermost first; PARENT/NAME is a hop that PARENT calls
    #[arg(long, value_name = "NAME=FILE", value_parser = hop)]
    hop: Vec<HopFile>,
    /// The server to observe
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// The server that listens on this port of this host
    #[arg(long, value_name = "PORT", conflicts_with = "pid")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Also read the counters of this database system on the server (password: MYSQL_PWD or
    /// PGPASSWORD)
    #[arg(long, value_enum, value_name = "SYSTEM")]
    engine: Option<ServerName>,
    /// User to log in as (default: root or postgres)
    #[arg(long, value_name = "NAME", requires = "engine")]
    user: Option<String>,
    /// Unix socket to log in through
    #[arg(long, value_name = "PATH", requires = "engine")]
    socket: Option<String>,
    /// Length of the observation of this host (default: 30s)
    #[arg(long = "for", value_name = "TIME", value_parser = crate::length::length)]
    length: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also write the verdict with charts to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// A hop of the command line.
#[derive(Debug, Clone)]
struct HopFile {
    parent: Option<String>,
    name: String,
    path: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(html) = &args.html {
        outfile::check(html)?;
    }
    let mut observation = Observation::default();
    match &args.file {
        Some(path) => add_file(path, args, &mut observation)?,
        None => args
            .hop
            .iter()
            .try_for_each(|file| add(file, &mut observation))?,
    }
    if observation.load.hops.is_empty() || is_live(args) {
        let pid = server(args)?;
        let status = status(args)?;
        live::observe(pid, status, args.length.unwrap_or(USUAL), &mut observation)?;
    }
    let verdict = verdict::judge(&observation);
    let title = title(args, &observation);
    let origin = format!("Written by `saiga diagnose`, {}.", env!("SAIGA_VERSION"));
    let page = page::page(&observation, &verdict, &title, &origin);
    let output = if args.json {
        serde_json::to_string_pretty(&verdict)? + "\n"
    } else {
        text::render(&page, text::Style::plain())
    };
    std::io::stdout().write_all(output.as_bytes())?;
    if let Some(path) = &args.html {
        outfile::write(path, &html::render(&page))?;
    }
    let is_found = !verdict.findings.is_empty();
    Ok(ExitCode::from(u8::from(is_found)))
}

/// Whether an option asks for an observation of this host. With a file, `--port` is a port in it.
fn is_live(args: &Args) -> bool {
    let is_port = args.port.is_some() && args.file.is_none();
    is_port || args.pid.is_some() || args.engine.is_some() || args.length.is_some()
}

/// Adds a packet capture or a load.
fn add_file(path: &Path, args: &Args, observation: &mut Observation) -> anyhow::Result<()> {
    let name = path.display();
    let mut content = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let mut start = Vec::new();
    (&mut content)
        .take(4)
        .read_to_end(&mut start)
        .with_context(|| format!("cannot read {name}"))?;
    // Commands such as tcpdump write captures to pipes, so the file is not read again.
    let whole = start.as_slice().chain(content);
    if capture::is_start(&start) {
        return Ok(capture::add(path, whole, args.port, observation)?);
    }
    let (hop, mut gaps) = load_csv::read("load", path, whole)?;
    observation.load.hops.push(hop);
    observation.gaps.append(&mut gaps);
    Ok(())
}

/// The counters of the database, if the user asks for them.
fn status(args: &Args) -> anyhow::Result<Option<DatabaseStatus>> {
    let Some(engine) = args.engine else {
        return Ok(None);
    };
    if engine == ServerName::Redis {
        bail!("--engine redis: no rule reads counters of Redis; leave --engine out");
    }
    let at = At::here(args.port, args.user.clone(), args.socket.clone());
    let sessions = running::sessions(engine.engine(), &at)?;
    DatabaseStatus::open(sessions, 1)
        .map_err(|error| anyhow::anyhow!("cannot read the counters of the database: {error}"))
}

/// Reads a hop and adds it to the observation.
fn add(file: &HopFile, observation: &mut Observation) -> anyhow::Result<()> {
    let hops = &observation.load.hops;
    let index = |name: &str| hops.iter().position(|hop| hop.name == name);
    if index(&file.name).is_some() {
        bail!("--hop: {} is given twice", file.name);
    }
    let parent = match &file.parent {
        Some(parent) => Some(index(parent).with_context(|| {
            format!(
                "--hop {parent}/{}: give --hop {parent}=FILE before it",
                file.name
            )
        })?),
        None if hops.is_empty() => None,
        None => bail!(
            "--hop {}: name the hop that calls it, as in --hop {}/{}=FILE",
            file.name,
            hops[0].name,
            file.name
        ),
    };
    let content =
        File::open(&file.path).with_context(|| format!("cannot read {}", file.path.display()))?;
    let (mut hop, mut gaps) = load_csv::read(&file.name, &file.path, content)?;
    hop.parent = parent;
    observation.load.hops.push(hop);
    observation.gaps.append(&mut gaps);
    Ok(())
}

/// The process of `--pid` or `--port`.
fn server(args: &Args) -> anyhow::Result<Option<u32>> {
    match args.port {
        None => Ok(args.pid),
        Some(port) => listener_at(port).map(Some).with_context(|| {
            format!(
                "no process that listens on port {port} is visible; run this as root, or give --pid"
            )
        }),
    }
}

/// What was observed, in a few words.
fn title(args: &Args, observation: &Observation) -> String {
    match (&observation.process, &args.file) {
        (Some(process), _) => format!("Diagnosis of {} ({})", process.name, process.pid),
        (None, Some(file)) => format!("Diagnosis of {}", file.display()),
        (None, None) if !args.hop.is_empty() => {
            let names = args.hop.iter().map(|hop| hop.name.as_str());
            format!("Diagnosis of {}", names.collect::<Vec<_>>().join(", "))
        }
        (None, None) => "Diagnosis of this host".to_owned(),
    }
}

/// Parses `NAME=FILE` or `PARENT/NAME=FILE`.
fn hop(text: &str) -> Result<HopFile, String> {
    let (name, path) = text.split_once('=').ok_or("write NAME=FILE")?;
    let (parent, name) = match name.rsplit_once('/') {
        Some((parent, name)) => (Some(parent.to_owned()), name),
        None => (None, name),
    };
    if name.is_empty() || path.is_empty() || parent.as_deref() == Some("") {
        return Err("write NAME=FILE or PARENT/NAME=FILE".to_owned());
    }
    Ok(HopFile {
        parent,
        name: name.to_owned(),
        path: Path::new(path).to_owned(),
    })
}
