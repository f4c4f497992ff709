//! The servers of `saiga compare tpcc`, from the options and the props files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use saiga_experiment::account::Account;
use saiga_experiment::arm::{self, ArmKind};
use saiga_experiment::file::split;
use saiga_experiment::process::quoted;
use saiga_tpcc::props::{Engine, Props};

use super::super::options::TpccFlags;
use super::text::{Arm, Server, StartCommand};

/// The properties of a server that all arms share.
pub(super) fn server(props: &Props, index: usize, of: usize) -> Server {
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

/// The arms: `a` and `b` for two command lines, otherwise one server without and with Saiga.
pub(super) fn arms(flags: &TpccFlags, props: &[Props]) -> anyhow::Result<Vec<Arm>> {
    let usual = match flags.server.as_slice() {
        [] => props.iter().map(of_profile).collect::<Option<Vec<_>>>(),
        given => Some(lines("--server", given, props)?),
    };
    let own = |flag: &str, given: &[String]| match given {
        [] => Ok(usual.clone()),
        given => lines(flag, given, props).map(Some),
    };
    let two = !flags.arm_a.is_empty() || !flags.arm_b.is_empty();
    let (a, b) = (own("--arm-a", &flags.arm_a)?, own("--arm-b", &flags.arm_b)?);
    if let Some(file) = props.iter().find(|one| one.url.engine == Engine::Sqlite) {
        bail!("{}: SQLite has no server to compare", file.path.display());
    }
    let (Some(a), Some(b)) = (a, b) else {
        bail!(
            "give --server with the command line that starts the server of {} in the foreground, \
             or give --engine mariadb without --props for a private server",
            props[0].path.display()
        );
    };
    if two {
        return Ok(vec![own_arm("a", a), own_arm("b", b)]);
    }
    Ok(with_and_without(&a, &[false, true]))
}

/// The same servers once for each value of `under_saiga`.
pub(super) fn with_and_without(lines: &[StartCommand], under_saiga: &[bool]) -> Vec<Arm> {
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

fn own_arm(name: &str, lines: Vec<StartCommand>) -> Arm {
    let shown = lines.iter().map(|line| match line.saiga {
        true => format!("{}, under Saiga", line.command),
        false => line.command.clone(),
    });
    Arm {
        name: name.to_owned(),
        description: shown.collect::<Vec<_>>().join("; "),
        lines,
    }
}

/// The goal of the experiment.
pub(super) fn goal(arms: &[Arm]) -> String {
    match arms {
        [first, others @ ..] if others.iter().all(|arm| arm.lines == first.lines) => {
            format!(
                "A comparison of {} with itself, which should show no difference",
                first.name
            )
        }
        _ if arms.iter().any(|arm| arm.name == "saiga") => {
            "The effect of Saiga on TPC-C".to_owned()
        }
        _ => "The effect of the other server on TPC-C".to_owned(),
    }
}

/// One command line for each props file.
fn lines(flag: &str, given: &[String], props: &[Props]) -> anyhow::Result<Vec<StartCommand>> {
    if given.len() != props.len() {
        bail!(
            "{flag} is given {} times, but --props has {} files: give the command line of each \
             server, in the same order",
            given.len(),
            props.len()
        );
    }
    given.iter().map(|text| line(flag, text)).collect()
}

/// Parses a command line or `@FILE`; a leading `saiga run` is stripped and remembered.
fn line(flag: &str, text: &str) -> anyhow::Result<StartCommand> {
    let text = match text.strip_prefix('@') {
        Some(path) => fs::read_to_string(path).with_context(|| format!("{flag} @{path}"))?,
        None => text.to_owned(),
    };
    let words = split(&text).with_context(|| format!("{flag} {}", text.trim()))?;
    let under = match words.as_slice() {
        [saiga, run, rest @ ..] if run == "run" && Path::new(saiga).ends_with("saiga") => {
            let ours = ["--require", "--"];
            let skipped = rest.iter().take_while(|word| ours.contains(&word.as_str()));
            Some(&rest[skipped.count()..])
        }
        _ => None,
    };
    let command: Vec<String> = under
        .unwrap_or(&words)
        .iter()
        .map(|word| quoted(word))
        .collect();
    Ok(StartCommand {
        command: command.join(" "),
        saiga: under.is_some(),
    })
}

/// The command line that follows from `profile`, the server's configuration file.
fn of_profile(props: &Props) -> Option<StartCommand> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_saiga_run_is_recognised() {
        let line = |text: &str| {
            let StartCommand { command, saiga } = line("--arm-a", text).unwrap();
            (command, saiga)
        };
        assert_eq!(
            line("mysqld --port=1"),
            ("mysqld --port=1".to_owned(), false)
        );
        for under in ["saiga run", "/opt/bin/saiga run --require --"] {
            let text = format!("{under} mysqld 'a b'");
            assert_eq!(line(&text), ("mysqld 'a b'".to_owned(), true), "{text}");
        }
        assert!(super::line("--arm-a", "a | b").is_err());
    }
}
