//! Files of a server outside the labelled directories, with what `my_print_defaults` says of its option files.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use saiga_streams::elsewhere::{self, Elsewhere};
use saiga_streams::route::System;

/// The sections of option files that servers read, whatever their version.
const SECTIONS: [&str; 4] = ["mysqld", "server", "mariadb", "mariadbd"];
/// An option file may be a pipe that nobody writes to.
const PATIENCE: Duration = Duration::from_secs(2);

/// What lies elsewhere.
pub(super) fn find(dirs: &[PathBuf], system: &System) -> Vec<Elsewhere> {
    elsewhere::find(dirs, system, &defaults)
}

/// What option files say; nothing where the program is not installed, or takes too long.
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
            // Whoever waits has given up, if it cannot be sent.
            let _ = stdout.read_to_string(&mut text).map(|_| send.send(text));
        });
    }
    let text = received.recv_timeout(PATIENCE).unwrap_or_default();
    let _ = child.kill();
    let _ = child.wait();
    text.lines().map(str::to_owned).collect()
}
