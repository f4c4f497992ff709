//! One ExecStart= line: the program that runs in the end, if that can be read from the line.
//!
//! Spec: `man 5 systemd.service` (prefixes), `man 5 systemd.unit` (specifiers). Follows a shell's
//! `exec` and the launchers of Debian's packages. Deliberately absent: variables.

use crate::name::UnitName;
use crate::specifier::expand;
use crate::unit::split;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `true`: the unit only groups others.
    Nothing,
    /// A path, or the name of a program that systemd searches.
    Program(String),
    /// The server of a PostgreSQL cluster, such as `15-main`.
    Cluster(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExecStart {
    /// The prefix `+`: User= does not apply.
    pub(crate) as_root: bool,
    pub(crate) target: Target,
}

impl ExecStart {
    /// Reads a line of the unit `name`; `None` for a line without a program.
    pub(crate) fn read(line: &str, name: &UnitName) -> Option<Self> {
        let command = line.trim_start_matches(['@', '-', ':', '+', '!', '|']);
        let prefix = &line[..line.len() - command.len()];
        let mut words = split(command).into_iter().map(|word| expand(&word, name));
        let program = words.next()?;
        if prefix.contains('@') {
            words.next(); // The program's argv[0].
        }
        Some(Self {
            as_root: prefix.contains('+'),
            target: target(program, &words.collect::<Vec<_>>()),
        })
    }
}

fn target(program: String, arguments: &[String]) -> Target {
    let file = program.rsplit('/').next().unwrap_or_default();
    match (file, arguments) {
        ("true", _) => Target::Nothing,
        ("sh" | "bash" | "dash", [option, script, ..]) if option == "-c" => {
            Target::Program(in_script(script).unwrap_or(program))
        }
        ("pg_ctlcluster", _) => Target::Cluster(cluster(arguments)),
        // A Perl script that reads /etc/memcached.conf and has this path built in.
        ("systemd-memcached-wrapper", _) => Target::Program("/usr/bin/memcached".to_owned()),
        _ => Target::Program(program),
    }
}

/// The program that a shell script becomes: the path after its last `exec`, otherwise the path
/// that it begins with.
fn in_script(script: &str) -> Option<String> {
    let separators = |c: char| c.is_whitespace() || ";&|()`\"'".contains(c);
    let words: Vec<&str> = script.split(separators).filter(|w| !w.is_empty()).collect();
    let is_path = |word: &&&str| word.starts_with('/');
    let found = match words.iter().rposition(|word| *word == "exec") {
        Some(at) => words.get(at + 1..)?.iter().find(is_path),
        None => words.first().filter(is_path),
    };
    found.map(|path| (*path).to_owned())
}

/// The cluster in the arguments of `pg_ctlcluster`: `15-main start` or `15 main start`, in either
/// order.
fn cluster(arguments: &[String]) -> String {
    let names: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| !word.starts_with('-') && *word != "start")
        .collect();
    names.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_and_launchers_lead_to_the_program() {
        let program = |path: &str| Target::Program(path.to_owned());
        let name: UnitName = "pg@15-main".parse().unwrap();
        for (line, expected) in [
            ("/usr/bin/db --serve", program("/usr/bin/db")),
            ("-\"/usr/bin/d b\" x", program("/usr/bin/d b")),
            ("@/usr/bin/db db -c x", program("/usr/bin/db")),
            ("/usr/bin/%p-%i", program("/usr/bin/pg-15-main")),
            ("db --serve", program("db")),
            ("/bin/true", Target::Nothing),
            (
                "/bin/sh -c \"set -f; [ ! -e /usr/bin/a ] || V=`/usr/bin/a`; exec /usr/sbin/db $V\"",
                program("/usr/sbin/db"),
            ),
            ("/bin/sh -c '/usr/bin/db; :'", program("/usr/bin/db")),
            ("/bin/sh -c 'cd /tmp && ./db'", program("/bin/sh")),
            ("/bin/sh /usr/bin/script", program("/bin/sh")),
            (
                "-/usr/bin/pg_ctlcluster --skip-systemctl-redirect %i start",
                Target::Cluster("15-main".to_owned()),
            ),
            (
                "/usr/bin/pg_ctlcluster start 14 old",
                Target::Cluster("14-old".to_owned()),
            ),
            (
                "/usr/share/memcached/scripts/systemd-memcached-wrapper /etc/memcached.conf",
                program("/usr/bin/memcached"),
            ),
        ] {
            let start = ExecStart::read(line, &name).unwrap();
            assert_eq!((start.target, start.as_root), (expected, false), "{line}");
        }
        assert!(ExecStart::read("+!/bin/db", &name).unwrap().as_root);
        assert_eq!(ExecStart::read("-", &name), None);
    }
}
