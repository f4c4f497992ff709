//! Follows writes: bytes by hint, and whether each file was written with its hint.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use saiga_document::number;
use saiga_document::table::Table;
use saiga_process::interrupt::Interrupt;
use saiga_record::{HintBytes, Recorder};
use saiga_streams::hint::Hint;
use saiga_streams::rules::{FilePaths, Rule, Rules};
use serde_json::{Value, json};

use crate::VerifyError;

/// Time between two reads of the events.
const PAUSE: Duration = Duration::from_millis(50);
/// Buffer in the kernel for events that were not read yet.
const BUFFER_BYTES: u32 = 16 << 20;
/// Maximum number of files with a wrong hint in the text output.
const NAMED: usize = 20;
/// Partial blocks without a hint count as padding by the kernel if at least this many times their
/// bytes of the same file had the right hint.
const PADDED: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bytes {
    of_files: u64,
    /// Written for the file system itself, or for a file that was deleted before its name was read.
    of_none: u64,
}

/// Bytes of a file that were written with a wrong hint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct WrongHint {
    bytes: u64,
    path: PathBuf,
    wanted: Hint,
    found: Hint,
}

/// The writes of some time.
#[derive(Debug, Default)]
pub struct Traffic {
    time: Duration,
    lost: u64,
    by_hint: BTreeMap<Hint, Bytes>,
    /// Bytes of files that have a rule.
    checked: u64,
    /// In descending order of bytes.
    wrong: Vec<WrongHint>,
    /// Bytes by which the kernel fills up a block when a direct write into new space ends within
    /// it. They carry no hint (`iomap_dio_zero` in fs/iomap/direct-io.c).
    padding: u64,
}

/// Follows writes for `time`, or until Ctrl-C. `say` receives progress and warnings.
///
/// # Errors
/// The writes or their hints cannot be recorded: no right, or a kernel before Linux 6.9.
pub fn follow(
    dirs: &[PathBuf],
    time: Duration,
    rules: &Rules,
    say: &mut dyn FnMut(&str),
) -> Result<Traffic, VerifyError> {
    let interrupt = Interrupt::on_signals().map_err(VerifyError::Interrupt)?;
    let mut recorder = Recorder::without_trace(dirs, BUFFER_BYTES, None)?;
    if let Some(why) = recorder.why_not_bpf() {
        return Err(VerifyError::NoBpf(why.to_string()));
    }
    for volume in recorder.backing_volumes() {
        say(&format!(
            "following writes to {} ({}) for {}",
            volume.name,
            volume.kind,
            number::time(time)
        ));
    }
    // `None` if the end is beyond the range of the clock.
    let end = Instant::now().checked_add(time);
    while end.is_none_or(|end| Instant::now() < end)
        && !interrupt.wait(PAUSE).map_err(VerifyError::Interrupt)?
    {
        recorder.step()?;
        warn(recorder.remarks(), say);
    }
    let roots: Vec<PathBuf> = recorder
        .directories()
        .into_iter()
        .map(PathBuf::from)
        .collect();
    let (tally, remarks) = recorder.finish()?;
    warn(remarks, say);
    let traffic = Traffic {
        time: Duration::from_nanos(tally.duration_ns),
        lost: tally.lost,
        ..Traffic::default()
    };
    traffic.sum(tally.hints(), &roots, rules)
}

fn warn(remarks: Vec<String>, say: &mut dyn FnMut(&str)) {
    for remark in remarks {
        say(&format!("warning: {remark}"));
    }
}

fn hint_of(row: &HintBytes<'_>) -> Result<Hint, VerifyError> {
    let hint = row.hint.ok_or(VerifyError::NoHints)?;
    Hint::from_raw(hint.into()).ok_or(VerifyError::UnknownHint(hint))
}

/// The rule of a file in one of the directories.
fn rule_of<'a>(path: &Path, roots: &[PathBuf], rules: &'a Rules) -> Option<&'a Rule> {
    let relative = roots.iter().find_map(|root| path.strip_prefix(root).ok())?;
    // `path` may lead through links; rules of astream match the real path.
    let real = path.parent().and_then(|dir| dir.canonicalize().ok());
    let real = real.zip(path.file_name()).map(|(dir, name)| dir.join(name));
    let place = FilePaths {
        relative,
        absolute: real.as_deref().unwrap_or(path),
    };
    rules.find(&place).map(|(_, rule)| rule)
}

/// The hint that a rule requires, if `found` is a wrong one.
fn wanted_instead(rule: &Rule, found: Hint) -> Option<Hint> {
    let is_left_alone = found != Hint::NotSet && !rule.force;
    let is_well = rule.hint == Hint::NotSet || rule.hint == found || is_left_alone;
    (!is_well).then_some(rule.hint)
}

