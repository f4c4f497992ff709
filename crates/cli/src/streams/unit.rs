//! `saiga streams unit`: a systemd service for a labeller that does not run as root.
//!
//! systemd allocates its user (DynamicUser). Its capabilities are CAP_SYS_ADMIN (fanotify),
//! CAP_DAC_READ_SEARCH (files of other users, directories by handle) and CAP_FOWNER (hints on files
//! of other users, from Linux 7.2 on). It sees all file systems read-only, which does not prevent
//! hints.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use saiga_service::{Manager, OwnUnit, Root, UnitName, absolute, command_word, word};
use saiga_streams::lock::LOCK_DIR;
use saiga_streams::rules;

use super::run::ModeName;
use crate::exit;

/// Options of `saiga streams unit`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --install, prints the unit and installs nothing. The service is ready once \
all files are labelled, and the services in --before start after that.\n\
Exit status: 1 when there is nothing to --remove.")]
pub(super) struct Args {
    /// Data directories
    #[arg(value_name = "DIR", required_unless_present = "remove")]
    dirs: Vec<PathBuf>,
    /// Built-in sets or files of rules (see `saiga streams rules`); the first matching rule decides
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "remove", num_args = 1..)]
    rules: Vec<String>,
    /// When a file is labelled
    #[arg(long, value_enum, default_value = "notify")]
    mode: ModeName,
    /// Services that write to these directories; systemd starts them once all files are labelled
    #[arg(long, value_name = "UNIT")]
    before: Vec<UnitName>,
    /// Write Prometheus metrics to this file
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Name of the unit
    #[arg(long, value_name = "NAME", default_value = "saiga-streams")]
    name: UnitName,
    /// Write the unit to /etc/systemd/system and reload systemd, but do not start the service
    #[arg(long)]
    install: bool,
    /// Remove the unit that --install wrote
    #[arg(long, conflicts_with_all = ["install", "dirs", "rules", "before", "metrics"])]
    remove: bool,
    /// Change the system below this directory, whose systemd is not running
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = Root::new(&args.root)?;
    let unit = OwnUnit {
        root: &root,
        name: &args.name,
        mark: MARK,
    };
    if args.remove {
        return remove(&unit);
    }
    let text = text(args)?;
    if args.install {
        return install(&unit, args.metrics.as_deref(), &text);
    }
    crate::print::print_text(&format!("# /etc/systemd/system/{}\n{text}", args.name))?;
    Ok(ExitCode::SUCCESS)
}

