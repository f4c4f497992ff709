//! What the labeller has done, as numbers, and as a file for node_exporter's textfile collector.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Declares each number once: its field, its name, what it is and what it says.
macro_rules! counters {
    ($($field:ident $kind:literal $name:literal $help:literal)*) => {
        /// The numbers.
        #[derive(Debug, Default)]
        pub struct Counters {
            $(#[doc = $help] pub $field: AtomicU64,)*
        }

        /// The numbers at one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counted {
            $(#[doc = $help] pub $field: u64,)*
        }

        impl Counters {
            /// The numbers now.
            #[must_use]
            pub fn now(&self) -> Counted {
                Counted { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }

        impl Counted {
            /// As Prometheus reads them.
            #[must_use]
            pub fn to_text(&self) -> String {
                let mut out = String::new();
                $(
                    let _ = writeln!(out, "# HELP saiga_streams_{} {}", $name, $help);
                    let _ = writeln!(out, "# TYPE saiga_streams_{} {}", $name, $kind);
                    let _ = writeln!(out, "saiga_streams_{} {}", $name, self.$field);
                )*
                out
            }
        }
    };
}

counters! {
    set "counter" "labels_set_total" "Hints put on files that had none."
    gated "counter" "labels_gated_total" "Those of them that were put there before the open returned."
    lost "counter" "labels_lost_total" "Hints that were found missing from files that had them."
    reapplied "counter" "labels_reapplied_total" "Lost hints that were put back."
    missed "counter" "labels_missed_total" "Names with a rule that were gone before their file was labelled."
    refused "counter" "labels_refused_total" "Hints that did not take, or files that could not be opened."
    kept "counter" "labels_kept_total" "Files whose hint somebody else had set, and which kept it."
    overflows "counter" "queue_overflows_total" "Times that the kernel dropped events; each led to a new look at everything."
    looks "counter" "looks_total" "Looks at every file."
    reloads "counter" "rules_reloads_total" "Times that new rules were taken up."
    bad_rules "counter" "rules_rejected_total" "Times that new rules could not be read and the old ones stayed."
    pinned "gauge" "pinned_files" "Files whose inode is kept in memory, and their hint with it."
    directories "gauge" "directories" "Directories given or linked from them that are watched now."
    gate_shut "gauge" "gate_active" "1 while opens wait for their label."
    stalls "counter" "gate_stalls_total" "Times that the watchdog opened the gate."
    held "gauge" "gate_held_max_microseconds" "The longest that the gate took to answer one open."
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Replaces the file at `path` in one step; the umask decides who can read it.
///
/// # Errors
/// When it cannot be written; the old one stays.
pub fn write_file(path: &Path, text: &str) -> io::Result<()> {
    replace(path, text, 0o666)
}

/// The same with a mode, of which the umask is taken.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // The collector reads *.prom only, so it never sees this one.
    name.push(format!(".{}.new", std::process::id()));
    let new: PathBuf = path.with_file_name(name);
    // One that was killed may have left it; whoever owns the folder may have put a link there, which must not lead us.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = std::fs::File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&new);
    let written = file
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let counters = Counters::default();
        count(&counters.set);
        let text = counters.now().to_text();
        let expected = "# HELP saiga_streams_labels_set_total Hints put on files that had none.\n\
                        # TYPE saiga_streams_labels_set_total counter\n\
                        saiga_streams_labels_set_total 1\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("\nsaiga_streams_gate_active 0\n"));
    }

    #[test]
    fn the_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saiga.prom");
        write_file(&path, "old").unwrap();
        write_file(&path, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_file(&folder.path().join("no/such"), "new").is_err());
    }

    #[test]
    fn a_link_in_the_folder_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (
            folder.path().join("saiga.prom"),
            folder.path().join("other"),
        );
        std::fs::write(&other, "mine").unwrap();
        let name = format!("saiga.prom.{}.new", std::process::id());
        std::os::unix::fs::symlink(&other, folder.path().join(name)).unwrap();
        write_file(&path, "numbers").unwrap();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "mine");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "numbers");
        assert!(!path.is_symlink());
    }
}
