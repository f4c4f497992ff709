//! The counters of the labeller, and their file for node_exporter's textfile collector.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// Declares each counter once: field, type, name and help text of its metric.
macro_rules! counters {
    ($($field:ident $kind:literal $name:literal $help:literal)*) => {
        /// The counters of a running labeller.
        #[derive(Debug, Default)]
        pub struct Counters {
            $(#[doc = $help] pub $field: AtomicU64,)*
        }

        /// The values of all counters at one time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counted {
            $(#[doc = $help] pub $field: u64,)*
        }

        impl Counters {
            /// Returns the present values.
            #[must_use]
            pub fn now(&self) -> Counted {
                Counted { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }

        impl Counted {
            /// Formats the values for Prometheus.
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
    gated "counter" "labels_gated_total" "Hints put on files before the open returned."
    lost "counter" "labels_lost_total" "Hints found missing on files that had them."
    reapplied "counter" "labels_reapplied_total" "Lost hints that were set again."
    missed "counter" "labels_missed_total" "Files with a rule that were deleted or renamed before they were labelled."
    refused "counter" "labels_refused_total" "Hints that the kernel refused, and files that could not be opened."
    kept "counter" "labels_kept_total" "Files that kept the hint of another program."
    overflows "counter" "queue_overflows_total" "Times that the kernel dropped events; each caused a scan of all files."
    scans "counter" "looks_total" "Scans of all files."
    reloads "counter" "rules_reloads_total" "Times that changed rules were loaded."
    bad_rules "counter" "rules_rejected_total" "Times that changed rules were not valid and the old ones stayed."
    pinned "gauge" "pinned_files" "Files whose inode and hint are kept in memory."
    directories "gauge" "directories" "Watched directories, given or found by links."
    gate_closed "gauge" "gate_active" "1 while opens wait for their label, 0 otherwise."
    stalls "counter" "gate_stalls_total" "Times that the watchdog opened the gate."
    held "gauge" "gate_held_max_microseconds" "The longest time that the gate took for one open."
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_format_of_prometheus() {
        let counters = Counters::default();
        count(&counters.set);
        let text = counters.now().to_text();
        let expected = "# HELP saiga_streams_labels_set_total Hints put on files that had none.\n\
                        # TYPE saiga_streams_labels_set_total counter\n\
                        saiga_streams_labels_set_total 1\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("\nsaiga_streams_gate_active 0\n"));
    }
}