fn install(unit: &OwnUnit<'_>, metrics: Option<&Path>, text: &str) -> anyhow::Result<ExitCode> {
    // systemd ignores a directory in ReadWritePaths= that does not exist when the service starts.
    if let Some(folder) = metrics.and_then(Path::parent)
        && !unit.root.file(folder).is_dir()
    {
        bail!(
            "{} is not a directory; create it, --metrics needs it",
            folder.display()
        );
    }
    let file = unit.install(text)?;
    let next = format!(
        "to start the service now and at each boot: systemctl enable --now {}",
        unit.name
    );
    let next = reload(unit.root, next)?;
    crate::print::print_text(&format!("wrote {}\n{next}\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn remove(unit: &OwnUnit<'_>) -> anyhow::Result<ExitCode> {
    let removed = unit.remove()?;
    if removed.is_empty() {
        exit::say(&format!("{} does not exist", unit.file().display()));
        return Ok(ExitCode::from(exit::NO));
    }
    let mut text = String::new();
    for file in removed {
        text.push_str(&format!("removed {}\n", file.display()));
    }
    let next = format!(
        "if the service is running, stop it with: systemctl stop {}",
        unit.name
    );
    crate::print::print_text(&(text + &reload(unit.root, next)? + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Reloads a running systemd, and returns the next step for the user.
fn reload(root: &Root, next: String) -> anyhow::Result<String> {
    let Some(manager) = Manager::of(root) else {
        return Ok("systemd is not running here; it will read the unit when it starts".to_owned());
    };
    manager.reload()?;
    Ok(next)
}

/// The first line of a unit that this verb made.
const MARK: &str = "# Made by `saiga streams unit`.";

fn text(args: &Args) -> anyhow::Result<String> {
    let name = &args.name;
    let dirs = words(&args.dirs)?;
    if name.as_str().contains([':', '\\']) {
        bail!(
            "{:?} cannot also be the name of a directory for locks; give a --name without `:` and \
             backslashes",
            name.as_str()
        );
    }
    let runtime = format!("saiga/{}", name.stem());
    let before: String = args
        .before
        .iter()
        .map(|unit| format!("Before={unit}\n"))
        .collect();
    let writable = writable(args.metrics.as_deref())?;
    let capabilities = if args.metrics.is_some() {
        // The directory for metrics belongs to another user.
        "CAP_SYS_ADMIN CAP_DAC_READ_SEARCH CAP_FOWNER CAP_DAC_OVERRIDE"
    } else {
        "CAP_SYS_ADMIN CAP_DAC_READ_SEARCH CAP_FOWNER"
    };
    let command = command(args, &runtime)?;
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
RuntimeDirectory={runtime}
FileDescriptorStoreMax=1
AmbientCapabilities={capabilities}
CapabilityBoundingSet={capabilities}
{writable}{SANDBOX}
[Install]
WantedBy=multi-user.target
"
    ))
}

/// Deliberately absent: PrivateUsers, because fanotify ignores capabilities in a user namespace,
/// and ProcSubset=pid, which hides the limits in /proc/sys. Later mounts of the host reach the
/// service.
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

/// The directories, quoted for a unit file.
fn words(dirs: &[PathBuf]) -> anyhow::Result<String> {
    let mut words = Vec::new();
    for dir in dirs {
        check_shared(dir, "the data")?;
        words.push(word(dir)?);
    }
    Ok(words.join(" "))
}

/// Checks that `path` leads to the same file inside and outside of the service.
fn check_shared(path: &Path, content: &str) -> anyhow::Result<()> {
    absolute(path)?;
    if ["/tmp", "/var/tmp"].iter().any(|tmp| path.starts_with(tmp)) {
        bail!(
            "{} is below a directory for temporary files, and each service has a private one; put \
             {content} elsewhere",
            path.display()
        );
    }
    Ok(())
}

fn command(args: &Args, runtime: &str) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let mut words = vec![word(&program)?, "streams run".to_owned()];
    for dir in &args.dirs {
        words.push(command_word(dir)?);
    }
    words.push("--rules".to_owned());
    for name in &args.rules {
        // Reports errors now rather than when the service starts.
        rules::load(name)?;
        if rules::builtin::find(name).is_none() {
            check_shared(Path::new(name), "the rules")?;
        }
        words.push(command_word(Path::new(name))?);
    }
    if args.mode == ModeName::Gate {
        words.push("--mode gate".to_owned());
    }
    let locks = Path::new(LOCK_DIR).with_file_name(runtime);
    words.push(format!("--lock-dir {}", command_word(&locks)?));
    if let Some(metrics) = &args.metrics {
        words.push(format!("--metrics {}", command_word(metrics)?));
    }
    Ok(words.join(" "))
}

/// The setting that makes the directory for metrics writable.
fn writable(metrics: Option<&Path>) -> anyhow::Result<String> {
    let Some(metrics) = metrics else {
        return Ok(String::new());
    };
    check_shared(metrics, "the metrics")?;
    if ["/run", "/var/run"]
        .iter()
        .any(|run| metrics.starts_with(run))
    {
        bail!(
            "{} is in a directory that is emptied at each boot; put the metrics elsewhere",
            metrics.display()
        );
    }
    let folder = metrics.parent().context("--metrics names no file")?;
    // With the hyphen the service starts also without the directory: files are labelled, and the
    // log says why metrics are not written.
    let mut optional = OsString::from("-");
    optional.push(folder);
    Ok(format!("ReadWritePaths={}\n", word(optional.as_ref())?))
}
