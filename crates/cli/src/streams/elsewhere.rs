//! Files of a server outside the labelled directories. The server's option files are read with
//! `my_print_defaults`.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use saiga_streams::elsewhere::{self, Elsewhere};
use saiga_streams::route::System;

/// Sections of option files that any version of the servers reads.
const SECTIONS: [&str; 4] = ["mysqld", "server", "mariadb", "mariadbd"];
/// Time limit, because an option file may be a pipe without a writer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Finds files of the servers in `dirs` that no label covers.
pub(super) fn find(dirs: &[PathBuf], system: &System) -> Vec<Elsewhere> {
    elsewhere::find(dirs, system, &defaults)
}

/// Output of `my_print_defaults`; empty if it is not installed or takes too long.
fn defaults(own: &[String]) -> Vec<String> {
    let mut command = Command::new("my_print_defaults");
    command.args(own).args(SECTIONS);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.stdout(Stdio::piped()).spawn() else {
        return Vec::new();
    };
    let (send, received) = channel();
    if let Some(mut stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = String::new();
            // The receiver has timed out if the send fails.
            let _ = stdout.read_to_string(&mut text).map(|_| send.send(text));
        });
    }
    let text = received.recv_timeout(PATIENCE).unwrap_or_default();
    let _ = child.kill();
    let _ = child.wait();
    text.lines().map(str::to_owned).collect()
}
