//! `saiga gateway down`: removes what a killed gateway has left, and undoes `up --prepare`.
#![expect(unsafe_code, reason = "close_range(2) for descriptors of DPDK")]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use saiga_gateway::provision::{self, Undone};
use saiga_gateway::service::remove_leftovers;

use crate::exit;
use crate::print::print_text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A value that was changed after `up --prepare` stays and is named.\nExit \
status: 0 when nothing is left to undo; 2 while a gateway uses what was prepared, or when the \
kernel refuses something: `down` can be repeated then."
)]
pub(super) struct Args {
    /// Called by `up --prepare` after an error that was already printed
    #[arg(long, hide = true)]
    failed: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let removed = remove_leftovers()?;
    let removed = removed.iter().map(|line| format!("removed {line}\n"));
    let mut text: String = removed.collect();
    let undone = provision::undo();
    // An error is reported below: the rules are gone in any case.
    let done = match &undone {
        Ok(undone) => Some(undone),
        Err(error) => error.undone(),
    };
    if let Some(Undone { restored, kept }) = done {
        text.extend(restored.iter().map(|line| format!("restored {line}\n")));
        for line in kept {
            exit::say(&format!(
                "not restored, because it was changed after `up --prepare`: {line}"
            ));
        }
        if undone.is_ok() && text.is_empty() && kept.is_empty() && !args.failed {
            text += "nothing is left of a gateway that was killed\n";
        }
    }
    if args.failed {
        text.lines().for_each(exit::say);
    } else {
        print_text(&text)?;
    }
    undone?;
    Ok(if args.failed {
        ExitCode::from(exit::COULD_NOT)
    } else {
        ExitCode::SUCCESS
    })
}

/// Says why a gateway that was prepared does not serve, and replaces this process by `down`. DPDK
/// keeps cards and huge pages until its process has ended.
///
/// # Errors
/// After the gateway has given up its rights, this process can execute no program.
pub(super) fn after(error: &anyhow::Error) -> anyhow::Result<ExitCode> {
    exit::say(&format!("{error:#}"));
    become_down().context("the machine stays prepared: run `saiga gateway down`")
}

fn become_down() -> anyhow::Result<ExitCode> {
    // The kernel gives a card back only when no descriptor of it is left.
    let flags = libc::c_int::try_from(libc::CLOSE_RANGE_CLOEXEC)?;
    // SAFETY: the call changes flags of descriptors, and closes none before execve(2).
    if unsafe { libc::close_range(3, libc::c_uint::MAX, flags) } != 0 {
        return Err(io::Error::last_os_error()).context("cannot close the descriptors of DPDK");
    }
    let program = std::env::current_exe().context("cannot find the program's own file")?;
    let mut command = Command::new(program);
    command.args(["gateway", "down", "--failed"]);
    let error = command.env_remove("LD_PRELOAD").exec();
    Err(error).context("cannot run `saiga gateway down`")
}