impl Traffic {
    fn sum<'a>(
        mut self,
        rows: impl Iterator<Item = HintBytes<'a>>,
        roots: &[PathBuf],
        rules: &Rules,
    ) -> Result<Self, VerifyError> {
        let mut well: HashMap<&str, u64> = HashMap::new();
        let mut parts = Vec::new();
        for row in rows {
            let found = hint_of(&row)?;
            let sum = self.by_hint.entry(found).or_default();
            let Some(file) = row.file else {
                sum.of_none += row.bytes;
                continue;
            };
            sum.of_files += row.bytes;
            let path = Path::new(file);
            let rule = rule_of(path, roots, rules);
            if rule.is_some() {
                self.checked += row.bytes;
            }
            let Some(wanted) = rule.and_then(|rule| wanted_instead(rule, found)) else {
                *well.entry(file).or_default() += row.bytes;
                continue;
            };
            let wrong = WrongHint {
                bytes: row.bytes,
                path: path.to_owned(),
                wanted,
                found,
            };
            if row.is_part && found == Hint::NotSet {
                parts.push((file, wrong));
            } else {
                self.wrong.push(wrong);
            }
        }
        self.separate_padding(parts, &well);
        self.wrong.sort_by(|a, b| b.cmp(a));
        Ok(self)
    }

    /// Counts partial blocks without a hint as padding if enough bytes of the same file had the
    /// right hint.
    fn separate_padding(&mut self, parts: Vec<(&str, WrongHint)>, well: &HashMap<&str, u64>) {
        for (file, wrong) in parts {
            let well = well.get(file).copied().unwrap_or_default();
            if wrong.bytes.saturating_mul(PADDED) <= well {
                self.padding += wrong.bytes;
            } else {
                self.wrong.push(wrong);
            }
        }
    }

    /// Whether files with a rule were written, and every byte of them had the rule's hint, or one
    /// that the database set.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.checked > 0 && self.wrong.is_empty() && self.lost == 0
    }

    #[must_use]
    pub fn to_text(&self) -> String {
        let total: u64 = self.by_hint.values().map(Bytes::sum).sum();
        let mut out = format!(
            "\nwritten in {}: {}\n",
            number::time(self.time),
            number::bytes(total)
        );
        if total > 0 {
            out.push_str(&self.table(total));
        }
        if self.checked == 0 {
            out.push_str(
                "nothing was written to a file with a rule, so hints are unproven: measure for \
                 longer, under load\n",
            );
        }
        for wrong in self.wrong.iter().take(NAMED) {
            out.push_str(&format!(
                "{}: {} written with {}, not {}\n",
                wrong.path.display(),
                number::bytes(wrong.bytes),
                hint_text(wrong.found),
                wrong.wanted
            ));
        }
        if let Some(more) = self.wrong.len().checked_sub(NAMED).filter(|more| *more > 0) {
            out.push_str(&format!("and {more} more files\n"));
        }
        if self.padding > 0 {
            out.push_str(&format!(
                "{} of those without a hint are padding: the kernel fills up blocks that a direct \
                 write covers in part\n",
                number::bytes(self.padding)
            ));
        }
        if self.lost > 0 {
            out.push_str(&format!(
                "{} write events were lost and are not counted\n",
                self.lost
            ));
        }
        out
    }

    fn table(&self, total: u64) -> String {
        let mut table = Table::new(["written with", "bytes", "share", "of files", "of no file"]);
        for (hint, bytes) in &self.by_hint {
            table.row([
                hint_text(*hint).to_owned(),
                number::bytes(bytes.sum()),
                format!("{:.1} %", bytes.sum() as f64 / total as f64 * 100.0),
                number::bytes(bytes.of_files),
                number::bytes(bytes.of_none),
            ]);
        }
        table.to_string()
    }

    #[must_use]
    pub fn as_json(&self) -> Value {
        let hints = self.by_hint.iter().map(|(hint, bytes)| {
            json!({
                "hint": name(*hint),
                "file_bytes": bytes.of_files,
                "no_file_bytes": bytes.of_none,
            })
        });
        let wrong = self.wrong.iter().map(|wrong| {
            json!({
                "path": wrong.path.display().to_string(),
                "bytes": wrong.bytes,
                "wanted": name(wrong.wanted),
                "found": name(wrong.found),
            })
        });
        json!({
            "seconds": self.time.as_secs_f64(),
            "lost_writes": self.lost,
            "written": hints.collect::<Vec<_>>(),
            "checked_bytes": self.checked,
            "astray": wrong.collect::<Vec<_>>(),
            "padding_bytes": self.padding,
            "is_well": self.is_well(),
        })
    }
}

impl Bytes {
    fn sum(&self) -> u64 {
        self.of_files + self.of_none
    }
}

