//! The running systemd, which keeps using the old units until `systemctl daemon-reload`.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::name::UnitName;
use crate::root::Root;

#[derive(Debug)]
pub struct Manager {
    /// The command line of systemctl.
    systemctl: Vec<String>,
}

/// A request to the running systemd failed.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    #[error("cannot start systemctl: {error}; run `systemctl {verb}` yourself")]
    NotStarted { verb: String, error: io::Error },
    #[error("systemctl {verb} failed: {message}; run it yourself")]
    Failed { verb: String, message: String },
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
    pub fn reload(&self) -> Result<(), ManagerError> {
        self.call(&["daemon-reload"]).map(|_| ())
    }

    /// The main process of a unit; `None` while the unit does not run.
    pub fn main_process(&self, name: &UnitName) -> Result<Option<u32>, ManagerError> {
        let pid = self.call(&["show", "--value", "-p", "MainPID", name.as_str()])?;
        Ok(pid.trim().parse().ok().filter(|pid| *pid != 0))
    }

    /// Calls systemctl and returns its output.
    fn call(&self, arguments: &[&str]) -> Result<String, ManagerError> {
        let verb = arguments.first().copied().unwrap_or_default().to_owned();
        let words = self.systemctl.iter().map(String::as_str);
        let mut words = words.chain(arguments.iter().copied());
        let mut command = Command::new(words.next().unwrap_or_default());
        let output = match command.args(words).output() {
            Ok(output) => output,
            Err(error) => return Err(ManagerError::NotStarted { verb, error }),
        };
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(ManagerError::Failed { verb, message });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
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
    fn the_main_process_is_the_one_that_systemctl_shows() {
        let name = "db".parse().unwrap();
        for (pid, expected) in [("7", Some(7)), ("0", None)] {
            let script =
                format!("test \"$*\" = 'show --value -p MainPID db.service' && echo {pid}");
            assert_eq!(manager(&script).main_process(&name).unwrap(), expected);
        }
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
