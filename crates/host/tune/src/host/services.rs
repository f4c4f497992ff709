//! States of systemd units, through `systemctl`.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

/// Units of a service manager.
pub trait Services: fmt::Debug {
    /// `active` or `inactive`; `None` if there is no such unit.
    ///
    /// # Errors
    /// The service manager does not answer.
    fn active(&self, unit: &str) -> io::Result<Option<String>>;

    /// The word of `systemctl is-enabled`; `None` if there is no such unit.
    ///
    /// # Errors
    /// As [`active`](Self::active).
    fn enabled(&self, unit: &str) -> io::Result<Option<String>>;

    /// Starts or stops a unit, and waits for it.
    ///
    /// # Errors
    /// The unit does not start or stop.
    fn set_active(&mut self, unit: &str, is_active: bool) -> io::Result<()>;

    /// Gives a unit the state `enabled`, `disabled` or `masked`.
    ///
    /// # Errors
    /// The state is another one, or the service manager refuses.
    fn set_enabled(&mut self, unit: &str, state: &str) -> io::Result<()>;

    /// Reads all units again.
    ///
    /// # Errors
    /// As [`active`](Self::active).
    fn reload(&mut self) -> io::Result<()>;
}

/// The systemd that runs.
#[derive(Debug)]
pub struct Systemctl(());

impl Systemctl {
    /// `None` if systemd is not the first process of this host.
    #[must_use]
    pub fn running() -> Option<Self> {
        Path::new("/run/systemd/system")
            .is_dir()
            .then_some(Self(()))
    }
}

fn systemctl(words: &[&str]) -> io::Result<String> {
    let output = Command::new("systemctl").args(words).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let text = format!("systemctl {} failed: {}", words.join(" "), stderr.trim());
    Err(io::Error::other(text))
}

/// A property of a unit that is loaded.
fn property(unit: &str, name: &str) -> io::Result<Option<String>> {
    let property = format!("--property=LoadState,{name}");
    let text = systemctl(&["show", &property, "--", unit])?;
    Ok(parse(&text, name))
}

fn parse(text: &str, name: &str) -> Option<String> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        lines.find_map(|(key, value)| (key == name).then(|| value.to_owned()))
    };
    if value("LoadState")? == "not-found" {
        return None;
    }
    value(name).filter(|value| !value.is_empty())
}

impl Services for Systemctl {
    fn active(&self, unit: &str) -> io::Result<Option<String>> {
        let state = property(unit, "ActiveState")?;
        Ok(state.map(|state| {
            let runs = ["active", "activating", "reloading"].contains(&state.as_str());
            if runs { "active" } else { "inactive" }.to_owned()
        }))
    }

    fn enabled(&self, unit: &str) -> io::Result<Option<String>> {
        property(unit, "UnitFileState")
    }

    fn set_active(&mut self, unit: &str, is_active: bool) -> io::Result<()> {
        let verb = if is_active { "start" } else { "stop" };
        systemctl(&[verb, "--", unit]).map(drop)
    }

    fn set_enabled(&mut self, unit: &str, state: &str) -> io::Result<()> {
        let verb = match state {
            "enabled" => "enable",
            "disabled" => "disable",
            "masked" => "mask",
            _ => {
                let text = format!("systemctl cannot give {unit} the state {state}");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        };
        systemctl(&[verb, "--", unit]).map(drop)
    }

    fn reload(&mut self) -> io::Result<()> {
        systemctl(&["daemon-reload"]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_is_not_found_has_no_state() {
        for (text, expected) in [
            ("LoadState=loaded\nActiveState=failed\n", Some("failed")),
            ("LoadState=not-found\nActiveState=inactive\n", None),
            ("LoadState=masked\nActiveState=\n", None),
            ("", None),
        ] {
            assert_eq!(parse(text, "ActiveState").as_deref(), expected, "{text}");
        }
    }
}
