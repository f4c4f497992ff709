//! `saiga enable UNIT` and `saiga disable UNIT`: a systemd drop-in that starts a service under Saiga.
//!
//! Before it is written, everything is looked for that would keep the library out of the service
//! or its connections on kernel TCP. Deliberately absent: edits of the unit, and restarts.

mod dropin;
mod obstacle;
mod privileges;
mod reach;
mod unit;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::{exit, library};
use unit::Unit;

pub(crate) use dropin::enabled;

/// Options of `saiga enable`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writes /etc/systemd/system/UNIT.d/saiga.conf and edits nothing else; restart the service \
afterwards.\nExit status: 1, and nothing is written, when the service could not be accelerated; 2 when there is \
no such unit or this user may not."
)]
pub(crate) struct Enable {
    #[command(flatten)]
    which: Which,
}

/// Options of `saiga disable`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Removes what `saiga enable` wrote; restart the service afterwards.\nExit status: 1 when it was \
not enabled."
)]
pub(crate) struct Disable {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// The service, such as mariadb.service or redis-server
    #[arg(value_name = "UNIT")]
    unit: String,
    /// Work on the system below this folder, whose systemd is not running
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// Writes the drop-in, unless something stands in the way.
pub(crate) fn enable(args: Enable) -> anyhow::Result<ExitCode> {
    let Which { unit, root } = args.which;
    let name = full_name(&unit)?;
    let unit = Unit::read(&root, &name)?;
    let library = library::find()?;
    let obstacles = obstacle::all(&root, &unit, &library)?;
    if !obstacles.is_empty() {
        exit::say(&format!("{name} was not enabled:"));
        for obstacle in obstacles {
            exit::say(&format!("  {obstacle}"));
        }
        return Ok(ExitCode::from(exit::NO));
    }
    let path = dropin::path(&root, &name);
    let others = unit.environment("LD_PRELOAD");
    let preload = library::ld_preload(&library, others.as_deref().map(AsRef::as_ref));
    let text = dropin::text(&preload.to_string_lossy());
    if std::fs::read_to_string(&path).is_ok_and(|now| now == text) {
        return tell(&format!("{name} is enabled already ({})\n", path.display()));
    }
    dropin::write(&path, &text)?;
    let next = next_step(&root, &name, "start it under Saiga")?;
    tell(&format!("wrote {}\n{next}\n", path.display()))
}

/// Removes the drop-in.
pub(crate) fn disable(args: Disable) -> anyhow::Result<ExitCode> {
    let Which { unit, root } = args.which;
    let name = full_name(&unit)?;
    let path = dropin::path(&root, &name);
    if !dropin::remove(&path)? {
        exit::say(&format!(
            "{name} is not enabled: there is no {}",
            path.display()
        ));
        return Ok(ExitCode::from(exit::NO));
    }
    let next = next_step(&root, &name, "start it without Saiga")?;
    tell(&format!("removed {}\n{next}\n", path.display()))
}

fn tell(text: &str) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// As systemctl: a name without a type is a service's. Nothing that leads out of a folder.
fn full_name(name: &str) -> anyhow::Result<String> {
    let may = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(may) {
        bail!("{name:?} is not the name of a unit");
    }
    if name.ends_with(".service") {
        return Ok(name.to_owned());
    }
    let types = [
        ".socket", ".target", ".timer", ".mount", ".path", ".slice", ".scope", ".swap",
    ];
    if types.iter().any(|kind| name.ends_with(kind)) {
        bail!("{name} is not a service");
    }
    Ok(format!("{name}.service"))
}

/// Makes a running systemd read the change; says what is left to the user.
fn next_step(root: &Path, name: &str, to: &str) -> anyhow::Result<String> {
    if root != Path::new("/") || !Path::new("/run/systemd/system").is_dir() {
        return Ok(format!(
            "systemd is not running here; when it does, {name} will {to}"
        ));
    }
    let reload = Command::new("systemctl").arg("daemon-reload").output();
    let reload =
        reload.context("cannot start systemctl; run `systemctl daemon-reload` yourself")?;
    if !reload.status.success() {
        let said = String::from_utf8_lossy(&reload.stderr);
        bail!(
            "systemctl daemon-reload failed: {}; run it yourself",
            said.trim()
        );
    }
    Ok(format!("to {to}: systemctl restart {name}"))
}
