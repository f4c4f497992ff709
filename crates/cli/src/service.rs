//! `saiga enable UNIT` and `saiga disable UNIT`: a service starts under Saiga, or without it.
//!
//! The crate `saiga-service` decides and writes. This module prints the changes, or the reason why
//! nothing was changed, and the next step for the user, which is to restart the service.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use saiga_program::library;
use saiga_service::{
    Change, Cluster, Disabled, Enabled, Enabling, Library, Manager, Obstacle, Permissions, Root,
    Service, UnitName, Unloaded, why_unloaded,
};

use crate::exit;

/// Options of `saiga enable`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writes /etc/systemd/system/UNIT.d/saiga.conf and edits no unit; restart the \
service afterwards. For a PostgreSQL cluster of Debian (postgresql@15-main) it adds one marked \
line to the cluster's file /etc/postgresql/15/main/environment instead, because pg_ctlcluster \
passes no other variables to the server.\nFor a service that is enabled already, says whether \
the library is in its main process.\nExit status: 1 when the service cannot be accelerated \
(nothing is written) or was restarted and runs without the library; 2 when the unit does not \
exist or this user may not enable it."
)]
pub(crate) struct Enable {
    #[command(flatten)]
    target: Target,
    /// Relax those sandbox options of the service that prevent acceleration; without this option
    /// they are only listed
    #[arg(long)]
    relax: bool,
    /// Add the rules that the service's AppArmor profile lacks to the file in
    /// /etc/apparmor.d/local that the profile includes
    #[arg(long)]
    apparmor_local: bool,
}

