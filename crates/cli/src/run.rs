//! `saiga run -- CMD ARGS`: becomes an unmodified program with the library loaded.
//!
//! Says beforehand when the program cannot be accelerated and why, then runs it
//! on kernel TCP all the same, unless `--require`. The exit code is then CMD's own.
//!
//! Deliberately absent: a wrapper process. `saiga` replaces itself by execve.

mod exec;
mod obstacle;
pub(crate) mod program;
mod resolve;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use saiga_settings::Profile;

use crate::config;
use crate::exit;
use crate::library;
use obstacle::Obstacle;
pub(crate) use obstacle::in_library;
use resolve::Command;

/// Options of `saiga run`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "saiga run [OPTIONS] [--] CMD [ARGS]...",
    after_help = "Both ends of a connection must run under Saiga: start the server and its \
clients on this host with `saiga run`.\nExit status: that of CMD; 1 when --require cannot be met; \
2 when CMD cannot be started."
)]
pub(crate) struct Args {
    /// Start nothing when CMD cannot be accelerated
    #[arg(long)]
    require: bool,
    /// How much CPU time waiting may cost: latency, default or gentle
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Replaces this process by the command; returns only when that did not happen.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let settings = config::load()?;
    let [name, arguments @ ..] = &args.command[..] else {
        anyhow::bail!("run: no command given");
    };
    let command = resolve::find(name, std::env::var_os("PATH").as_deref())?;
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    if let Some(profile) = args.profile {
        set(&mut environment, "SAIGA_PROFILE", profile.name().into());
    }
    match accelerate(&command, &settings) {
        Ok(preload) => set(&mut environment, "LD_PRELOAD", preload),
        Err(obstacle) if args.require => {
            let name = name.to_string_lossy();
            exit::say(&format!(
                "{name} cannot be accelerated and was not started: {obstacle}"
            ));
            return Ok(ExitCode::from(exit::NO));
        }
        Err(obstacle) => {
            exit::say(&format!(
                "{} stays on kernel TCP: {obstacle}",
                name.to_string_lossy()
            ));
        }
    }
    Err(exec::replace(&command, name, arguments, &environment))
}

/// The value of `LD_PRELOAD` for `command`, or why there is none.
fn accelerate(
    command: &Command,
    settings: &saiga_settings::Settings,
) -> Result<OsString, Obstacle> {
    let library = library::find().map_err(|error| Obstacle::NoLibrary(error.to_string()))?;
    in_library(&library)?;
    let executed = program::check(&command.program, &library)?;
    let file_name = executed.file_name().unwrap_or_default();
    obstacle::in_settings(settings, file_name)?;
    Ok(library::ld_preload(
        &library,
        std::env::var_os("LD_PRELOAD").as_deref(),
    ))
}

fn set(environment: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    environment.retain(|(key, _)| key != OsStr::new(name));
    environment.push((name.into(), value));
}

/// A path as people read it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
