//! Masks passwords in command lines, variables and settings before they are written to reports or
//! the terminal.
//!
//! Masked are values with the name of a secret, passwords in URLs and queries, and the password
//! options of known programs. A password in another position of an unknown program is not
//! recognised.

use std::path::Path;

use crate::child::quoted;

/// The replacement of a secret.
pub const MASK: &str = "***";

/// Parts of the names of secrets.
const SECRET: [&str; 9] = [
    "pass",
    "pwd",
    "secret",
    "token",
    "credential",
    "apikey",
    "api_key",
    "access_key",
    "private_key",
];
/// Programs with the option `-pPASSWORD`; in other programs `-p` may be a port.
const ATTACHED: [&str; 5] = ["mysql", "maria", "mycli", "percona", "sshpass"];
/// Programs with the option `-a PASSWORD`; in other programs `-a` is a flag, as in `cp -a`.
const WITH_A: [&str; 4] = ["redis", "valkey", "keydb", "memtier"];
/// The program with the option `-p PASSWORD`; in other programs `-p` may be a port.
const WITH_P: &str = "sshpass";
/// Words before a password: commands of Redis, SQL.
const BEFORE_PASSWORD: [&str; 4] = ["auth", "requirepass", "masterauth", "password"];

/// Whether a variable, option or setting of this name contains a secret: `PGPASSWORD`,
/// `masterauth`, `--mysql-password`.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    // `authentication_policy` is not a secret.
    SECRET.iter().any(|secret| name.contains(secret)) || parts.any(|part| part.ends_with("auth"))
}

/// The value of a variable or setting with secrets masked.
#[must_use]
pub fn value(name: &str, value: &str) -> String {
    if is_secret(name) && !value.is_empty() {
        return MASK.to_owned();
    }
    line(value)
}

/// The words of a command line with secrets masked.
#[must_use]
pub fn words(words: &[String]) -> Vec<String> {
    let mut reader = Reader::default();
    words.iter().map(|word| reader.shown(word)).collect()
}

/// A shell command with secrets masked; everything else stays unchanged, including white space.
#[must_use]
pub fn line(text: &str) -> String {
    let mut reader = Reader::default();
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let blank = rest.len() - rest.trim_start().len();
        shown.push_str(&rest[..blank]);
        rest = &rest[blank..];
        let (end, word) = first_word(rest);
        let masked = reader.shown(&word);
        let original = &rest[..end];
        if ends_command(original) && !is_variable(&rest[end..]) {
            reader = Reader::default();
        }
        if masked == word {
            shown.push_str(original);
        } else if masked != MASK && original.contains(['\'', '"']) {
            shown.push_str(&quoted(&masked));
        } else {
            shown.push_str(&masked);
        }
        rest = &rest[end..];
    }
    shown
}

/// Whether the shell begins another command after this word.
fn ends_command(word: &str) -> bool {
    let is_plain = !word.contains(['\'', '"', '\\']);
    matches!(word, "&&" | "||" | "|" | "&") || (is_plain && word.ends_with(';'))
}

/// Whether the next command is the value of a variable, which may be any program named before.
fn is_variable(rest: &str) -> bool {
    rest.trim_start().trim_start_matches('"').starts_with('$')
}

/// The end of the first word of a shell command, and the word without its quotes.
fn first_word(text: &str) -> (usize, String) {
    let mut word = String::new();
    let mut quote = None;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (None, blank) if blank.is_whitespace() => return (at, word),
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None | Some('"'), '\\') => word.extend(letters.next().map(|(_, next)| next)),
            (_, plain) => word.push(plain),
        }
    }
    (text.len(), word)
}

/// Reads a command word by word; the meaning of a word depends on the words before it.
#[derive(Default)]
struct Reader {
    expects_password: bool,
    /// The next word is a shell command or SQL.
    is_text: bool,
    /// IDENTIFIED of SQL was read, and BY is expected.
    identified: bool,
    /// The last word was this BY.
    by: bool,
    /// A program with `-pPASSWORD` was read.
    attaches: bool,
    /// A program with `-a PASSWORD` was read.
    takes_a: bool,
    /// A program with `-p PASSWORD` was read.
    takes_p: bool,
}

