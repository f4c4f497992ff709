//! The servers and arms of `saiga compare tpcc`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use saiga_experiment::arm::{self, ArmKind};
use saiga_experiment::two_hosts::Wire;
use saiga_hosts::Over;
use saiga_process::account::Account;
use saiga_process::child::quoted;
use saiga_tpcc::props::{Engine, Props};

use super::file::{Arm, Server, StartCommand};

/// The properties of a server that all arms share.
#[must_use]
pub fn server(props: &Props, index: usize, of: usize) -> Server {
    let data = props.hints.data.as_deref();
    let data = data.map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.to_owned()));
    Server {
        name: match of {
            1 => "server".to_owned(),
            _ => format!("server-{}", index + 1),
        },
        engine: props.url.engine,
        port: props.url.port,
        user: data.as_deref().and_then(owner),
        data,
    }
}

/// The same servers once for each value of `under_saiga`.
#[must_use]
pub fn with_and_without(lines: &[StartCommand], under_saiga: &[bool]) -> Vec<Arm> {
    let kind = |saiga: &bool| match saiga {
        true => ArmKind::Saiga(PathBuf::new()),
        false => ArmKind::Kernel,
    };
    let kinds: Vec<ArmKind> = under_saiga.iter().map(kind).collect();
    let arm = |(name, &saiga): (String, &bool)| Arm {
        name,
        description: match saiga {
            true => "the same connections with servers and client under Saiga".to_owned(),
            false => "kernel TCP, nothing preloaded".to_owned(),
        },
        gateway: false,
        lines: lines
            .iter()
            .map(|line| StartCommand {
                saiga,
                ..line.clone()
            })
            .collect(),
    };
    arm::names(&kinds)
        .into_iter()
        .zip(under_saiga)
        .map(arm)
        .collect()
}

/// The same server once for each value of `with_gateway`, with its client on another host.
pub(super) fn over(wire: Wire, line: &StartCommand, with_gateway: &[bool]) -> Vec<Arm> {
    let kind = |gateway: &bool| match gateway {
        true => ArmKind::Gateway(PathBuf::new()),
        false => ArmKind::Kernel,
    };
    let kinds: Vec<ArmKind> = with_gateway.iter().map(kind).collect();
    let over = Over {
        wire,
        tool: PathBuf::new(),
    };
    let arm = |(name, kind): (String, &ArmKind)| Arm {
        name,
        description: over
            .layout(kind, 0, &Default::default())
            .description()
            .to_owned(),
        gateway: kind.library().is_some(),
        lines: vec![StartCommand {
            saiga: kind.library().is_some(),
            ..line.clone()
        }],
    };
    arm::names(&kinds)
        .into_iter()
        .zip(&kinds)
        .map(arm)
        .collect()
}

/// An arm with servers of its own.
#[must_use]
pub fn own_arm(name: &str, lines: Vec<StartCommand>) -> Arm {
    let shown = lines.iter().map(|line| match line.saiga {
        true => format!("{}, under Saiga", line.command),
        false => line.command.clone(),
    });
    Arm {
        name: name.to_owned(),
        description: shown.collect::<Vec<_>>().join("; "),
        gateway: false,
        lines,
    }
}

/// The goal of the experiment.
#[must_use]
pub fn goal(arms: &[Arm]) -> String {
    match arms {
        [first, others @ ..] if others.iter().all(|arm| arm.lines == first.lines) => {
            format!(
                "A comparison of {} with itself, which should show no difference",
                first.name
            )
        }
        _ if arms.iter().any(|arm| arm.gateway) => {
            "The effect of the gateway on TPC-C with a client on another host".to_owned()
        }
        _ if arms.iter().any(|arm| arm.name == "saiga") => {
            "The effect of Saiga on TPC-C".to_owned()
        }
        _ => "The effect of the other server on TPC-C".to_owned(),
    }
}

/// The command line that follows from `profile`, the server's configuration file.
#[must_use]
pub fn of_profile(props: &Props) -> Option<StartCommand> {
    let profile = quoted(&absolute(props.hints.profile.as_deref()?));
    let command = match props.url.engine {
        Engine::MySql => format!("mysqld --defaults-file={profile}"),
        Engine::Postgres => {
            let data = quoted(&absolute(props.hints.data.as_deref()?));
            format!("postgres -D {data} -c config_file={profile}")
        }
        Engine::OpenGauss | Engine::Sqlite => return None,
    };
    Some(StartCommand {
        command,
        saiga: false,
    })
}

fn absolute(path: &Path) -> String {
    let path: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

/// The user that owns the data directory, if that is not the current user.
fn owner(data: &Path) -> Option<String> {
    let uid = fs::metadata(data).ok()?.uid();
    if !Account::is_root() || uid == 0 {
        return None;
    }
    Account::of_uid(uid).map(|account| account.name)
}
