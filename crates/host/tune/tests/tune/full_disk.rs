//! Journals on a file system that is full, as root: a small one in memory.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use saiga_tune::apply::{ApplyError, apply};
use saiga_tune::confirm::confirm;
use saiga_tune::store::Directory;
use saiga_tune::undo::{Conflicts, undo};

use crate::fake::{differences, identity};
use crate::faults::{goal, host, options};
use crate::machines;

/// A file system of 1 MiB.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let words = ["-t", "tmpfs", "-o", "size=1m,mode=700", "saiga-tune-test"];
        let status = Command::new("mount").args(words).arg(dir.path()).status();
        assert!(status.unwrap().success());
        Self(dir)
    }

    /// Leaves no block free.
    fn fill(&self) {
        let mut file = fs::File::create(self.0.path().join("rest")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_disk_that_becomes_full_has_room_for_undo() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (machine, disk) = (machines::kunpeng(32), Mounted::new());
    let before = host(&machine);
    let plan = before.plan(&machine, &goal());
    let mut fake = before.fresh();
    let mut store = Directory::lock(disk.path()).unwrap();
    let found = identity(&machine);
    // The disk is full from the first step on.
    let mut started = |_: &str| -> io::Result<()> {
        disk.fill();
        Ok(())
    };
    let applied = apply(
        &plan,
        &found,
        &mut fake,
        &mut store,
        options(Some(60)),
        &mut started,
    );
    let id = applied.unwrap().id;
    confirm(&id, &mut fake, &mut store, 1001).unwrap();
    let report = undo(&id, &mut fake, &mut store, Conflicts::Report).unwrap();
    assert!(report.is_complete, "{report:#?}");
    assert_eq!(report.journal_error, None);
    assert_eq!(differences(&fake.values, &before.values), [""; 0]);
    // Nothing is begun without room.
    let again = apply(
        &plan,
        &found,
        &mut fake,
        &mut store,
        options(Some(60)),
        &mut started,
    );
    assert!(matches!(again, Err(ApplyError::Journal(_))), "{again:?}");
    assert_eq!(differences(&fake.values, &before.values), [""; 0]);
}