impl Reader {
    fn shown(&mut self, word: &str) -> String {
        let expects_password = std::mem::take(&mut self.expects_password);
        let by = std::mem::take(&mut self.by);
        let is_text = std::mem::replace(&mut self.is_text, word == "-c");
        // SET PASSWORD = '...', IDENTIFIED BY PASSWORD '...'
        if expects_password && (word == "=" || by && word.eq_ignore_ascii_case("password")) {
            self.expects_password = true;
            return word.to_owned();
        }
        if expects_password && !word.is_empty() {
            return MASK.to_owned();
        }
        self.note(word);
        if self.is_attached(word) {
            return format!("-p{MASK}");
        }
        match word.split_once('=') {
            Some((name, _)) if !is_text && is_name(name) && is_secret(name) => {
                format!("{name}={MASK}")
            }
            // A shell command or a list of settings in one word.
            _ if word.contains(char::is_whitespace) => line(word),
            _ => in_urls(word),
        }
    }

    /// Updates the state by `word`.
    fn note(&mut self, word: &str) {
        let program = Path::new(word).file_name().unwrap_or_default();
        let program = program.to_string_lossy();
        self.attaches |= ATTACHED.iter().any(|known| program.contains(known));
        self.takes_a |= WITH_A.iter().any(|known| program.starts_with(known));
        self.takes_p |= program == WITH_P;
        let small = word.to_ascii_lowercase();
        self.identified |= small == "identified";
        self.expects_password = match small.strip_prefix("--") {
            Some(name) => !name.contains('=') && !name.starts_with("no-") && is_secret(name),
            None if small == "by" => {
                self.by = std::mem::take(&mut self.identified);
                self.by
            }
            None if word == "-a" => self.takes_a,
            // Only the first `-p` after sshpass; the program that it starts has options of its own.
            None if word == "-p" => std::mem::take(&mut self.takes_p),
            None => BEFORE_PASSWORD.contains(&small.as_str()),
        };
    }

