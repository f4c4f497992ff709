//! One ExecStart= line: which program it starts in the end, as far as that can be known.
//!
//! Spec: `man 5 systemd.service` (prefixes), `man 5 systemd.unit` (specifiers). Looks through a
//! shell's `exec` and through the launchers of Debian's packages. Deliberately absent: variables.

use super::unit::split;

/// What a line starts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// `true`: the unit only stands for others.
    Nothing,
    /// A program by its path, or by the name by which systemd looks it up.
    Program(String),
    /// The server of a PostgreSQL cluster, such as `15-main`.
    Cluster(String),
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// User= does not count (`+`).
    pub(super) as_root: bool,
    /// What it starts.
    pub(super) target: Target,
}

impl Start {
    /// Reads a line of the unit `name`; none for an empty one.
    pub(super) fn read(line: &str, name: &str) -> Option<Self> {
        let command = line.trim_start_matches(['@', '-', ':', '+', '!', '|']);
        let prefix = &line[..line.len() - command.len()];
        let mut words = split(command).into_iter().map(|word| expand(&word, name));
        let program = words.next()?;
        if prefix.contains('@') {
            words.next(); // The name that the program is to see.
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
        // A Perl script that reads /etc/memcached.conf and knows this one path.
        ("systemd-memcached-wrapper", _) => Target::Program("/usr/bin/memcached".to_owned()),
        _ => Target::Program(program),
    }
}

/// The program that a script becomes: behind its last `exec`, else the one that it begins with.
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

/// `pg_ctlcluster` takes `15-main start`, `15 main start` and either the other way round.
fn cluster(arguments: &[String]) -> String {
    let names: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| !word.starts_with('-') && *word != "start")
        .collect();
    names.join("-")
}

/// Replaces the specifiers that name the unit.
fn expand(word: &str, name: &str) -> String {
    let stem = name.strip_suffix(".service").unwrap_or(name);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let mut text = String::new();
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        match (c, chars.clone().next()) {
            ('%', Some('i')) => text.push_str(instance),
            ('%', Some('I')) => text.push_str(&instance.replace('-', "/")),
            ('%', Some('p' | 'P')) => text.push_str(prefix),
            ('%', Some('n')) => text.push_str(name),
            ('%', Some('N')) => text.push_str(stem),
            ('%', Some('%')) => text.push('%'),
            _ => {
                text.push(c);
                continue;
            }
        }
        chars.next();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_looked_through() {
        let program = |path: &str| Target::Program(path.to_owned());
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
            let start = Start::read(line, "pg@15-main.service").unwrap();
            assert_eq!((start.target, start.as_root), (expected, false), "{line}");
        }
        assert!(Start::read("+!/bin/db", "a.service").unwrap().as_root);
        assert_eq!(Start::read("-", "a.service"), None);
    }
}
