//! `saiga streams unit`: a systemd service for a labeller, without root and with the rights that it needs and no others.
//!
//! The user is one that systemd makes up (DynamicUser); what it may is CAP_SYS_ADMIN (fanotify), CAP_DAC_READ_SEARCH
//! (files of others, directories by handle) and CAP_FOWNER (hints on files of others from Linux 7.2 on). Everything is
//! read-only for it, which hints do not mind.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use saiga_streams::lock::LOCK_DIR;
use saiga_streams::rules;

use super::run::ModeName;
use crate::service::{full_name, own};
use crate::unit_file::{command_word, word};

/// Options of `saiga streams unit`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints the unit and installs nothing, unless --install is given. It tells systemd when everything is \
labelled, so that what is started after it (--before) has its labels.\nExit status: 1 when there is nothing to --remove."
)]
pub(super) struct Args {
    /// Data directories
    #[arg(value_name = "DIR", required_unless_present = "remove")]
    dirs: Vec<PathBuf>,
    /// Built-in sets or files (see `saiga streams rules`), the first rule that matches decides
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "remove", num_args = 1..)]
    rules: Vec<String>,
    /// When files are labelled
    #[arg(long, value_enum, default_value = "notify")]
    mode: ModeName,
    /// The services that write there, which start once everything is labelled
    #[arg(long, value_name = "UNIT")]
    before: Vec<String>,
    /// Write Prometheus metrics to this file
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// The unit's name
    #[arg(long, value_name = "NAME", default_value = "saiga-streams")]
    name: String,
    /// Write it into /etc/systemd/system and make systemd read it; start it yourself
    #[arg(long)]
    install: bool,
    /// Remove what --install wrote
    #[arg(long, conflicts_with_all = ["install", "dirs", "rules", "before", "metrics"])]
    remove: bool,
    /// Work on the system below this folder, whose systemd is not running
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// Prints, writes or removes the unit.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let name = full_name(&args.name)?;
    let root = args.root.canonicalize();
    let root = root.with_context(|| format!("cannot use {}", args.root.display()))?;
    if args.remove {
        return own::remove(&root, &name, MARK);
    }
    let text = text(args, &name)?;
    if args.install {
        let folder = args.metrics.as_deref().and_then(Path::parent);
        folder.map_or(Ok(()), |folder| is_there(&root, folder))?;
        return own::install(&root, &name, MARK, &text);
    }
    let text = format!("# /etc/systemd/system/{name}\n{text}");
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the folder for metrics is there: the service may write into it only if it was when the service began.
fn is_there(root: &Path, folder: &Path) -> anyhow::Result<()> {
    let relative = folder.strip_prefix("/").unwrap_or(folder);
    if !root.join(relative).is_dir() {
        bail!(
            "{} is not a folder, and --metrics needs it; make it first",
            folder.display()
        );
    }
    Ok(())
}

/// How a unit of ours is known again.
const MARK: &str = "# Made by `saiga streams unit`.";

fn text(args: &Args, name: &str) -> anyhow::Result<String> {
    let dirs = words(&args.dirs)?;
    if name.contains([':', '\\']) {
        bail!(
            "{name:?} cannot also be the name of a folder for locks; give a --name without `:` and backslashes"
        );
    }
    let place = format!("saiga/{}", name.trim_end_matches(".service"));
    let (before, writes) = (befores(&args.before)?, writes(args.metrics.as_deref())?);
    let capabilities = if args.metrics.is_some() {
        // That folder is another user's.
        "CAP_SYS_ADMIN CAP_DAC_READ_SEARCH CAP_FOWNER CAP_DAC_OVERRIDE"
    } else {
        "CAP_SYS_ADMIN CAP_DAC_READ_SEARCH CAP_FOWNER"
    };
    let command = command(args, &place)?;
    Ok(format!(
        "{MARK}
[Unit]
Description=Write-lifetime hints on database files (saiga streams)
RequiresMountsFor={dirs}
{before}
[Service]
Type=notify
TimeoutStartSec=1h
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-abnormal
DynamicUser=yes
RuntimeDirectory={place}
FileDescriptorStoreMax=1
AmbientCapabilities={capabilities}
CapabilityBoundingSet={capabilities}
{writes}{SANDBOX}
[Install]
WantedBy=multi-user.target
"
    ))
}

/// Deliberately absent: PrivateUsers, in which capabilities are worth nothing to fanotify, and ProcSubset=pid, which hides
/// the limits in /proc/sys. Mounts of the host reach the service.
const SANDBOX: &str = "\
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
PrivateNetwork=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @debug @keyring @module @mount @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
";

fn words(dirs: &[PathBuf]) -> anyhow::Result<String> {
    let mut words = Vec::new();
    for dir in dirs {
        lasting(dir, "the data")?;
        words.push(word(dir)?);
    }
    Ok(words.join(" "))
}

/// Whether a service sees the same under this path.
fn lasting(path: &Path, what: &str) -> anyhow::Result<()> {
    absolute(path)?;
    if ["/tmp", "/var/tmp"].iter().any(|tmp| path.starts_with(tmp)) {
        bail!(
            "{} is in a folder for temporary files, of which a service has its own; put {what} elsewhere",
            path.display()
        );
    }
    Ok(())
}

fn absolute(path: &Path) -> anyhow::Result<()> {
    if !path.is_absolute() {
        bail!(
            "{} is not an absolute path, which a unit needs",
            path.display()
        );
    }
    Ok(())
}

fn command(args: &Args, place: &str) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot find this program's own path")?;
    let mut words = vec![word(&program)?, "streams run".to_owned()];
    for dir in &args.dirs {
        words.push(command_word(dir)?);
    }
    words.push("--rules".to_owned());
    for name in &args.rules {
        // A unit that cannot start is of no use to anybody.
        rules::load(name)?;
        if rules::builtin::find(name).is_none() {
            lasting(Path::new(name), "the rules")?;
        }
        words.push(command_word(Path::new(name))?);
    }
    if args.mode == ModeName::Gate {
        words.push("--mode gate".to_owned());
    }
    let locks = Path::new(LOCK_DIR).with_file_name(place);
    words.push(format!("--lock-dir {}", command_word(&locks)?));
    if let Some(metrics) = &args.metrics {
        words.push(format!("--metrics {}", command_word(metrics)?));
    }
    Ok(words.join(" "))
}

fn befores(units: &[String]) -> anyhow::Result<String> {
    let mut line = String::new();
    for unit in units {
        line.push_str(&format!("Before={}\n", full_name(unit)?));
    }
    Ok(line)
}

fn writes(metrics: Option<&Path>) -> anyhow::Result<String> {
    let Some(metrics) = metrics else {
        return Ok(String::new());
    };
    lasting(metrics, "the metrics")?;
    if ["/run", "/var/run"]
        .iter()
        .any(|run| metrics.starts_with(run))
    {
        bail!(
            "{} is in a folder that each start of the machine empties; put the metrics elsewhere",
            metrics.display()
        );
    }
    let folder = metrics.parent().context("--metrics names no file")?;
    // Where it is missing, files are labelled all the same, and the log says what is wrong.
    let mut lenient = OsString::from("-");
    lenient.push(folder);
    Ok(format!("ReadWritePaths={}\n", word(lenient.as_ref())?))
}
