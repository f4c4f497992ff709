//! `saiga enable UNIT` and `saiga disable UNIT`: systemd starts a service under Saiga.
//!
//! Before anything is written, everything is looked for that would keep the library out of the
//! service or its connections on kernel TCP. Deliberately absent: edits of the unit, and restarts.

mod cluster;
mod dropin;
mod environment;
mod file;
mod obstacle;
pub(crate) mod own;
mod plan;
mod privileges;
mod reach;
mod sandbox;
mod start;
mod systemd;
mod unit;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::exit;
use obstacle::Obstacle;
use plan::Plan;
use reach::Library;
use systemd::{Change, Manager};
use unit::Unit;

/// Options of `saiga enable`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writes /etc/systemd/system/UNIT.d/saiga.conf and edits no unit; restart the service \
afterwards. A PostgreSQL cluster of Debian's (postgresql@15-main) gets one marked line in its own file \
/etc/postgresql/15/main/environment instead, for pg_ctlcluster passes nothing else on.\nExit status: 1, and \
nothing is written, when the service could not be accelerated; 2 when there is no such unit or this user may not."
)]
pub(crate) struct Enable {
    #[command(flatten)]
    which: Which,
    /// Relax the options of its sandbox that are in the way; without this they are only named
    #[arg(long)]
    relax: bool,
}

/// Options of `saiga disable`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Removes all that `saiga enable` wrote; restart the service afterwards.\nExit status: 1 when it \
was not enabled."
)]
pub(crate) struct Disable {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// The service, such as mariadb.service, redis-server or postgresql@15-main
    #[arg(value_name = "UNIT")]
    unit: String,
    /// Work on the system below this folder, whose systemd is not running
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

impl Which {
    /// The root without links, and the unit's own name.
    fn resolve(&self) -> anyhow::Result<(PathBuf, String)> {
        let name = full_name(&self.unit)?;
        let root = self.root.canonicalize();
        let root = root.with_context(|| format!("cannot use {}", self.root.display()))?;
        let name = unit::real_name(&root, &name);
        Ok((root, name))
    }
}

/// Writes what makes the service start under Saiga, unless something stands in the way.
pub(crate) fn enable(args: Enable) -> anyhow::Result<ExitCode> {
    let (root, name) = args.which.resolve()?;
    let unit = Unit::read(&root, &name, None)?;
    let library = Library::find(&root)?;
    let obstacles = obstacle::all(&root, &name, &unit, &library)?;
    if obstacles.iter().any(|it| it.relief.is_none()) {
        return refuse(&name, &obstacles);
    }
    let plan = Plan::new(&root, &name, &unit, &library, &obstacles)?;
    let shortcomings = plan.shortcomings(&root, &name, &library)?;
    if !shortcomings.is_empty() {
        return refuse(&name, &shortcomings);
    }
    if plan.is_done() {
        return tell(&format!("{name} is enabled already ({})\n", plan.places()));
    }
    if !obstacles.is_empty() && !args.relax {
        return refuse(&name, &obstacles);
    }
    let change = Change {
        name: &name,
        drop_in: plan.has_drop_in(),
        cluster: plan.cluster.as_ref(),
    };
    let mut said = plan.carry_out()?;
    for Obstacle { what, relief } in &obstacles {
        let line = relief.as_deref().unwrap_or_default();
        said.push(format!("  {line}  ({what})"));
    }
    let manager = Manager::of(&root);
    said.push(systemd::next_step(
        manager.as_ref(),
        change,
        "start it under Saiga",
    )?);
    tell(&(said.join("\n") + "\n"))
}

/// Says what is in the way, and what `--relax` would do about it.
fn refuse(name: &str, obstacles: &[Obstacle]) -> anyhow::Result<ExitCode> {
    exit::say(&format!("{name} was not enabled:"));
    for Obstacle { what, relief } in obstacles {
        match relief {
            Some(line) => exit::say(&format!("  {what}; --relax adds {line}")),
            None => exit::say(&format!("  {what}")),
        }
    }
    if obstacles.iter().all(|it| it.relief.is_some()) {
        exit::say(&format!(
            "`saiga enable --relax {name}` adds these lines to its own drop-in and `saiga disable` removes them; \
             the rest of the sandbox stays"
        ));
    }
    Ok(ExitCode::from(exit::NO))
}

/// Removes what [`enable`] wrote.
pub(crate) fn disable(args: Disable) -> anyhow::Result<ExitCode> {
    let (root, name) = args.which.resolve()?;
    // The unit may be gone meanwhile.
    let unit = Unit::read(&root, &name, None).ok();
    let cluster = unit.and_then(|unit| obstacle::cluster_of(&root, &name, &unit));
    let cluster = cluster.or_else(|| cluster::of_unit(&root, &name));
    let path = dropin::path(&root, &name);
    let drop_in = plan::remove_drop_in(&path)?;
    let line = match &cluster {
        Some(cluster) => plan::remove_line(cluster)?,
        None => None,
    };
    let change = Change {
        name: &name,
        drop_in: drop_in.is_some(),
        cluster: cluster.as_ref(),
    };
    let mut said: Vec<String> = drop_in.into_iter().chain(line).collect();
    if said.is_empty() {
        let path = path.display();
        exit::say(&match &cluster {
            None => format!("{name} is not enabled: there is no {path}"),
            Some(cluster) => format!(
                "{name} is not enabled: there is no {path}, and no line of Saiga's in {}",
                cluster.environment().display()
            ),
        });
        return Ok(ExitCode::from(exit::NO));
    }
    let manager = Manager::of(&root);
    said.push(systemd::next_step(
        manager.as_ref(),
        change,
        "start it without Saiga",
    )?);
    tell(&(said.join("\n") + "\n"))
}

/// The services that are enabled below `root`, sorted.
pub(crate) fn enabled(root: &Path) -> Vec<String> {
    let mut names = dropin::enabled(root);
    names.extend(cluster::enabled(root));
    names.sort();
    names.dedup();
    names
}

fn tell(text: &str) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// A path of the system below `root`.
fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// As systemctl: a name without a type is a service's. Nothing that leads out of a folder.
pub(crate) fn full_name(name: &str) -> anyhow::Result<String> {
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
