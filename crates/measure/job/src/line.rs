//! From what a file says of a program to the line that starts it.

use std::path::Path;

use saiga_experiment::account::Account;
use saiga_experiment::file::{Dress, Hook};
use saiga_experiment::process::CommandLine;

/// Stands for the number of a user that this machine does not know: nothing starts as them.
const NOBODY_KNOWS: u32 = u32::MAX;

/// `words` in their surroundings; `tool` is this tool, under which Saiga is loaded.
pub(crate) fn dressed(dress: &Dress, words: &[String], tool: &Path) -> CommandLine {
    let Dress {
        env,
        cpus,
        memory,
        saiga,
        user,
        directory,
    } = dress;
    // With --require: an arm under Saiga that quietly is not would be a false result.
    let prefix = [tool.to_string_lossy().as_ref(), "run", "--require", "--"].map(str::to_owned);
    let prefix = if *saiga { &prefix[..] } else { &[] };
    let mut all = prefix.iter().chain(words).cloned();
    let program = all.next().unwrap_or_default();
    CommandLine {
        env: env.clone(),
        cpus: cpus.clone(),
        memory: memory.clone(),
        account: user.as_deref().and_then(account),
        directory: directory.clone(),
        ..CommandLine::new(&program, all)
    }
}

/// `None` when we are that user.
fn account(name: &str) -> Option<Account> {
    let known = Account::named(name).unwrap_or(Account {
        name: name.to_owned(),
        uid: NOBODY_KNOWS,
        gid: NOBODY_KNOWS,
    });
    (rustix::process::geteuid().as_raw() != known.uid).then_some(known)
}

/// A line for a shell.
pub(crate) fn shell(command: &str) -> CommandLine {
    CommandLine::new("sh", ["-c", command])
}

/// The line of a hook.
pub(crate) fn hook(hook: &Hook) -> CommandLine {
    shell(&hook.command)
}
