//! A service as systemd reads it: the unit's file, then its drop-ins in the order of their names.
//!
//! Spec: `man 5 systemd.unit`, `man 5 systemd.syntax`. Our own drop-in is left out, or replaced by
//! the one that is to be written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::dropin;

/// Where units are, the strongest place first.
const PLACES: [&str; 5] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];

/// An alias of an alias of a unit is all that anybody has; links that lead in a circle end here.
const ALIASES_MAX: u32 = 8;

/// The settings of the section `[Service]`, in order.
#[derive(Debug, Default)]
pub(super) struct Unit {
    settings: Vec<(String, String)>,
}

impl Unit {
    /// Reads the unit `name` below `root`, with `ours` as the text of our drop-in.
    ///
    /// # Errors
    /// When there is none, it is masked, or a file cannot be read.
    pub(super) fn read(root: &Path, name: &str, ours: Option<&str>) -> anyhow::Result<Self> {
        let names = names_of(name);
        let Some(file) = file_of(root, name) else {
            bail!(
                "there is no unit {name} below {}",
                root.join(PLACES[0]).display()
            );
        };
        if fs::read_link(&file).is_ok_and(|to| to == Path::new("/dev/null")) {
            bail!("{name} is masked ({} leads to /dev/null)", file.display());
        }
        let mut unit = Self::default();
        unit.parse(&text_of(&file)?);
        for (name, path) in drop_ins(root, &names) {
            match ours {
                Some(text) if name == dropin::FILE => unit.parse(text),
                None if name == dropin::FILE => {}
                _ => unit.parse(&text_of(&path)?),
            }
        }
        Ok(unit)
    }

    fn parse(&mut self, text: &str) {
        let joined = text.replace("\\\n", " ");
        let mut in_service = false;
        for line in joined.lines().map(str::trim) {
            if line.starts_with('[') {
                in_service = line == "[Service]";
            }
            let comment = line.starts_with('#') || line.starts_with(';');
            if let (true, false, Some((key, value))) = (in_service, comment, line.split_once('=')) {
                self.settings
                    .push((key.trim().to_owned(), value.trim().to_owned()));
            }
        }
    }

    /// The last value of a setting that has one; an empty one takes it back.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        let last = self.settings.iter().rev().find(|(name, _)| name == key)?;
        Some(last.1.as_str()).filter(|value| !value.is_empty())
    }

    /// All values of a list; an empty one takes back those before it.
    pub(super) fn values(&self, key: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for (name, value) in &self.settings {
            match (name == key, value.is_empty()) {
                (true, true) => values.clear(),
                (true, false) => values.push(value.as_str()),
                (false, _) => {}
            }
        }
        values
    }

    /// The words of all values of a list.
    pub(super) fn words(&self, key: &str) -> Vec<String> {
        self.values(key).into_iter().flat_map(split).collect()
    }

    /// Whether a yes-or-no setting says yes.
    pub(super) fn is_on(&self, key: &str) -> bool {
        let value = self.value(key).unwrap_or("no").to_ascii_lowercase();
        ["1", "yes", "y", "true", "t", "on"].contains(&value.as_str())
    }

    /// A variable as `Environment=` sets it last.
    pub(super) fn environment(&self, variable: &str) -> Option<String> {
        let assignments = self.words("Environment");
        let value = assignments
            .iter()
            .rev()
            .find_map(|word| word.split_once('=').filter(|(name, _)| *name == variable))?;
        Some(value.1.replace("%%", "%"))
    }
}

/// The name of the unit for which `name` stands: an alias is a link to a file of another name.
pub(super) fn real_name(root: &Path, name: &str) -> String {
    let mut name = name.to_owned();
    for _ in 0..ALIASES_MAX {
        let link = file_of(root, &name).and_then(|file| fs::read_link(file).ok());
        let target = link.as_deref().and_then(Path::file_name);
        let Some(target) = target.and_then(|target| target.to_str()) else {
            break;
        };
        let instance = name.split_once('@').map_or("", |(_, rest)| rest);
        let next = match target.strip_suffix("@.service") {
            Some(stem) => format!("{stem}@{instance}"),
            None => target.to_owned(),
        };
        if next == name || file_of(root, &next).is_none() {
            break;
        }
        name = next;
    }
    name
}

/// Whether there is a unit `name` below `root`.
pub(super) fn exists(root: &Path, name: &str) -> bool {
    file_of(root, name).is_some()
}

/// The file of the unit, or of its template.
fn file_of(root: &Path, name: &str) -> Option<PathBuf> {
    let names = names_of(name);
    let paths = names
        .iter()
        .flat_map(|name| PLACES.map(|place| root.join(place).join(name)));
    paths
        .into_iter()
        .find(|path| path.symlink_metadata().is_ok())
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The unit's own name and, for an instance of a template, the template's.
fn names_of(name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    if let Some((stem, instance)) = name.split_once('@')
        && instance != ".service"
    {
        names.push(format!("{stem}@.service"));
    }
    names
}

/// Drop-ins by file name, ours among them whether it is there or not; of equal names the strongest
/// place's, and the unit's over its template's, over those of names that it begins with.
fn drop_ins(root: &Path, names: &[String]) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::from([(dropin::FILE.to_owned(), PathBuf::new())]);
    let general = ["service".to_owned()];
    let beginnings = names.iter().flat_map(|name| beginnings(name));
    let folders = names.iter().cloned().chain(beginnings).chain(general);
    let folders =
        folders.flat_map(|name| PLACES.map(|place| root.join(place).join(name.clone() + ".d")));
    for folder in folders {
        for entry in fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".conf") {
                found.entry(name).or_insert(entry.path());
            }
        }
    }
    found
}

/// For `a-b-c@x.service`: `a-b-@x.service` and `a-@x.service`.
fn beginnings(name: &str) -> Vec<String> {
    let stem = name.strip_suffix(".service").unwrap_or(name);
    let (prefix, rest) = stem.split_at(stem.find('@').unwrap_or(stem.len()));
    let dashes = prefix.rmatch_indices('-').map(|(at, _)| at);
    dashes
        .filter(|at| at + 1 < prefix.len())
        .map(|at| format!("{}{rest}.service", &prefix[..=at]))
        .collect()
}

/// Words as systemd splits them: blanks divide, quotes keep together.
pub(super) fn split(value: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in value.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => words.push(String::new()),
            (_, c) => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts_and_nothing_takes_back() {
        let mut unit = Unit::default();
        unit.parse("[Unit]\nUser=no\n[Service]\nUser=a\n# User=c\nEnvironment=A=1 \"B=2 3\"\n");
        unit.parse("[Service]\nUser=b\nEnvironment=A=4\nLimit=1\nLimit=\nLimit=2 \\\n 3\n");
        assert_eq!(unit.value("User"), Some("b"));
        assert_eq!(unit.environment("A").as_deref(), Some("4"));
        assert_eq!(unit.environment("B").as_deref(), Some("2 3"));
        assert_eq!(unit.words("Limit"), ["2", "3"]);
        unit.parse("[Service]\nEnvironment=\nUser=");
        assert_eq!((unit.environment("A"), unit.value("User")), (None, None));
    }
}
