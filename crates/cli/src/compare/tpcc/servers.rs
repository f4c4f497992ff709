//! The servers of `saiga compare tpcc`: what options and props files say of them.

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
use super::text::{Arm, Line, Server};

/// What all arms have of the server of a props file.
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

/// The arms: two different lines are `a` and `b`, else the one server with and without Saiga.
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
        bail!(
            "{}: SQLite has no server that could be compared",
            file.path.display()
        );
    }
    let (Some(a), Some(b)) = (a, b) else {
        bail!(
            "--server is missing: the command line that starts the server of {}, in the foreground; \
             or, without --props, --engine mariadb for a private one",
            props[0].path.display()
        );
    };
    if two {
        return Ok(vec![own_arm("a", a), own_arm("b", b)]);
    }
    Ok(with_and_without(&a, &[false, true]))
}

/// The same servers once for each of `under_saiga`: on kernel TCP, or under Saiga.
pub(super) fn with_and_without(lines: &[Line], under_saiga: &[bool]) -> Vec<Arm> {
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
            .map(|line| Line {
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

fn own_arm(name: &str, lines: Vec<Line>) -> Arm {
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

/// What the arms are to find out.
pub(super) fn goal(arms: &[Arm]) -> String {
    match arms {
        [first, others @ ..] if others.iter().all(|arm| arm.lines == first.lines) => {
            format!(
                "Whether TPC-C shows a difference between {} and itself",
                first.name
            )
        }
        _ if arms.iter().any(|arm| arm.name == "saiga") => {
            "What Saiga changes for TPC-C".to_owned()
        }
        _ => "What the other server changes for TPC-C".to_owned(),
    }
}

/// One line for each props file.
fn lines(flag: &str, given: &[String], props: &[Props]) -> anyhow::Result<Vec<Line>> {
    if given.len() != props.len() {
        bail!(
            "{flag} is there {} times, and --props has {} files: each needs the line of its server, \
             in the same order",
            given.len(),
            props.len()
        );
    }
    given.iter().map(|text| line(flag, text)).collect()
}

/// A line, or `@FILE` with one in it; `saiga run` before it is ours.
fn line(flag: &str, text: &str) -> anyhow::Result<Line> {
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
    Ok(Line {
        command: command.join(" "),
        saiga: under.is_some(),
    })
}

/// The line that follows from `profile`, the server's configuration file.
fn of_profile(props: &Props) -> Option<Line> {
    let profile = quoted(&absolute(props.hints.profile.as_deref()?));
    let command = match props.url.engine {
        Engine::MySql => format!("mysqld --defaults-file={profile}"),
        Engine::Postgres => {
            let data = quoted(&absolute(props.hints.data.as_deref()?));
            format!("postgres -D {data} -c config_file={profile}")
        }
        Engine::OpenGauss | Engine::Sqlite => return None,
    };
    Some(Line {
        command,
        saiga: false,
    })
}

fn absolute(path: &Path) -> String {
    let path: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

/// As whom a server must run for its data to be its own, where that is not us.
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
    fn saiga_run_before_a_line_is_ours() {
        let line = |text: &str| {
            let Line { command, saiga } = line("--arm-a", text).unwrap();
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
