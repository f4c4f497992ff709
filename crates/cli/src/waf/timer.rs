//! `saiga waf timer`: prints a systemd service that takes one sample and a timer that starts it.
//!
//! The alternative to `saiga waf watch`, a process that runs all the time.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use saiga_service::{absolute, command_word, word};

/// Options of `saiga waf timer`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Prints two units, each after the path of its file. Installs nothing.")]
pub(super) struct Args {
    /// Drives: /dev/nvme0, or names that are stable across reboots (/dev/disk/by-id/nvme-...)
    #[arg(value_name = "DEVICE", required = true, value_parser = super::drive_path)]
    drives: Vec<PathBuf>,
    /// Interval between samples: 30s, 10min, 1h
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = super::watch::interval)]
    every: Duration,
    /// Keep samples in this file [default: /var/lib/saiga/waf.db]
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let file = args.file.as_deref().unwrap_or(super::FILE_OF_ROOT.as_ref());
    let folder = absolute(file)?.parent().context("--file names no file")?;
    let mut words = vec![
        command_word(&program)?,
        "waf watch --once --file".to_owned(),
        command_word(file)?,
    ];
    for drive in &args.drives {
        words.push(command_word(absolute(drive)?)?);
    }
    // systemd creates the directory of the default file only.
    let state = if args.file.is_none() {
        "StateDirectory=saiga\nStateDirectoryMode=0700\nCapabilityBoundingSet=CAP_SYS_ADMIN"
            .to_owned()
    } else {
        // The directory may belong to another user.
        format!(
            "ReadWritePaths={}\nCapabilityBoundingSet=CAP_SYS_ADMIN CAP_DAC_OVERRIDE",
            word(folder)?
        )
    };
    let text = format!(
        "# /etc/systemd/system/saiga-waf.service
[Unit]
Description=Sample of NVMe write counters (saiga waf)

[Service]
Type=oneshot
ExecStart={}
{state}
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateNetwork=yes

# /etc/systemd/system/saiga-waf.timer
[Unit]
Description=Samples of NVMe write counters at intervals (saiga waf)

[Timer]
OnBootSec=1min
OnActiveSec=0
OnUnitActiveSec={}s
AccuracySec=1s

[Install]
WantedBy=timers.target

# systemctl daemon-reload && systemctl enable --now saiga-waf.timer
",
        words.join(" "),
        args.every.as_secs()
    );
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
