//! `saiga gateway check`: whether `gateway.toml` can be served, and what the file of Gazelle would
//! be as `gateway.toml`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use saiga_gateway::confine::Confinement;
use saiga_gateway::lstack;
use saiga_gateway::service::{check_plugin, supported};
use saiga_gateway::settings::{FILE, Settings};

use crate::exit;
use crate::print::print_text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The file is checked by itself; what the machine must have for it is listed.\n\
With --lstack-conf, the output is a gateway.toml. What was not translated, and what is said about \
the file, are comments in it.\n\
Exit status: 1 when `up` would refuse the file, or cannot start here because its user does not \
exist, or rights or DPDK are missing; 2 when the file has mistakes."
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
    let (text, is_refused) = match &args.lstack_conf {
        Some(path) => translated(path, &args.port)?,
        None => checked(&Settings::read(&args.config)?, &args.config),
    };
    print_text(&text)?;
    Ok(if is_refused {
        ExitCode::from(exit::NO)
    } else {
        ExitCode::SUCCESS
    })
}

/// What is said about settings, and whether `up` would refuse them.
fn checked(settings: &Settings, path: &Path) -> (String, bool) {
    let mut text = format!("{} is valid. The machine must have:\n", path.display());
    for need in settings.needs() {
        let _ = writeln!(text, "  {}: {}", need.key, need.requirement);
    }
    let unserved = supported(settings).err();
    let unserved = unserved.map(|error| format!("`up` refuses the file: {error}\n"));
    let obstacles = [
        Confinement::plan(settings).err().map(anyhow::Error::new),
        check_plugin(settings).err().map(anyhow::Error::new),
    ];
    let obstacles = obstacles.into_iter().flatten();
    let obstacles = obstacles.map(|error| format!("`up` cannot start here: {error}\n"));
    let refusals: String = unserved.into_iter().chain(obstacles).collect();
    (text + &refusals, !refusals.is_empty())
}

/// A file of Gazelle as `gateway.toml`, and whether `up` would refuse it.
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
