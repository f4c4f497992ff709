//! Finds out from the help text of redis-benchmark whether it has the option `--seed`. Redis 7.0
//! does not have the option; later versions do.

use std::time::Duration;

use saiga_experiment::tool;
use saiga_process::child::CommandLine;
use saiga_process::interrupt::Interrupt;

use crate::server::PACKAGE;

/// The option for the seed of redis-benchmark's random keys.
pub const OPTION: &str = "--seed";
/// Timeout of `--help`, which takes milliseconds.
const LIMIT: Duration = Duration::from_secs(10);

/// Whether the redis-benchmark of this machine has the option; false if its `--help` fails.
#[must_use]
pub fn is_taken() -> bool {
    let line = CommandLine::new("redis-benchmark", ["--help"]);
    let help = tempfile::tempdir().ok().and_then(|dir| {
        let errors = dir.path().join("errors");
        tool::capture(&line, PACKAGE, &errors, LIMIT, &Interrupt::never()).ok()
    });
    help.is_some_and(|help| help.is_ok_and(|help| contains_option(&help)))
}

fn contains_option(help: &str) -> bool {
    help.split_whitespace().any(|word| word == OPTION)
}

#[cfg(test)]
mod tests {
    use super::contains_option;

    #[test]
    fn the_option_must_be_a_whole_word_of_the_help() {
        assert!(contains_option(
            " -x  Read last argument from STDIN.\n --seed <num>  Set the seed\n"
        ));
        assert!(!contains_option(
            " -e  If server replies with errors, --seeds are shown\n"
        ));
    }
}
