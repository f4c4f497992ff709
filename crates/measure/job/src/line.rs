//! Makes the command lines that start the programs of an experiment file.
//!
//! In: a [`Launch`] and words, or a hook. Out: a [`CommandLine`] with environment, CPUs, memory
//! policy, user and directory, under `saiga run` if the file asks for Saiga.

use std::path::{Path, PathBuf};

use saiga_experiment::file::{Hook, Launch};
use saiga_process::account::Account;
use saiga_process::child::CommandLine;

/// UID and GID of a user that this machine does not have. setuid(2) rejects -1, so no program
/// starts.
const UNKNOWN_ID: u32 = u32::MAX;

/// The command `words` with the options of `launch`; `tool` is the path of this program.
pub(crate) fn with_launch(launch: &Launch, words: &[String], tool: &Path) -> CommandLine {
    let Launch {
        env,
        cpus,
        memory,
        saiga,
        user,
        directory,
    } = launch;
    // --require: without it, an arm whose library is missing would silently run on the kernel.
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

/// The account to switch to; `None` if this process already runs as that user.
fn account(name: &str) -> Option<Account> {
    let known = Account::named(name).unwrap_or(Account {
        name: name.to_owned(),
        uid: UNKNOWN_ID,
        gid: UNKNOWN_ID,
        home: PathBuf::new(),
    });
    (rustix::process::geteuid().as_raw() != known.uid).then_some(known)
}

pub(crate) fn shell(command: &str) -> CommandLine {
    CommandLine::new("sh", ["-c", command])
}

pub(crate) fn hook(hook: &Hook) -> CommandLine {
    shell(&hook.command)
}
