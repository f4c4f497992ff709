//! Runs the programs that create volumes: losetup and mkfs.
//!
//! Each has its own process group, so that Ctrl-C at the terminal only reaches this process, which
//! cleans up.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::volume::{VolumeError, pause};

/// Runs a program and returns its standard output; a failure is an error.
pub(crate) fn run(name: &str, words: &[&str]) -> Result<String, VolumeError> {
    run_unless(name, words, &|| false)
}

/// Like [`run`]; kills the program if `is_interrupted`.
pub(crate) fn run_unless(
    name: &str,
    words: &[&str],
    is_interrupted: &dyn Fn() -> bool,
) -> Result<String, VolumeError> {
    let call = |error: io::Error| VolumeError::Call {
        action: format!("run {name}"),
        error,
    };
    let path = std::env::var("PATH").unwrap_or_default();
    let (mut stdout, mut stderr) = (memfd().map_err(call)?, memfd().map_err(call)?);
    let mut child = Command::new(name)
        .args(words)
        // The directories of these programs on Debian, which are not in a user's PATH.
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().map_err(call)?)
        .stderr(stderr.try_clone().map_err(call)?)
        .spawn()
        .map_err(call)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(call)? {
            break status;
        }
        if is_interrupted() {
            // The child is not reaped yet, so the group ID is still its own.
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            child.wait().map_err(call)?;
        }
        pause();
    };
    if is_interrupted() {
        return Err(VolumeError::Interrupted);
    }
    if !status.success() {
        let fault = fault(&text(&mut stderr).map_err(call)?);
        return Err(VolumeError::Program {
            program: format!("{name} {}", words.join(" ")),
            message: if fault.is_empty() {
                status.to_string()
            } else {
                fault
            },
        });
    }
    text(&mut stdout).map_err(call)
}

/// Creates a file in memory for output, which never blocks the program, unlike a pipe.
fn memfd() -> io::Result<File> {
    Ok(rustix::fs::memfd_create(c"output", MemfdFlags::CLOEXEC)?.into())
}

fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the error message in the output of a program, without the options that mkfs.xfs prints
/// after it.
fn fault(output: &str) -> String {
    let (fault, _) = output.split_once("Usage:").unwrap_or((output, ""));
    let fault = if fault.trim().is_empty() {
        output
    } else {
        fault
    };
    fault.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_do_not_have_the_list_of_options() {
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
    fn a_program_has_its_own_group_and_unlimited_output() {
        let script = "ps -o pgid= -p $$; echo $$; head -c 200000 /dev/zero | tr '\\0' x";
        let said = run("sh", &["-c", script]).unwrap();
        let lines: Vec<&str> = said.lines().map(str::trim).collect();
        assert_eq!(lines[0], lines[1]);
        assert_eq!(lines[2].len(), 200_000);
    }

    #[test]
    fn a_silent_failure_has_the_exit_status_and_an_interrupt_kills() {
        let error = run("sh", &["-c", "kill -TERM $$"]).unwrap_err().to_string();
        assert_eq!(error, "sh -c kill -TERM $$ failed: signal: 15 (SIGTERM)");
        let error = run_unless("sh", &["-c", "sleep 1000 | sleep 1000"], &|| true);
        assert!(matches!(error, Err(VolumeError::Interrupted)));
    }
}
