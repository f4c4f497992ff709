//! `saiga gateway`: the service that gives remote clients of unmodified servers a TCP/IP stack of
//! its own.
//!
//! `up` runs in the foreground, as systemd wants it, and under the library itself: so its local
//! connections to servers under the library move to shared memory. It tells systemd when it serves,
//! and has given up the rights of root then.

mod capture;
mod check;
mod down;
mod status;
mod target;
mod top;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use anyhow::Context as _;
use saiga_gateway::provision;
use saiga_gateway::requirements;
use saiga_gateway::service::Gateway;
use saiga_gateway::settings::{FILE, Settings};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit;
use crate::print::print_text;
use crate::run;
use crate::streams::notify;

/// Options of `saiga gateway`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// The verbs of `saiga gateway`.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Serves until SIGTERM or SIGINT
    Up(Up),
    /// Removes the rules and routes of a gateway that was killed, and undoes `up --prepare`
    Down(down::Args),
    /// Checks a file of settings and the machine, or translates the file of Gazelle
    Check(check::Args),
    /// Shows what a running gateway does, and its connections
    Status(status::Args),
    /// Shows the traffic of a running gateway, refreshed each second
    Top(top::Args),
    /// Writes the frames of a running gateway to a file
    Capture(capture::Args),
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints a line for each served address and port when it is ready.\nExit status: 0 \
after SIGTERM or SIGINT; 2 when the gateway cannot serve: the host is then as before, unless the \
message names `down`."
)]
struct Up {
    /// Settings of the gateway
    #[arg(long, value_name = "FILE", default_value = FILE)]
    config: PathBuf,
    /// Takes the huge pages and cards of DPDK devices from the kernel first; `down` undoes it
    #[arg(long)]
    prepare: bool,
    /// The library is loaded, if it can be
    #[arg(long, hide = true)]
    inside: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Up(up) if up.inside => serve(&up),
        Verb::Up(up) => load_library(&up),
        Verb::Down(args) => down::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Status(args) => status::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Capture(args) => capture::run(&args),
    }
}

/// Replaces this process by one with the library.
fn load_library(up: &Up) -> anyhow::Result<ExitCode> {
    // Mistakes are told once, and by the process that the user has started.
    Settings::read(&up.config)?;
    let program = std::env::current_exe().context("cannot find the program's own file")?;
    let mut command = vec![OsString::from(program)];
    command.extend(["gateway", "up", "--inside", "--config"].map(OsString::from));
    command.push(up.config.clone().into());
    if up.prepare {
        command.push("--prepare".into());
    }
    run::start(command)
}

fn serve(up: &Up) -> anyhow::Result<ExitCode> {
    let settings = Settings::read(&up.config)?;
    // Before the rules: a signal must not leave any.
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    let _hold = if up.prepare {
        prepare(&settings)?
    } else {
        provision::hold(&settings)?
    };
    let warnings = requirements::warnings(&settings);
    let gateway = match Gateway::up(&settings) {
        Ok(gateway) => gateway,
        Err(error) if up.prepare => return down::after(&error.into()),
        Err(error) => return Err(error.into()),
    };
    let stop = gateway.stop();
    let thread = thread::Builder::new().spawn(move || {
        if signals.forever().next().is_some() {
            // A worker that cannot be woken ends at its next event.
            let _woken = stop.stop();
        }
    });
    let begun = thread.context("cannot wait for signals");
    let announced = begun.and_then(|_| announce(&gateway, &warnings));
    if announced.is_err() {
        let _woken = gateway.stop().stop();
    }
    // In any case: rules and routes must not stay.
    let ended = gateway.wait();
    announced?;
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// Takes huge pages and cards from the kernel, and says so.
fn prepare(settings: &Settings) -> anyhow::Result<Option<provision::Hold>> {
    let Some(prepared) = provision::prepare(settings)? else {
        exit::say("--prepare has no effect: no device of the file uses DPDK");
        return Ok(None);
    };
    for change in &prepared.changes {
        exit::say(&format!("prepared: {change}"));
    }
    if prepared.changes.is_empty() {
        exit::say("--prepare: huge pages and cards are there already");
    }
    Ok(prepared.hold)
}

/// Says that the gateway serves, and what it does not.
fn announce(gateway: &Gateway, warnings: &[String]) -> anyhow::Result<()> {
    let mut text = String::new();
    for served in gateway.served() {
        text += &format!("serving {served}\n");
    }
    for network in gateway.carried() {
        text += &format!("carrying connections to {network}\n");
    }
    if text.is_empty() {
        text += "serving no address yet: the device has none\n";
    }
    print_text(&text)?;
    notify::ready();
    for left_out in gateway.left_out() {
        exit::say(&format!("not served: {left_out}"));
    }
    for warning in warnings {
        exit::say(warning);
    }
    for host in gateway.left() {
        exit::say(&format!(
            "{host} has connections from before the gateway: the kernel keeps this host until they \
             have ended"
        ));
    }
    Ok(())
}
