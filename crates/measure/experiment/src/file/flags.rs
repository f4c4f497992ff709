//! Parses flags of redis-benchmark in experiment files.
//!
//! Accepts the flags of redis-benchmark 7 that describe the load. Flags about the server's address,
//! the output and repetitions are refused, because Saiga sets these itself.

/// Supported tests; each has its own cell.
const TESTS: [&str; 2] = ["set", "get"];

/// The parsed flags; each field names its flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags {
    /// `-t`; each test has its own cell.
    pub tests: Vec<String>,
    /// `-c`, the number of connections.
    pub clients: u32,
    /// `-n`, the number of requests per run.
    pub requests: u64,
    /// `-d`, the size of values in bytes.
    pub value_bytes: u32,
    /// `-r`; 0 means a single key.
    pub keys: u32,
    /// `-P`, the number of requests per batch.
    pub pipeline: u32,
    /// `--threads`, the threads of the client.
    pub threads: u32,
    /// `-k 0`: each request opens a connection.
    pub reconnect: bool,
    pub cluster: bool,
    /// Flags passed on unchanged, such as `-e` and `--enable-tracking`.
    pub others: Vec<String>,
}

/// Refused flags, whether they have a value, and the reason or alternative.
const REFUSED: [(&str, bool, &str); 20] = [
    (
        "-h",
        true,
        "the servers are those of the arms, on this host",
    ),
    ("-p", true, "the port is that of the arm's first server"),
    ("-s", true, "the port is that of the arm's first server"),
    (
        "-u",
        true,
        "it could name another server than the arm's; remove it: the port is that of the arm's first \
         server",
    ),
    ("--dbnum", true, DATABASE),
    ("-a", true, LOG_IN),
    ("--user", true, LOG_IN),
    ("--tls", false, TLS),
    ("--sni", true, TLS),
    ("--cacert", true, TLS),
    ("--cacertdir", true, TLS),
    ("--cert", true, TLS),
    ("--key", true, TLS),
    ("-q", false, "results are read from --csv, which is added"),
    ("--csv", false, "it is added"),
    (
        "--precision",
        true,
        "results are read from --csv, which is added",
    ),
    ("-l", false, "plan.pairs is the number of runs"),
    (
        "-I",
        false,
        "idle connections are those of saiga compare redis --idle",
    ),
    ("--help", false, "see redis-benchmark --help"),
    ("--version", false, "versions are in the result"),
];
const DATABASE: &str = "FLUSHALL and the keys for GET use database 0; remove it";
const LOG_IN: &str = "the readiness probe, FLUSHALL and the keys for GET use no log-in; start the \
                      server without a password, on 127.0.0.1, or use kind = \"command\"";
const TLS: &str = "the readiness probe, FLUSHALL and the keys for GET use no TLS; give the server a \
                   port without it, or use kind = \"command\"";
/// Flags without a value that are passed on.
const PLAIN: [&str; 3] = ["-3", "-e", "--enable-tracking"];
/// Flags with a value that are passed on.
const VALUED: [&str; 1] = ["--seed"];

impl Default for Flags {
    fn default() -> Self {
        Self {
            tests: TESTS.map(str::to_owned).to_vec(),
            clients: 50,
            requests: 100_000,
            value_bytes: 3,
            keys: 0,
            pipeline: 1,
            threads: 1,
            reconnect: false,
            cluster: false,
            others: Vec::new(),
        }
    }
}

