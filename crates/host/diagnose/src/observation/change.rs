//! A change under test: the load before and after it, from one experiment.

/// Two configurations that an experiment compared, pair by pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub before: Side,
    pub after: Side,
    /// Throughput after the change divided by that before: the median over pairs.
    pub ratio: f64,
    /// The 95 % confidence interval of `ratio`; `None` with too few pairs.
    pub interval: Option<[f64; 2]>,
    /// NUMA nodes of the machine, if they are known.
    pub nodes: Option<u32>,
}

/// One of the two configurations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Side {
    /// Name of the arm.
    pub name: String,
    /// Mean load; `None` if the experiment has no response times.
    pub load: Option<Load>,
    pub binding: Binding,
    /// Share of the machine's CPUs that the server used, between 0 and 1, if it was measured.
    pub busy: Option<f64>,
}

/// Means over the accepted runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// `N`.
    pub clients: f64,
    /// `X`: requests per second.
    pub throughput: f64,
    /// `R` in milliseconds.
    pub response_ms: f64,
}

/// Where a command line binds a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Binding {
    /// CPUs or nodes of the CPUs, as written.
    pub cpus: Option<String>,
    /// Nodes of the memory, as written.
    pub memory: Option<String>,
}

impl Binding {
    /// Reads the options of `taskset -c` and `numactl` in a command line (`man 1 taskset`, `man 8
    /// numactl`).
    #[must_use]
    pub fn of(command: &str) -> Self {
        let mut binding = Self::default();
        let mut words = command.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let (name, joined) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let place = match name {
                "-c" | "--cpu-list" | "-C" | "--physcpubind" | "-N" | "--cpunodebind" => {
                    &mut binding.cpus
                }
                "-m" | "--membind" | "-p" | "--preferred" | "-i" | "--interleave" => {
                    &mut binding.memory
                }
                "-l" | "--localalloc" => {
                    binding.memory = Some("the node of the CPUs".to_owned());
                    continue;
                }
                // The server's own options follow.
                _ if is_program(name) => break,
                _ => continue,
            };
            *place = joined.or_else(|| words.next()).map(str::to_owned);
        }
        binding
    }
}

/// Whether a word is a program other than those that bind.
fn is_program(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let binds = [
        "taskset", "numactl", "env", "nice", "ionice", "setpriv", "chrt",
    ];
    let is_word = name.starts_with(|first: char| first.is_ascii_alphabetic());
    is_word && !binds.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_read_from_command_lines() {
        let cases = [
            ("taskset -c 0-31 mysqld --port=1 -c x", Some("0-31"), None),
            (
                "numactl -C 0-31 --membind=0 mysqld",
                Some("0-31"),
                Some("0"),
            ),
            (
                "/usr/bin/numactl --cpunodebind 1 -l redis-server",
                Some("1"),
                Some("the node of the CPUs"),
            ),
            ("numactl --interleave=all mysqld", None, Some("all")),
            ("redis-server --port 6379 -c 3", None, None),
        ];
        for (command, cpus, memory) in cases {
            let binding = Binding {
                cpus: cpus.map(str::to_owned),
                memory: memory.map(str::to_owned),
            };
            assert_eq!(Binding::of(command), binding, "{command}");
        }
    }
}