/// Options of `saiga disable`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Removes everything that `saiga enable` wrote; restart the service afterwards.\n\
Exit status: 1 when the service was not enabled."
)]
pub(crate) struct Disable {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The service, such as mariadb.service, redis-server or postgresql@15-main
    #[arg(value_name = "UNIT")]
    unit: UnitName,
    /// Change the system below this directory, whose systemd is not running
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// Makes the service start under Saiga, unless there is an obstacle.
pub(crate) fn enable(args: Enable) -> anyhow::Result<ExitCode> {
    let root = Root::new(&args.target.root)?;
    let service = Service::new(root.clone(), &args.target.unit);
    let library = Library::new(library::find()?, &root);
    let permissions = Permissions {
        sandbox: args.relax,
        apparmor: args.apparmor_local,
    };
    match service.enable(&library, permissions)? {
        Enabling::Enabled(Enabled {
            changes,
            relaxed,
            cluster,
        }) => {
            let mut lines: Vec<String> = changes.iter().map(Change::to_string).collect();
            for obstacle in relaxed {
                let line = obstacle.relaxation().unwrap_or_default();
                lines.push(format!("  {line}  ({obstacle})"));
            }
            let is_running = reload(&root, &changes)?;
            let name = service.name();
            lines.push(next_step(name, cluster.as_ref(), is_running, "under Saiga"));
            print(&lines)
        }
        Enabling::AlreadyEnabled(files) => {
            let files: Vec<_> = files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            let files = files.join(", ");
            let mut lines = vec![format!("{} is already enabled ({files})", service.name())];
            let state = main_process(&root, service.name())?;
            if let Some((pid, Some(why))) = state {
                print(&lines)?;
                exit::say(&without_library(service.name(), pid, &why));
                // Tools that configure hosts call `enable` again before the restart. Whether it
                // was restarted cannot be told from all of them.
                let is_pending = matches!(why, Unloaded::NoPreload | Unloaded::Unknown);
                return Ok(ExitCode::from(if is_pending { 0 } else { exit::NO }));
            }
            lines.extend(state.map(|(pid, _)| format!("its main process ({pid}) has the library")));
            print(&lines)
        }
        Enabling::Refused(obstacles) => Ok(refuse(service.name(), &obstacles, permissions)),
    }
}

/// The PID of the service's main process, and why the library is not in it; `None` while systemd or
/// the service does not run.
pub(crate) fn main_process(
    root: &Root,
    name: &UnitName,
) -> anyhow::Result<Option<(u32, Option<Unloaded>)>> {
    let Some(manager) = Manager::of(root) else {
        return Ok(None);
    };
    let Some(pid) = manager.main_process(name)? else {
        return Ok(None);
    };
    let why = why_unloaded(root, pid, &library::find()?);
    let why = why
        .with_context(|| format!("cannot read the memory map of process {pid} (are you root?)"))?;
    Ok(Some((pid, why)))
}

pub(crate) fn without_library(name: &UnitName, pid: u32, why: &Unloaded) -> String {
    format!("the main process of {name} ({pid}) runs without the library: {why}")
}

/// Prints the obstacles, and the lines that the options `--relax` and `--apparmor-local` would
/// write, unless they were given. Returns the exit code for a refusal.
fn refuse(name: &UnitName, obstacles: &[Obstacle], permissions: Permissions) -> ExitCode {
    let relax = permissions.sandbox;
    exit::say(&format!("{name} was not enabled:"));
    for obstacle in obstacles {
        match obstacle.relaxation().filter(|_| !relax) {
            Some(line) => exit::say(&format!("  {obstacle}; --relax adds {line}")),
            None => exit::say(&format!("  {obstacle}")),
        }
    }
    if !permissions.apparmor && obstacles.iter().any(Obstacle::has_local_file) {
        exit::say("--apparmor-local adds these rules, and `saiga disable` removes them");
    }
    if !relax && obstacles.iter().all(|it| it.relaxation().is_some()) {
        exit::say(&format!(
            "`saiga enable --relax {name}` adds these lines to Saiga's drop-in, and `saiga \
             disable` removes them; the other sandbox options stay"
        ));
    }
    ExitCode::from(exit::NO)
}

/// Removes everything that [`enable`] wrote.
pub(crate) fn disable(args: Disable) -> anyhow::Result<ExitCode> {
    let root = Root::new(&args.target.root)?;
    let service = Service::new(root.clone(), &args.target.unit);
    let Disabled { changes, cluster } = service.disable()?;
    let name = service.name();
    if changes.is_empty() {
        let drop_in = service.drop_in();
        let missing = format!(
            "{name} is not enabled: {} does not exist",
            drop_in.display()
        );
        exit::say(&match &cluster {
            None => missing,
            Some(cluster) => format!(
                "{missing}, and {} has no line written by Saiga",
                cluster.environment().display()
            ),
        });
        return Ok(ExitCode::from(exit::NO));
    }
    let mut lines: Vec<String> = changes.iter().map(Change::to_string).collect();
    let is_running = reload(&root, &changes)?;
    lines.push(next_step(
        name,
        cluster.as_ref(),
        is_running,
        "without Saiga",
    ));
    print(&lines)
}

/// Makes systemd read its units again if one has changed. Returns false if systemd is not running.
fn reload(root: &Root, changes: &[Change]) -> anyhow::Result<bool> {
    let Some(manager) = Manager::of(root) else {
        return Ok(false);
    };
    if changes.iter().any(Change::is_of_unit) {
        manager.reload()?;
    }
    Ok(true)
}

/// Describes the next step for the user. `how` is "under Saiga" or "without Saiga".
fn next_step(name: &UnitName, cluster: Option<&Cluster>, is_running: bool, how: &str) -> String {
    match cluster {
        _ if is_running => format!("to start it {how}: systemctl restart {name}"),
        Some(Cluster { version, name, .. }) => format!(
            "systemd is not running here; to start it {how}: pg_ctlcluster {version} {name} restart"
        ),
        None => {
            format!("systemd is not running here; it will start {name} {how} once it is running")
        }
    }
}

fn print(lines: &[String]) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all((lines.join("\n") + "\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_depends_on_whether_systemd_runs() {
        let name = "db".parse().unwrap();
        assert_eq!(
            next_step(&name, None, true, "under Saiga"),
            "to start it under Saiga: systemctl restart db.service"
        );
        assert_eq!(
            next_step(&name, None, false, "without Saiga"),
            "systemd is not running here; it will start db.service without Saiga once it is running"
        );
    }
}
