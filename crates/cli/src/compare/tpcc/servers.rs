//! The command lines of the servers of `saiga compare tpcc`, from the options.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use saiga_experiment::file::split;
use saiga_job::tpcc::{Arm, StartCommand, of_profile, own_arm, with_and_without};
use saiga_process::child::quoted;
use saiga_tpcc::props::{Engine, Props};

use super::super::options::TpccFlags;

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