fn hint_text(hint: Hint) -> &'static str {
    match hint {
        Hint::NotSet => "no hint",
        Hint::None | Hint::Short | Hint::Medium | Hint::Long | Hint::Extreme => hint.name(),
    }
}

fn name(hint: Hint) -> Option<&'static str> {
    (hint != Hint::NotSet).then(|| hint.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use saiga_streams::rules;

    #[test]
    fn a_hint_is_wrong_unless_it_is_the_rules_or_the_databases_own() {
        let (mut rules, _) = rules::load("mysql").unwrap();
        let roots = [PathBuf::from("/no/such/db")];
        let wanted = |name: &str, found, rules: &Rules| {
            let rule = rule_of(&roots[0].join(name), &roots, rules)?;
            wanted_instead(rule, found)
        };
        let redo = "#innodb_redo/#ib_redo7";
        assert_eq!(wanted(redo, Hint::Medium, &rules), None);
        assert_eq!(wanted(redo, Hint::NotSet, &rules), Some(Hint::Medium));
        assert_eq!(wanted(redo, Hint::Extreme, &rules), None);
        assert_eq!(wanted("auto.cnf", Hint::NotSet, &rules), None);
        for rule in &mut rules.rules {
            rule.force = true;
        }
        assert_eq!(wanted(redo, Hint::Extreme, &rules), Some(Hint::Medium));
        let elsewhere = Path::new("/elsewhere").join(redo);
        assert!(rule_of(&elsewhere, &roots, &rules).is_none());
    }

    fn summed(rows: &[(Option<&str>, Hint, bool, u64)]) -> Traffic {
        let (rules, _) = rules::load("mysql").unwrap();
        let roots = [PathBuf::from("/no/such/db")];
        let rows = rows.iter().map(|&(file, hint, is_part, bytes)| HintBytes {
            file,
            hint: u8::try_from(hint.raw()).ok(),
            is_part,
            bytes,
        });
        (Traffic::default().sum(rows, &roots, &rules)).unwrap()
    }

    #[test]
    fn few_parts_of_blocks_without_a_hint_are_padding() {
        let redo = Some("/no/such/db/#innodb_redo/#ib_redo7");
        let with_parts = |bytes| {
            summed(&[
                (redo, Hint::NotSet, true, bytes),
                (redo, Hint::Medium, true, 1000),
                (redo, Hint::Medium, false, 4096),
            ])
        };
        let few = with_parts(509);
        assert_eq!((few.padding, few.is_well()), (509, true));
        let many = with_parts(510);
        assert_eq!((many.padding, many.is_well()), (0, false));
        assert_eq!(many.wrong[0].bytes, 510);
        let whole_blocks = summed(&[
            (redo, Hint::NotSet, false, 512),
            (redo, Hint::Medium, false, 1 << 20),
        ]);
        assert_eq!(whole_blocks.padding, 0);
        assert_eq!(whole_blocks.wrong[0].bytes, 512);
    }

    #[test]
    fn files_with_wrong_hints_are_sorted_by_bytes() {
        let traffic = summed(&[
            (Some("/no/such/db/ib_buffer_pool"), Hint::NotSet, false, 1),
            (
                Some("/no/such/db/#innodb_redo/#ib_redo1"),
                Hint::NotSet,
                false,
                4096,
            ),
            (
                Some("/no/such/db/#innodb_redo/#ib_redo2"),
                Hint::NotSet,
                false,
                8192,
            ),
            (None, Hint::NotSet, false, 512),
        ]);
        let names = traffic.wrong.iter();
        let names = names.map(|wrong| wrong.path.file_name().unwrap());
        assert_eq!(
            names.take(2).collect::<Vec<_>>(),
            ["#ib_redo2", "#ib_redo1"]
        );
        let sums = traffic.by_hint[&Hint::NotSet];
        assert_eq!((sums.of_files, sums.of_none), (12289, 512));
    }

    #[test]
    fn hints_are_unproven_without_a_write_to_a_file_with_a_rule() {
        let elsewhere = Some("/no/such/log");
        for rows in [
            &[][..],
            &[(None, Hint::NotSet, false, 4096)],
            &[(elsewhere, Hint::NotSet, false, 4096)],
        ] {
            let traffic = summed(rows);
            assert!(!traffic.is_well());
            assert_eq!(traffic.as_json()["is_well"], false);
            let text = traffic.to_text();
            assert!(
                text.contains("nothing was written to a file with a rule"),
                "{text}"
            );
        }
        let redo = Some("/no/such/db/#innodb_redo/#ib_redo7");
        let traffic = summed(&[(redo, Hint::Medium, false, 4096)]);
        assert!(traffic.is_well() && !traffic.to_text().contains("nothing"));
        assert_eq!(traffic.as_json()["checked_bytes"], 4096);
    }
}
