//! Whether redis-benchmark draws its inputs from a seed: that of Redis 7.0 does not, and later ones
//! name the option in their help.

use std::time::Duration;

use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::process::CommandLine;
use saiga_experiment::tool;

use crate::server::PACKAGE;

/// The option.
pub const OPTION: &str = "--seed";
/// The help takes milliseconds.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks the redis-benchmark of this machine for its help. One that gives none takes no seed.
#[must_use]
pub fn is_taken() -> bool {
    let line = CommandLine::new("redis-benchmark", ["--help"]);
    let help = tempfile::tempdir().ok().and_then(|dir| {
        let errors = dir.path().join("errors");
        tool::ask(&line, PACKAGE, &errors, LIMIT, &Interrupt::never()).ok()
    });
    help.is_some_and(|help| help.is_ok_and(|help| names_it(&help)))
}

fn names_it(help: &str) -> bool {
    help.split_whitespace().any(|word| word == OPTION)
}

#[cfg(test)]
mod tests {
    use super::names_it;

    #[test]
    fn an_option_is_a_word_of_the_help() {
        assert!(names_it(
            " -x  Read last argument from STDIN.\n --seed <num>  Set the seed\n"
        ));
        assert!(!names_it(
            " -e  If server replies with errors, --seeds are shown\n"
        ));
    }
}
