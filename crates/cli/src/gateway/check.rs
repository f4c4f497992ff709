//! `saiga gateway check`: whether `gateway.toml` can be served on this machine, and what the file
//! of Gazelle would be as `gateway.toml`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use saiga_gateway::lstack;
use saiga_gateway::requirements::{self, Found};
use saiga_gateway::service::supported;
use saiga_gateway::settings::{FILE, Need, Settings};

use crate::exit;
use crate::print::print_text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Lists what the machine must have for the file, and looks for it: `there`, `lacks` \
with what to do, or `untried` for what only `up` can tell. Rules of packet filters that do not \
apply to clients of the gateway are named. Changes nothing.\n\
With --lstack-conf, the output is a gateway.toml. What was not translated, and what is said about \
the file, are comments in it.\n\
Exit status: 1 when the machine lacks something, or `up` would refuse the file; 2 when the file \
has mistakes."
)]
pub(super) struct Args {
    /// Settings of the gateway
    #[arg(long, value_name = "FILE", default_value = FILE)]
    config: PathBuf,
    /// Translates a file of Gazelle
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "config",
        requires = "port"
    )]
    lstack_conf: Option<PathBuf>,
    /// With --lstack-conf: the ports of the servers, which the file does not name
    #[arg(
        long,
        value_name = "PORT,...",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..),
        requires = "lstack_conf"
    )]
    port: Vec<u16>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (text, is_lacking) = match &args.lstack_conf {
        Some(path) => translated(path, &args.port)?,
        None => checked(&Settings::read(&args.config)?, &args.config),
    };
    print_text(&text)?;
    Ok(if is_lacking {
        ExitCode::from(exit::NO)
    } else {
        ExitCode::SUCCESS
    })
}

/// What is said about settings, and whether the machine or this version lacks something.
fn checked(settings: &Settings, path: &Path) -> (String, bool) {
    let mut text = format!("{} is valid. The machine must have:\n", path.display());
    let mut is_lacking = false;
    for need in settings.needs() {
        let found = requirements::look(settings, &need);
        is_lacking |= matches!(found, Found::Lacks(_));
        text += &line(&need, &found);
    }
    if let Err(error) = supported(settings) {
        is_lacking = true;
        let _ = writeln!(text, "`up` refuses the file: {error}");
    }
    for warning in requirements::packet_filters(settings) {
        let _ = writeln!(text, "packet filter: {warning}");
    }
    for warning in requirements::warnings(settings) {
        let _ = writeln!(text, "{warning}");
    }
    (text, is_lacking)
}

fn line(need: &Need, found: &Found) -> String {
    let Need { key, requirement } = need;
    match found {
        Found::There => format!("  there    {key}: {requirement}\n"),
        Found::Untried => format!("  untried  {key}: {requirement}\n"),
        Found::Lacks(reason) => format!("  lacks    {key}: {requirement}: {reason}\n"),
    }
}

/// A file of Gazelle as `gateway.toml`, and whether something is lacking for it.
fn translated(path: &Path, ports: &[u16]) -> anyhow::Result<(String, bool)> {
    let translation = lstack::read(path, ports)?;
    let mut text = format!("# From {}\n", path.display());
    for note in &translation.notes {
        let _ = writeln!(text, "# {note}");
    }
    let _ = write!(text, "\n{}\n", translation.settings.to_toml());
    let (said, is_refused) = checked(&translation.settings, Path::new("This file"));
    for line in said.lines() {
        let _ = writeln!(text, "# {line}");
    }
    Ok((text, is_refused))
}
