//! Decides whether each part of a server is written through a reclaim unit handle of its own.
//!
//! sysfs does not show handles. The caller reads them from the drive and passes the answers.

use std::collections::{BTreeMap, BTreeSet};

use super::drive::is_namespace;
use super::layout::{Layout, Namespace};
use crate::route::Reach;

/// A drive's answer about a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Handles {
        group: u16,
        /// The handle for writes without a placement identifier.
        default: u16,
        /// Whether the namespace was created with a list of handles.
        is_specified: bool,
        /// All handles of the namespace. A file system can choose among them by hints.
        all: Vec<u16>,
    },
    /// The namespace does not place data; the text is the reason.
    None(String),
    /// The drive gave no answer; the text is the reason.
    Unknown(String),
}

/// The answers of drives, by the kernel's name of the namespace.
pub type Answers = BTreeMap<String, Answer>;

impl Layout {
    /// Decides whether each part has a handle of its own, and returns the reason. `answers` has an
    /// answer for each of [`Layout::namespaces`].
    ///
    /// The verdict is [`Reach::No`] if a part has no handle of its own, even if the handles of
    /// other parts are unknown.
    #[must_use]
    pub fn verdict(&self, answers: &Answers) -> (Reach, String) {
        let against = [
            self.on_one_disk(),
            self.without_handle(answers),
            self.sharing(answers),
        ];
        let against = against.concat();
        if !against.is_empty() {
            return (Reach::No, against.join("; "));
        }
        if let Some(why) = self.unknown(answers) {
            return (Reach::Unproven, why);
        }
        let count = self.parts.len();
        let why = format!("each of {count} parts has a reclaim unit handle of its own");
        (Reach::Yes, why)
    }

    /// Returns the names of the parts on each disk. A file system without a disk is listed under
    /// its type, such as `tmpfs`.
    fn disks(&self) -> BTreeMap<&str, Vec<&'static str>> {
        let mut disks: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
        for part in &self.parts {
            let places = part.places.iter();
            let own: BTreeSet<&str> = places
                .map(|place| place.disk.as_deref().unwrap_or(&place.kind))
                .collect();
            for disk in own {
                disks.entry(disk).or_default().push(part.name);
            }
        }
        disks
    }

    /// Describes each disk that holds several parts.
    fn on_one_disk(&self) -> Vec<String> {
        let disks = self.disks().into_iter();
        let several = disks.filter(|(_, parts)| parts.len() > 1);
        several
            .map(|(disk, parts)| format!("{} are on {disk}", parts.join(" and ")))
            .collect()
    }

    /// Describes each disk with parts that cannot have a handle of their own.
    fn without_handle(&self, answers: &Answers) -> Vec<String> {
        let disks = self.disks().into_iter();
        let missing = disks.filter_map(|(disk, parts)| {
            let why = match answers.get(disk) {
                _ if !is_namespace(disk) => "it is not a namespace of an NVMe drive",
                Some(Answer::None(why)) => why,
                Some(Answer::Handles {
                    is_specified: false,
                    ..
                }) => "it was created without a list of handles, and all such namespaces share one",
                Some(Answer::Handles { .. } | Answer::Unknown(_)) | None => return None,
            };
            Some(format!(
                "{} has no handle of its own on {disk}: {why}",
                parts.join(" and ")
            ))
        });
        missing.collect()
    }

    /// Describes each handle that several namespaces share, including namespaces without a part.
    fn sharing(&self, answers: &Answers) -> Vec<String> {
        let disks = self.disks();
        let mut users: BTreeMap<(&str, u16, u16), Vec<String>> = BTreeMap::new();
        for Namespace { disk, drive, .. } in &self.namespaces {
            let Some(Answer::Handles {
                group,
                default,
                all,
                ..
            }) = answers.get(disk)
            else {
                continue;
            };
            let name = match disks.get(disk.as_str()) {
                Some(parts) => format!("{} ({disk})", parts.join(" and ")),
                None => format!("{disk}, which holds no part,"),
            };
            let handles = if self.is_by_hint(disk) {
                all.clone()
            } else {
                vec![*default]
            };
            for handle in handles {
                let key = (drive.as_str(), *group, handle);
                users.entry(key).or_default().push(name.clone());
            }
        }
        let several = users.into_iter().filter(|(_, names)| names.len() > 1);
        several
            .map(|((drive, group, handle), names)| {
                let names = names.join(" and ");
                format!(
                    "{names} share reclaim unit handle {handle} of {drive}, endurance group {group}"
                )
            })
            .collect()
    }

    /// Whether the file system on a disk chooses among handles by hints.
    fn is_by_hint(&self, disk: &str) -> bool {
        let mut places = self.parts.iter().flat_map(|part| &part.places);
        places.any(|place| place.kind == "f2fs" && place.disk.as_deref() == Some(disk))
    }

    /// Describes the first part with an unknown place or the first namespace with unknown handles.
    fn unknown(&self, answers: &Answers) -> Option<String> {
        if let Some(part) = self.parts.iter().find(|part| part.places.is_empty()) {
            let name = part.name;
            return Some(match self.unread.first() {
                Some(unread) => format!("no files of {name} were found, and cannot read {unread}"),
                None => format!(
                    "no files of {name} were found; add their directory to the command line"
                ),
            });
        }
        let asked = |disk: &str| match answers.get(disk) {
            Some(Answer::Handles { .. } | Answer::None(_)) => None,
            Some(Answer::Unknown(why)) => Some(why.clone()),
            None => Some(format!("sysfs does not have the ID of namespace {disk}")),
        };
        let namespaces = self.namespaces.iter().map(|it| it.disk.as_str());
        let mut disks = self.disks().into_keys().chain(namespaces);
        disks.find_map(asked)
    }
}

#[cfg(test)]
mod tests;
