//! Programs that make volumes: losetup, mkfs.
//!
//! Each has a process group of its own: a Ctrl-C at the terminal is for us, who know what may be left half-done.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::volume::{VolumeError, pause};

/// What a program that must succeed says.
pub(crate) fn run(name: &str, words: &[&str]) -> Result<String, VolumeError> {
    run_unless(name, words, &|| false)
}

/// The same with one that is killed when the user gives up.
pub(crate) fn run_unless(
    name: &str,
    words: &[&str],
    is_given_up: &dyn Fn() -> bool,
) -> Result<String, VolumeError> {
    let call = |error: io::Error| VolumeError::Call {
        what: format!("run {name}"),
        error,
    };
    let path = std::env::var("PATH").unwrap_or_default();
    let (mut said, mut complained) = (page().map_err(call)?, page().map_err(call)?);
    let mut child = Command::new(name)
        .args(words)
        // Where they are on Debian, and where a user's PATH does not look.
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(said.try_clone().map_err(call)?)
        .stderr(complained.try_clone().map_err(call)?)
        .spawn()
        .map_err(call)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(call)? {
            break status;
        }
        if is_given_up() {
            // It is not reaped yet, so the group is its own; it fails when nobody is left in that.
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            child.wait().map_err(call)?;
        }
        pause();
    };
    if is_given_up() {
        return Err(VolumeError::Interrupted);
    }
    if !status.success() {
        let fault = fault(&text(&mut complained).map_err(call)?);
        return Err(VolumeError::Program {
            program: format!("{name} {}", words.join(" ")),
            said: if fault.is_empty() {
                status.to_string()
            } else {
                fault
            },
        });
    }
    text(&mut said).map_err(call)
}

/// A file without a name, for what is said: unlike a pipe, it is never full.
fn page() -> io::Result<File> {
    Ok(rustix::fs::memfd_create(c"said", MemfdFlags::CLOEXEC)?.into())
}

fn text(page: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    page.rewind()?;
    page.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a program says is wrong; mkfs.xfs has all of its options behind that.
fn fault(said: &str) -> String {
    let (fault, _) = said.split_once("Usage:").unwrap_or((said, ""));
    let fault = if fault.trim().is_empty() { said } else { fault };
    fault.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_without_all_options() {
        for (said, expected) in [
            (
                "size is too small\nUsage: mkfs.xfs\n[-b size=num]\n",
                "size is too small",
            ),
            ("no space\n", "no space"),
            ("Usage: x\n", "Usage: x"),
        ] {
            assert_eq!(fault(said), expected);
        }
    }

    #[test]
    fn a_program_has_its_own_group_and_says_as_much_as_it_likes() {
        let script = "ps -o pgid= -p $$; echo $$; head -c 200000 /dev/zero | tr '\\0' x";
        let said = run("sh", &["-c", script]).unwrap();
        let lines: Vec<&str> = said.lines().map(str::trim).collect();
        assert_eq!(lines[0], lines[1]);
        assert_eq!(lines[2].len(), 200_000);
    }

    #[test]
    fn who_dies_without_a_word_is_told_by_his_status_and_who_is_given_up_dies() {
        let error = run("sh", &["-c", "kill -TERM $$"]).unwrap_err().to_string();
        assert_eq!(error, "sh -c kill -TERM $$ failed: signal: 15 (SIGTERM)");
        let error = run_unless("sh", &["-c", "sleep 1000 | sleep 1000"], &|| true);
        assert!(matches!(error, Err(VolumeError::Interrupted)));
    }
}
