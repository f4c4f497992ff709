//! Calls of `saiga waf`: single ones, and a running watcher.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

use saiga_trials::{Signal, sys};
use serde_json::Value;

use crate::support::{Installation, Said, said};

/// Runs `saiga waf WORDS`.
pub(crate) fn waf(saiga: &Installation, words: &[&str]) -> Said {
    let words: Vec<&str> = [&["waf"], words].concat();
    said(&mut saiga.saiga(&words))
}

/// Runs `saiga waf WORDS`, which must succeed; returns its output.
pub(crate) fn must(saiga: &Installation, words: &[&str]) -> String {
    let said = waf(saiga, words);
    assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    said.stdout
}

/// Runs `saiga waf WORDS`, which must fail; returns its message.
pub(crate) fn refused(saiga: &Installation, words: &[&str]) -> String {
    let said = waf(saiga, words);
    assert_eq!(said.code, Some(2), "{words:?}: {said:?}");
    said.stderr
}

/// The report as JSON.
pub(crate) fn json(saiga: &Installation, file: &str) -> Value {
    let report = must(saiga, &["report", "--json", "--file", file]);
    serde_json::from_str(&report).unwrap()
}

/// A running watcher.
pub(crate) struct Watch {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    complaints: Lines<BufReader<ChildStderr>>,
}

impl Watch {
    pub(crate) fn start(saiga: &Installation, words: &[&str]) -> Self {
        let words: Vec<&str> = [&["waf", "watch", "--every", "1s"], words].concat();
        let mut command = saiga.saiga(&words);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            complaints: BufReader::new(child.stderr.take().unwrap()).lines(),
            child,
        }
    }

    /// The next output line with these words.
    pub(crate) fn next_line(&mut self, words: &str) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        lines.find(|line| line.contains(words)).expect(words)
    }

    pub(crate) fn next_warning(&mut self, words: &str) -> String {
        let mut lines = self.complaints.by_ref().map(Result::unwrap);
        lines.find(|line| line.contains(words)).expect(words)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn end(&mut self, signal: Signal) -> Option<i32> {
        sys::signal(self.pid(), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Has ended already if the test stopped it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
