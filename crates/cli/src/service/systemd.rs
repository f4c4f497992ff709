//! Whether systemd runs, and what is left to do for a change to count.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use super::cluster::Cluster;

/// The systemd that runs the services below a root.
#[derive(Debug)]
pub(super) struct Manager {
    /// How to talk to it.
    systemctl: Vec<String>,
}

impl Manager {
    /// The one that runs this machine; none for a system that does not run.
    pub(super) fn of(root: &Path) -> Option<Self> {
        let runs = root == Path::new("/") && Path::new("/run/systemd/system").is_dir();
        runs.then(|| Self {
            systemctl: vec!["systemctl".to_owned()],
        })
    }

    /// Makes it read units again.
    pub(super) fn reload(&self) -> anyhow::Result<()> {
        let (program, arguments) = self.systemctl.split_first().context("a command line")?;
        let mut reload = Command::new(program);
        reload.args(arguments).arg("daemon-reload");
        let reload = reload.output();
        let reload =
            reload.context("cannot start systemctl; run `systemctl daemon-reload` yourself")?;
        if !reload.status.success() {
            let said = String::from_utf8_lossy(&reload.stderr);
            bail!(
                "systemctl daemon-reload failed: {}; run it yourself",
                said.trim()
            );
        }
        Ok(())
    }
}

/// What changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    /// The unit.
    pub(super) name: &'a str,
    /// Whether a drop-in of it was written or removed.
    pub(super) drop_in: bool,
    /// The cluster whose variables changed.
    pub(super) cluster: Option<&'a Cluster>,
}

/// Makes a running systemd read the change; says what is left to the user, whose aim is `to`.
pub(super) fn next_step(
    manager: Option<&Manager>,
    change: Change<'_>,
    to: &str,
) -> anyhow::Result<String> {
    let Change {
        name,
        drop_in,
        cluster,
    } = change;
    match (manager, cluster) {
        (Some(manager), _) => {
            if drop_in {
                manager.reload()?;
            }
            Ok(format!("to {to}: systemctl restart {name}"))
        }
        (None, Some(cluster)) => Ok(format!(
            "systemd is not running here; to {to}: pg_ctlcluster {} {} restart",
            cluster.version, cluster.name
        )),
        (None, None) => Ok(format!(
            "systemd is not running here; when it does, {name} will {to}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for systemctl that runs `script` with its arguments.
    fn manager(script: &str) -> Manager {
        let words = ["sh", "-c", script, "systemctl"];
        Manager {
            systemctl: words.map(str::to_owned).to_vec(),
        }
    }

    const CHANGE: Change<'_> = Change {
        name: "db.service",
        drop_in: true,
        cluster: None,
    };

    #[test]
    fn a_running_systemd_is_told_of_a_drop_in() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("said");
        let manager = manager(&format!("echo \"$@\" >>{}", file.display()));
        let next = next_step(Some(&manager), CHANGE, "start it").unwrap();
        assert_eq!(next, "to start it: systemctl restart db.service");
        let said = || std::fs::read_to_string(&file).unwrap();
        assert_eq!(said(), "daemon-reload\n");
        let change = Change {
            drop_in: false,
            ..CHANGE
        };
        next_step(Some(&manager), change, "start it").unwrap();
        assert_eq!(said(), "daemon-reload\n", "no unit changed");
    }

    #[test]
    fn a_systemd_that_does_not_listen_is_an_error() {
        let refusing = manager("echo no bus >&2; exit 1");
        let missing = Manager {
            systemctl: vec!["/nowhere/systemctl".to_owned()],
        };
        for (manager, words) in [
            (refusing, "failed: no bus; run it yourself"),
            (missing, "run `systemctl daemon-reload` yourself"),
        ] {
            let error = next_step(Some(&manager), CHANGE, "start it").unwrap_err();
            assert!(format!("{error:#}").contains(words), "{error:#}");
        }
    }

    #[test]
    fn only_this_machines_systemd_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("run/systemd/system")).unwrap();
        assert!(Manager::of(folder.path()).is_none());
        let next = next_step(None, CHANGE, "start it").unwrap();
        assert_eq!(
            next,
            "systemd is not running here; when it does, db.service will start it"
        );
    }
}
