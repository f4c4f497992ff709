//! `saiga run -- CMD ARGS`: replaces this process by an unmodified program with the library loaded.
//!
//! If the program cannot be accelerated, prints the reason and runs the program on kernel TCP, or
//! with `--require` not at all. The exit code is that of CMD.
//!
//! Deliberately absent: a wrapper process.

mod exec;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use saiga_program::{Command, library};
use saiga_service::{Obstacle, Root};
use saiga_settings::{Profile, Settings};

use crate::config;
use crate::exit;

/// Options of `saiga run`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "saiga run [OPTIONS] [--] CMD [ARGS]...",
    after_help = "Both ends of a connection must run under Saiga: start the server and its clients \
on this host with `saiga run`.\nExit status: that of CMD; 1 when CMD was not started because of \
--require; 2 when CMD cannot be executed."
)]
pub(crate) struct Args {
    /// Do not start CMD if it cannot be accelerated
    #[arg(long)]
    require: bool,
    /// CPU time that waiting may cost: latency (most), default or gentle (least)
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
    /// Read the state of AppArmor and its profiles below this directory
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Replaces this process by the command; returns only if that fails or is refused.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let settings = config::load()?;
    let [name, arguments @ ..] = &args.command[..] else {
        anyhow::bail!("give a command: saiga run -- CMD");
    };
    let command = Command::find(name, std::env::var_os("PATH").as_deref())?;
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    if let Some(profile) = args.profile {
        set(&mut environment, "SAIGA_PROFILE", profile.name().into());
    }
    match accelerate(&command, &settings, &args.root) {
        Ok(preload) => set(&mut environment, "LD_PRELOAD", preload),
        Err(obstacle) if args.require => {
            let name = name.to_string_lossy();
            exit::say(&format!(
                "{name} cannot be accelerated and was not started: {obstacle}"
            ));
            return Ok(ExitCode::from(exit::NO));
        }
        Err(obstacle) => {
            let name = name.to_string_lossy();
            exit::say(&format!("{name} stays on kernel TCP: {obstacle}"));
        }
    }
    Err(exec::replace(&command, name, arguments, &environment))
}

/// Replaces this process by a command of Saiga's own, with the library if that can be.
pub(crate) fn start(command: Vec<OsString>) -> anyhow::Result<ExitCode> {
    run(Args {
        require: false,
        root: PathBuf::from("/"),
        profile: None,
        command,
    })
}

/// The value of LD_PRELOAD for `command`. The error is the reason why the command cannot be
/// accelerated.
fn accelerate(command: &Command, settings: &Settings, root: &Path) -> anyhow::Result<OsString> {
    let library = library::find()?;
    library::check(&library)?;
    let executed = saiga_program::check(&command.program, &library)?;
    check_settings(settings, executed.file_name().unwrap_or_default())?;
    let root = Root::new(root)?;
    if let Some(confinement) = saiga_service::confinement(&root, &executed, &library) {
        bail!(Obstacle::AppArmor(confinement));
    }
    let existing = std::env::var_os("LD_PRELOAD");
    Ok(library::ld_preload(&library, existing.as_deref()))
}

/// Fails if the settings exclude the program from acceleration.
fn check_settings(settings: &Settings, file_name: &OsStr) -> anyhow::Result<()> {
    let origin = &settings.enabled.origin;
    ensure!(
        settings.enabled.value,
        "Saiga is switched off (enabled, {origin})"
    );
    let origin = &settings.programs_off.origin;
    ensure!(
        !settings.is_program_off(file_name.as_bytes()),
        "{} is in programs_off ({origin})",
        file_name.to_string_lossy()
    );
    Ok(())
}

fn set(environment: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    environment.retain(|(key, _)| key != OsStr::new(name));
    environment.push((name.into(), value));
}
