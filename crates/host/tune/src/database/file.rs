//! Configuration files of changes.

use std::fmt::Write as _;

use super::Engine;
use super::diff::Diff;

const HEAD: &str = "\
# Written by `saiga tune database`. Without this file and after a restart, the server
# has its old values.
";

/// Variables of MySQL whose option has another name.
const OPTIONS: [(&str, &str); 1] = [("time_zone", "default_time_zone")];

/// The changes as a file for the configuration directory of the server.
#[must_use]
pub fn text(engine: Engine, diff: &Diff) -> String {
    let mut text = HEAD.to_owned();
    if engine == Engine::MySql {
        text += "[mysqld]\n";
    }
    for change in &diff.changes {
        let (name, value) = (change.wanted.name.as_str(), &change.wanted.value);
        // Writing to a String does not fail.
        let _ = match engine {
            Engine::MySql => {
                let option = OPTIONS.iter().find(|(variable, _)| *variable == name);
                let name = option.map_or(name, |(_, option)| option);
                writeln!(text, "{name} = {value}")
            }
            Engine::Postgres | Engine::OpenGauss => writeln!(text, "{name} = '{value}'"),
            Engine::Redis => writeln!(text, "{name} {value}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::diff::{Change, Running};
    use super::super::setting;
    use super::*;

    #[test]
    fn each_server_reads_its_own_form() {
        let change = |name, value: &str| Change {
            wanted: setting(name, value, ""),
            running: Running {
                value: String::new(),
                unit: None,
                from: None,
                needs_restart: false,
            },
            renamed_from: None,
        };
        for (engine, name, value, expected) in [
            (
                Engine::MySql,
                "back_log",
                "900",
                "[mysqld]\nback_log = 900\n",
            ),
            // The server does not start with an option that it does not know.
            (
                Engine::MySql,
                "time_zone",
                "+8:00",
                "[mysqld]\ndefault_time_zone = +8:00\n",
            ),
            (Engine::Postgres, "work_mem", "8MB", "work_mem = '8MB'\n"),
            (Engine::Redis, "io-threads", "4", "io-threads 4\n"),
        ] {
            let diff = Diff {
                changes: vec![change(name, value)],
                // A value that does not fit is not in the file.
                too_large: vec![setting("shared_buffers", "150GB", "")],
                ..Diff::default()
            };
            assert_eq!(text(engine, &diff).strip_prefix(HEAD), Some(expected));
        }
    }
}
