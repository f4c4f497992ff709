//! The flags of redis-benchmark as operators write them.
//!
//! Known are those of redis-benchmark 7; where the server is, how the result is printed, and
//! how often it is repeated is our own business.

/// Tests that have a cell each.
const TESTS: [&str; 2] = ["set", "get"];

/// What the flags say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags {
    /// `-t`, each with a cell of its own.
    pub tests: Vec<String>,
    /// `-c`.
    pub clients: u32,
    /// `-n`.
    pub requests: u64,
    /// `-d`.
    pub value_bytes: u32,
    /// `-r`; 0 is one key.
    pub keys: u32,
    /// `-P`.
    pub pipeline: u32,
    /// `--threads`.
    pub threads: u32,
    /// `-k 0`.
    pub reconnect: bool,
    /// `--cluster`.
    pub cluster: bool,
    /// What is passed on as it is: `-e`, `--enable-tracking` and the like.
    pub others: Vec<String>,
}

/// Flags that cannot be used, whether they have a value, and what to do instead.
const OURS: [(&str, bool, &str); 20] = [
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
        "it would lead to another server than the arm's; leave it out: the port is that of the arm's \
         first server",
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
    ("-l", false, "plan.pairs says how often"),
    (
        "-I",
        false,
        "idle connections are those of saiga compare redis --idle",
    ),
    ("--help", false, "see redis-benchmark --help"),
    ("--version", false, "versions are in the result"),
];
const DATABASE: &str = "FLUSHALL and the keys for GET are of database 0; leave it out";
const LOG_IN: &str = "readiness, FLUSHALL and the keys for GET log in as nobody; start the server without a \
                      password, on 127.0.0.1, or measure with kind = \"command\"";
const TLS: &str = "readiness, FLUSHALL and the keys for GET speak no TLS; let the server have a port without \
                   it, or measure with kind = \"command\"";
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
    /// Reads the words behind `redis-benchmark`.
    ///
    /// # Errors
    /// One sentence for each mistake.
    pub fn parse(words: &[String]) -> Result<Self, Vec<String>> {
        let mut flags = Self::default();
        let mut wrong = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let word = word.as_str();
            if let Some((_, has_value, instead)) = OURS.iter().find(|(flag, ..)| *flag == word) {
                wrong.push(format!("{word} is not for you to say: {instead}"));
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
                wrong.push(format!("{word} has no value, or is not known"));
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
                return Err(format!(
                    "{flag} is not a flag of redis-benchmark that can be used here"
                ));
            }
        }
        Ok(())
    }

    /// The words for one of the tests.
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
            return Err(format!("-t {test}: only set and get are compared"));
        }
        if !tests.iter().any(|known| known == test) {
            tests.push(test.to_owned());
        }
    }
    Ok(tests)
}

fn number(flag: &str, value: &str, least: u32) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("{flag} {value}: not a whole number from {least}"))
}

#[cfg(test)]
mod tests_of_flags {
    use super::*;

    fn parse(text: &str) -> Result<Flags, Vec<String>> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Flags::parse(&words)
    }

    /// Those of the procedure for Gazelle and Redis.
    #[test]
    fn the_operators_flags_are_understood() {
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
    fn every_mistake_is_told() {
        let wrong = parse("-h 10.0.0.1 -c many --frob 3 -t lpush -q -n").unwrap_err();
        assert_eq!(wrong.len(), 6, "{wrong:?}");
        assert!(
            wrong[0].starts_with("-h is not for you to say"),
            "{wrong:?}"
        );
        assert_eq!(wrong[3], "-t lpush: only set and get are compared");
        assert_eq!(wrong[5], "-n has no value, or is not known");
    }

    /// What only redis-benchmark would do is not what readiness and restore do.
    #[test]
    fn flags_that_give_wrong_figures_are_refused_with_a_way_out() {
        for (line, why) in [
            (
                "-u redis://10.0.0.1:6379 -c 5",
                "another server than the arm's",
            ),
            ("--dbnum 3", "are of database 0; leave it out"),
            ("-a secret", "start the server without a password"),
            ("--user app", "start the server without a password"),
            ("--tls", "a port without it"),
            ("--cacert ca.pem", "a port without it"),
        ] {
            let wrong = parse(line).unwrap_err();
            let [told] = wrong.as_slice() else {
                panic!("{line}: {wrong:?}");
            };
            assert!(told.contains("is not for you to say: "), "{told}");
            assert!(told.contains(why) && !told.contains("secret"), "{told}");
        }
        let passed = parse("-e --seed 7").unwrap();
        assert_eq!(passed.others, ["-e", "--seed", "7"]);
    }
}