    /// Whether `word` has the form `-pPASSWORD`.
    fn is_attached(&self, word: &str) -> bool {
        let value = word.strip_prefix("-p").unwrap_or_default();
        !value.is_empty() && self.attaches
    }
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

/// Masks passwords as in `scheme://user:***@host/?password=***`. A password may contain `@` and
/// `/`.
fn in_urls(word: &str) -> String {
    let Some((before, rest)) = word.split_once("://") else {
        return in_query(word);
    };
    let authority = rest.rsplit_once('@');
    match authority.and_then(|(user, rest)| Some((user.split_once(':')?.0, rest))) {
        Some((user, rest)) => format!("{before}://{user}:{MASK}@{}", in_query(rest)),
        None => format!("{before}://{}", in_query(rest)),
    }
}

/// Masks passwords as in `...?user=x&password=***`.
fn in_query(text: &str) -> String {
    let ends = |c: char| "?&;,".contains(c);
    let pairs = text.split_inclusive(ends).map(|pair| {
        let end = pair.strip_suffix(ends).unwrap_or(pair);
        match end.split_once('=') {
            Some((name, _)) if is_name(name) && is_secret(name) => {
                format!("{name}={MASK}{}", &pair[end.len()..])
            }
            Some(_) | None => pair.to_owned(),
        }
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognised() {
        for name in [
            "PGPASSWORD",
            "MYSQL_PWD",
            "REDISCLI_AUTH",
            "masterauth",
            "tls-key-file-pass",
            "AWS_SECRET_ACCESS_KEY",
            "--mysql-password",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "authentication_policy",
            "port",
            "PATH",
            "author",
            "keyring_file",
        ] {
            assert!(!is_secret(name), "{name}");
        }
        assert_eq!(value("PGPASSWORD", "x"), "***");
        assert_eq!(value("requirepass", ""), "");
        assert_eq!(
            value("primary_conninfo", "host=a password=x port=1"),
            "host=a password=*** port=1"
        );
    }

    /// Pairs of a shell command and its masked form.
    #[test]
    fn only_passwords_in_lines_are_masked() {
        for (text, shown) in [
            (
                "sysbench --mysql-password=x run",
                "sysbench --mysql-password=*** run",
            ),
            ("redis-cli -p 7 -a x PING", "redis-cli -p 7 -a *** PING"),
            ("redis-cli AUTH x && true", "redis-cli AUTH *** && true"),
            (
                "redis-server --requirepass x --port 1",
                "redis-server --requirepass *** --port 1",
            ),
            ("mysql -uroot -p123456 -P3306", "mysql -uroot -p*** -P3306"),
            ("pgbench -p5432 -T 9", "pgbench -p5432 -T 9"),
            ("C=mysql; $C -px -e y", "C=mysql; $C -p*** -e y"),
            ("C=mysql && \"$C\" -px", "C=mysql && \"$C\" -p***"),
            (
                "mysqladmin -px shutdown && mkdir -pv /a && cp -a /b /c; redis-cli -a x",
                "mysqladmin -p*** shutdown && mkdir -pv /a && cp -a /b /c; redis-cli -a ***",
            ),
            ("mysql -e 'a;' -px; ls -px", "mysql -e 'a;' -p*** ls -px"),
            ("sshpass -p x ssh -p 22 h", "sshpass -p *** ssh -p 22 h"),
            (
                "mysql -e \"ALTER USER a IDENTIFIED BY PASSWORD '*AB'\"",
                "mysql -e 'ALTER USER a IDENTIFIED BY PASSWORD ***'",
            ),
            (
                "cp -a /bak/100w /d && mkdir -pv /x && cp -pr a b",
                "cp -a /bak/100w /d && mkdir -pv /x && cp -pr a b",
            ),
            (
                "PGPASSWORD=x psql -c 'select 1'",
                "PGPASSWORD=*** psql -c 'select 1'",
            ),
            (
                "sh -c 'PGPASSWORD=x psql | cat'",
                "sh -c 'PGPASSWORD=*** psql | cat'",
            ),
            (
                "psql postgresql://me:p/w@db:1/x?a=b",
                "psql postgresql://me:***@db:1/x?a=b",
            ),
            ("redis-cli -u redis://:x@h", "redis-cli -u redis://:***@h"),
            ("psql 'host=a  password=x'", "psql 'host=a  password=***'"),
            (
                "curl 'http://h/?user=u&token=x&b=1'",
                "curl 'http://h/?user=u&token=***&b=1'",
            ),
            (
                "mysql -e \"CREATE USER a IDENTIFIED BY 'x'; SELECT 1\"",
                "mysql -e 'CREATE USER a IDENTIFIED BY *** SELECT 1'",
            ),
            (
                "mysql -e \"SET PASSWORD = 'x'\"",
                "mysql -e 'SET PASSWORD = ***'",
            ),
            (
                "psql --no-password  -d 'a b'\n",
                "psql --no-password  -d 'a b'\n",
            ),
            (
                "find /d -mindepth 1 -print 'it''s'",
                "find /d -mindepth 1 -print 'it''s'",
            ),
            ("echo 'no end", "echo 'no end"),
        ] {
            assert_eq!(line(text), shown);
        }
    }

    #[test]
    fn a_word_is_masked_as_a_whole() {
        let all = [
            "env",
            "PGPASSWORD=a b",
            "redis-cli",
            "--password=c d",
            "-a",
            "e f",
            "sh",
            "-c",
            "X_PWD=g y",
        ];
        let shown = words(&all.map(str::to_owned));
        assert_eq!(
            shown,
            [
                "env",
                "PGPASSWORD=***",
                "redis-cli",
                "--password=***",
                "-a",
                "***",
                "sh",
                "-c",
                "X_PWD=*** y"
            ]
        );
    }
}
