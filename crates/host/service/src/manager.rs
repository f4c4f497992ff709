//! The running systemd, which keeps using the old units until `systemctl daemon-reload`.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::root::Root;

#[derive(Debug)]
pub struct Manager {
    /// The command line of systemctl.
    systemctl: Vec<String>,
}

/// The running systemd could not be made to reload its units.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error("cannot start systemctl: {0}; run `systemctl daemon-reload` yourself")]
    NotStarted(io::Error),
    #[error("systemctl daemon-reload failed: {0}; run it yourself")]
    Failed(String),
}

impl Manager {
    /// The systemd that runs the services below `root`; `None` for a system that does not run.
    pub fn of(root: &Root) -> Option<Self> {
        let is_running =
            root.as_path() == Path::new("/") && Path::new("/run/systemd/system").is_dir();
        is_running.then(|| Self {
            systemctl: vec!["systemctl".to_owned()],
        })
    }

    /// Makes systemd read all units again. It starts and stops nothing.
    pub fn reload(&self) -> Result<(), ReloadError> {
        let words = self.systemctl.iter().map(String::as_str);
        let mut words = words.chain(["daemon-reload"]);
        let mut command = Command::new(words.next().unwrap_or_default());
        let output = command.args(words).output();
        let output = output.map_err(ReloadError::NotStarted)?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(ReloadError::Failed(stderr.trim().to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for systemctl: a shell that runs `script` with its arguments.
    fn manager(script: &str) -> Manager {
        let words = ["sh", "-c", script, "systemctl"];
        Manager {
            systemctl: words.map(str::to_owned).to_vec(),
        }
    }

    #[test]
    fn systemctl_is_called_once_with_daemon_reload() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("arguments");
        let manager = manager(&format!("echo \"$@\" >>{}", file.display()));
        manager.reload().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "daemon-reload\n");
    }

    #[test]
    fn a_reload_that_fails_is_left_to_the_user() {
        let refusing = manager("echo no bus >&2; exit 1");
        let missing = Manager {
            systemctl: vec!["/nowhere/systemctl".to_owned()],
        };
        for (manager, words) in [
            (refusing, "failed: no bus; run it yourself"),
            (missing, "run `systemctl daemon-reload` yourself"),
        ] {
            let error = manager.reload().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_system_below_a_folder_has_no_manager() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("run/systemd/system")).unwrap();
        let root = Root::new(folder.path()).unwrap();
        assert!(Manager::of(&root).is_none());
    }
}