impl Flags {
    /// Parses the words after `redis-benchmark`.
    ///
    /// # Errors
    /// Returns a sentence for each invalid flag.
    pub fn parse(words: &[String]) -> Result<Self, Vec<String>> {
        let mut flags = Self::default();
        let mut wrong = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let word = word.as_str();
            if let Some((_, has_value, instead)) = REFUSED.iter().find(|(flag, ..)| *flag == word) {
                wrong.push(format!("{word} cannot be set: {instead}"));
                if *has_value {
                    words.next();
                }
            } else if word == "--cluster" {
                flags.cluster = true;
            } else if PLAIN.contains(&word) {
                flags.others.push(word.to_owned());
            } else if let Some(value) = words.next() {
                wrong.extend(flags.set(word, value).err());
            } else {
                wrong.push(format!("{word} is unknown or needs a value"));
            }
        }
        if wrong.is_empty() {
            Ok(flags)
        } else {
            Err(wrong)
        }
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        match flag {
            "-t" => self.tests = tests(value)?,
            "-c" => self.clients = number(flag, value, 1)?,
            "-n" => self.requests = number(flag, value, 1)?.into(),
            "-d" => self.value_bytes = number(flag, value, 1)?,
            "-r" => self.keys = number(flag, value, 0)?,
            "-P" => self.pipeline = number(flag, value, 1)?,
            "--threads" => self.threads = number(flag, value, 1)?,
            "-k" => self.reconnect = number(flag, value, 0)? == 0,
            _ if VALUED.contains(&flag) => {
                self.others.extend([flag.to_owned(), value.to_owned()]);
            }
            _ => {
                return Err(format!("{flag} is not a supported flag of redis-benchmark"));
            }
        }
        Ok(())
    }

    /// The flags for one of the tests, for a command line.
    #[must_use]
    pub fn words(&self, test: &str) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut option = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        option("-t", test.to_owned());
        option("-c", self.clients.to_string());
        option("-n", self.requests.to_string());
        option("-d", self.value_bytes.to_string());
        if self.keys > 0 {
            option("-r", self.keys.to_string());
        }
        if self.pipeline != 1 {
            option("-P", self.pipeline.to_string());
        }
        if self.threads != 1 {
            option("--threads", self.threads.to_string());
        }
        if self.reconnect {
            option("-k", "0".to_owned());
        }
        if self.cluster {
            words.push("--cluster".to_owned());
        }
        words.extend(self.others.iter().cloned());
        words.push("--csv".to_owned());
        words
    }
}

fn tests(value: &str) -> Result<Vec<String>, String> {
    let mut tests: Vec<String> = Vec::new();
    for test in value.split(',').map(str::trim) {
        if !TESTS.contains(&test) {
            return Err(format!("-t {test}: only set and get are supported"));
        }
        if !tests.iter().any(|known| known == test) {
            tests.push(test.to_owned());
        }
    }
    Ok(tests)
}

fn number(flag: &str, value: &str, least: u32) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("{flag} {value}: must be a whole number from {least}"))
}

#[cfg(test)]
mod tests_of_flags {
    use super::*;

    fn parse(text: &str) -> Result<Flags, Vec<String>> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Flags::parse(&words)
    }

    /// Flags from the test procedure for Gazelle and Redis.
    #[test]
    fn flags_of_a_test_procedure_are_parsed() {
        let line = "-c 1000 -n 10000000 -d 3 -r 10000000 -t set,get --threads 12 --cluster";
        let flags = parse(line).unwrap();
        assert_eq!((flags.clients, flags.requests), (1000, 10_000_000));
        assert_eq!((flags.keys, flags.threads), (10_000_000, 12));
        assert_eq!(flags.tests, ["set", "get"]);
        assert_eq!(
            flags.words("get").join(" "),
            "-t get -c 1000 -n 10000000 -d 3 -r 10000000 --threads 12 --cluster --csv"
        );
    }

    #[test]
    fn every_invalid_flag_is_reported() {
        let wrong = parse("-h 10.0.0.1 -c many --frob 3 -t lpush -q -n").unwrap_err();
        assert_eq!(wrong.len(), 6, "{wrong:?}");
        assert!(wrong[0].starts_with("-h cannot be set"), "{wrong:?}");
        assert_eq!(wrong[3], "-t lpush: only set and get are supported");
        assert_eq!(wrong[5], "-n is unknown or needs a value");
    }

    /// Readiness probe and restore would not follow these flags.
    #[test]
    fn flags_that_give_wrong_figures_are_refused_with_a_way_out() {
        for (line, reason) in [
            (
                "-u redis://10.0.0.1:6379 -c 5",
                "another server than the arm's",
            ),
            ("--dbnum 3", "use database 0; remove it"),
            ("-a secret", "start the server without a password"),
            ("--user app", "start the server without a password"),
            ("--tls", "a port without it"),
            ("--cacert ca.pem", "a port without it"),
        ] {
            let wrong = parse(line).unwrap_err();
            let [message] = wrong.as_slice() else {
                panic!("{line}: {wrong:?}");
            };
            assert!(message.contains(" cannot be set: "), "{message}");
            assert!(
                message.contains(reason) && !message.contains("secret"),
                "{message}"
            );
        }
        let passed = parse("-e --seed 7").unwrap();
        assert_eq!(passed.others, ["-e", "--seed", "7"]);
    }
}
