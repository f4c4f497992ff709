//! A kernel that refuses hints, or accepts and forgets them: each file is logged once and counted
//! as refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use saiga_streams::control::Control;
use saiga_streams::hint::Hint;
use saiga_streams::labeller::{Database, Ended, Level, Mode, Options, run};
use saiga_streams::route::System;
use saiga_streams::rules::RuleSet;
use saiga_streams::setter::Setter;

/// A kernel that gives the same answer to every hint and never stores one.
struct Answer(Result<(), Errno>);

impl Setter for Answer {
    fn name(&self) -> &'static str {
        "an answer"
    }

    fn read(&self, _: BorrowedFd<'_>) -> Result<Hint, Errno> {
        Ok(Hint::NotSet)
    }

    fn set(&self, _: BorrowedFd<'_>, _: Hint) -> Result<(), Errno> {
        self.0
    }
}

fn label_once(dir: &Path, setter: Answer) -> (Ended, Vec<String>) {
    let data = dir.join("data");
    fs::create_dir(&data).unwrap();
    for name in ["ibdata1", "undo_001", "auto.cnf"] {
        fs::write(data.join(name), "").unwrap();
    }
    let options = Options {
        databases: vec![Database {
            dir: data,
            rules: vec![RuleSet::Named("mysql".to_owned())],
        }],
        mode: Mode::Notify,
        once: true,
        force: false,
        scan_interval: Duration::from_secs(60),
        stall_limit: Duration::from_secs(1),
        drill: None,
        metrics: None,
        lock_dir: dir.join("locks"),
        kept: None,
        system: System::default(),
    };
    let warnings = RefCell::new(Vec::new());
    let control = Control::new().unwrap();
    let ended = run(&options, Arc::new(setter), &control, &|level, text| {
        if level == Level::Warn && text.contains(" gets no hint: ") {
            warnings.borrow_mut().push(text.to_owned());
        }
    });
    (ended.unwrap(), warnings.into_inner())
}

#[test]
fn refusals_are_named_and_counted() {
    for (answer, expected) in [
        (Err(Errno::INVAL), "Invalid argument"),
        (
            Err(Errno::PERM),
            "only the owner of the file or a process with CAP_FOWNER",
        ),
        (Ok(()), "the hint was accepted, but `-` is read back"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (ended, mut warnings) = label_once(folder.path(), Answer(answer));
        assert_eq!((ended.counted.refused, ended.counted.set), (2, 0));
        warnings.sort();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        for (warning, name) in warnings.iter().zip(["ibdata1", "undo_001"]) {
            assert!(
                warning.contains(name) && warning.contains(expected),
                "{warning}"
            );
        }
    }
}
