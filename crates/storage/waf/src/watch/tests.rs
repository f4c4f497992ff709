//! Watchers of recorded drives whose directories exchange names.

use std::cell::Cell;
use std::fs;

use tempfile::TempDir;

use super::*;
use crate::page::Page;

/// Directories of recorded drives, and the sample file of their watchers.
struct Host(TempDir);

impl Host {
    fn new(drives: &[&str]) -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        for name in drives {
            fs::create_dir(host.path(name)).unwrap();
            let mut page = vec![b' '; 4096];
            page[0..2].copy_from_slice(&0x19e5_u16.to_le_bytes());
            page[4..4 + name.len()].copy_from_slice(name.as_bytes());
            page[24..27].copy_from_slice(b"HWE");
            page[96..100].fill(0);
            page[256..258].fill(0);
            host.write(name, Page::Controller, &page);
            host.write(name, Page::VendorC0 { uuid: 0 }, &[0; 512]);
        }
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, page: Page, bytes: &[u8]) {
        fs::write(self.path(name).join(page.file_name()), bytes).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn swap(&self, one: &str, other: &str) {
        self.rename(one, "meanwhile");
        self.rename(other, one);
        self.rename("meanwhile", other);
    }

    fn watcher(&self) -> Watcher {
        Watcher::new(&self.path("waf.db"), None)
    }

    /// Runs a round; returns the serial number of each drive, or its error.
    fn round(&self, watcher: &mut Watcher, names: &[&str]) -> Vec<Result<String, WatchError>> {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        let results = watcher.round(&paths, &|| false).into_iter();
        results
            .map(|result| result.map(|kept| kept.sample.drive.serial))
            .collect()
    }

    fn one(&self, watcher: &mut Watcher, name: &str) -> Result<String, WatchError> {
        self.round(watcher, &[name]).remove(0)
    }
}

fn is_taken(result: &Result<String, WatchError>) -> bool {
    matches!(result, Err(WatchError::Lock(LockError::Taken { .. })))
}

/// The kernel may number drives in another order after a reboot.
#[test]
fn watchers_whose_drives_exchanged_names_release_their_locks() {
    let host = Host::new(&["n0", "n1"]);
    let (mut first, mut second) = (host.watcher(), host.watcher());
    assert_eq!(host.one(&mut first, "n0").unwrap(), "n0");
    assert_eq!(host.one(&mut second, "n1").unwrap(), "n1");
    assert!(is_taken(&host.one(&mut host.watcher(), "n0")));
    host.swap("n0", "n1");
    // The other watcher has not had a round yet.
    assert!(is_taken(&host.one(&mut first, "n0")));
    assert_eq!(host.one(&mut second, "n1").unwrap(), "n0");
    assert_eq!(host.one(&mut first, "n0").unwrap(), "n1");
    assert_eq!(host.one(&mut second, "n1").unwrap(), "n0");
    assert!(is_taken(&host.one(&mut host.watcher(), "n1")));
}

#[test]
fn a_watcher_of_both_names_keeps_both_drives() {
    let host = Host::new(&["n0", "n1"]);
    let mut both = host.watcher();
    let serials = |both: &mut Watcher| -> Vec<String> {
        let all = host.round(both, &["n0", "n1"]).into_iter();
        all.map(Result::unwrap).collect()
    };
    assert_eq!(serials(&mut both), ["n0", "n1"]);
    host.swap("n0", "n1");
    assert_eq!(serials(&mut both), ["n1", "n0"]);
    for name in ["n0", "n1"] {
        assert!(is_taken(&host.one(&mut host.watcher(), name)), "{name}");
    }
}

#[test]
fn a_drive_that_left_its_name_can_be_watched_by_another_name() {
    let host = Host::new(&["n0"]);
    let mut watcher = host.watcher();
    host.one(&mut watcher, "n0").unwrap();
    // The drive is present, but could not be identified.
    host.write("n0", Page::Namespaces, &[1; 9]);
    let error = host.one(&mut watcher, "n0").unwrap_err();
    assert!(matches!(error, WatchError::Identity { .. }), "{error}");
    host.write("n0", Page::Namespaces, &[0; 4096]);
    assert!(is_taken(&host.one(&mut host.watcher(), "n0")));
    host.rename("n0", "n2");
    assert!(host.one(&mut watcher, "n0").unwrap_err().is_gone());
    assert_eq!(host.one(&mut host.watcher(), "n2").unwrap(), "n0");
}

/// A signal must not wait for all drives, each of which may take seconds to fail.
#[test]
fn a_round_ends_between_two_drives() {
    let host = Host::new(&["n0", "n1", "n2"]);
    let paths = ["n0", "n1", "n2"].map(|name| host.path(name));
    let asked = Cell::new(0);
    let is_over = || asked.replace(asked.get() + 1) == 2;
    assert_eq!(host.watcher().round(&paths, &is_over).len(), 2);
}
