//! AppArmor: the profile that confines a program, and the rules that the profile lacks for the
//! library.
//!
//! Spec: `man 5 apparmor.d`. Reads the state of the kernel from /sys, and the profiles with the
//! files and variables that they include from /etc/apparmor.d. Deliberately absent: `deny` rules,
//! child profiles, rules of more than one line.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::cluster::names_in;
use crate::glob;
use crate::name::UnitName;
use crate::plan::Change;
use crate::replace::{self, FileError, Rights};
use crate::root::Root;
use crate::unit::split;

const FOLDER: &str = "/etc/apparmor.d";
/// The first line of a file that did not exist before.
const HEADER: &str = "# Written by `saiga enable`; removed by `saiga disable`.\n";
/// Ends a search in files that include each other, or in variables that name each other.
const DEPTH_MAX: usize = 16;

/// A profile in enforce mode that does not let a program map the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    pub profile: String,
    /// The file that defines the profile, as a path from the root.
    pub file: PathBuf,
    /// The file for rules of this host that the profile includes.
    pub local: Option<PathBuf>,
    /// The rules that the library needs.
    pub rules: Vec<String>,
}

impl Confinement {
    /// The confinement of `program` for `library`, both paths from the root without symbolic
    /// links. `None` if the library can be mapped.
    pub(crate) fn find(root: &Root, program: &str, library: &str) -> Option<Self> {
        let enabled = fs::read_to_string(root.file("/sys/module/apparmor/parameters/enabled"));
        if !enabled.is_ok_and(|text| text.starts_with('Y')) {
            return None;
        }
        let folder = root.file(FOLDER);
        let is_profile = |name: &String| {
            !(name.starts_with('.') || name.contains(".dpkg-") || name.ends_with('~'))
                && folder.join(name).is_file()
                && !folder.join("disable").join(name).exists()
        };
        let files = names_in(&folder).into_iter().filter(is_profile);
        let attached = files.filter_map(|file| {
            let text = Text::read(root, &file);
            let profile = text.profile_of(program)?;
            Some((file, text, profile))
        });
        let (file, text, profile) = attached.max_by_key(|(_, _, profile)| profile.literal)?;
        // Only root may read the list; without it, the flags in the file decide.
        let loaded = fs::read_to_string(root.file("/sys/kernel/security/apparmor/profiles"));
        let is_enforced = match &loaded {
            Ok(loaded) => {
                let line = format!("{} (enforce)", profile.name);
                loaded.lines().any(|loaded| loaded == line)
            }
            Err(_) => !profile.is_lenient,
        };
        let is_allowed = |right| text.allows(&profile, library, right);
        if !is_enforced || is_allowed('r') && is_allowed('m') {
            return None;
        }
        let local = profile
            .rules
            .iter()
            .find_map(|rule| rule.strip_prefix("include local/"));
        Some(Self {
            profile: profile.name,
            file: Path::new(FOLDER).join(file),
            local: local.map(|name| Path::new(FOLDER).join("local").join(name)),
            rules: rules(library),
        })
    }

    /// Adds the rules to the file for rules of this host, each marked with the unit.
    pub(crate) fn add(&self, root: &Root, unit: &UnitName) -> Result<Option<Change>, FileError> {
        let Some(local) = &self.local else {
            return Ok(None);
        };
        let path = root.file(local);
        let mut text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => HEADER.to_owned(),
            text => text.map_err(FileError::read(&path))?,
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        for rule in &self.rules {
            text.push_str(&format!("{rule}{}\n", mark(unit)));
        }
        write(&path, &text)?;
        Ok(Some(Change::AddedRules {
            local: local.clone(),
            profile: self.file.clone(),
        }))
    }
}

/// Removes the rules that were added for `unit`. Returns the files that had such rules.
pub(crate) fn remove(root: &Root, unit: &UnitName) -> Result<Vec<PathBuf>, FileError> {
    let folder = Path::new(FOLDER).join("local");
    let mut changed = Vec::new();
    for name in names_in(&root.file(&folder)) {
        let path = root.file(&folder).join(&name);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines = text.split_inclusive('\n');
        let kept: String = lines
            .filter(|line| !line.trim_end().ends_with(&mark(unit)))
            .collect();
        if kept.len() == text.len() {
            continue;
        }
        if kept == HEADER {
            fs::remove_file(&path).map_err(FileError::remove(&path))?;
        } else {
            write(&path, &kept)?;
        }
        changed.push(folder.join(name));
    }
    Ok(changed)
}

fn mark(unit: &UnitName) -> String {
    format!("  # saiga enable {unit}")
}

/// Replaces the content of a file, or writes a new one that every user can read.
fn write(path: &Path, text: &str) -> Result<(), FileError> {
    let path = &path.canonicalize().unwrap_or(path.to_owned());
    let Ok(old) = fs::metadata(path) else {
        return replace::write(path, text);
    };
    let replaced = replace::replace(path, text.as_bytes(), &old, Rights::Caller);
    replaced.map_err(FileError::write(path))
}

/// The rules for everything that the library does and a profile may deny.
fn rules(library: &str) -> Vec<String> {
    let mut path = String::new();
    for c in library.chars() {
        path.extend("*?[]{}^\\".contains(c).then_some('\\'));
        path.push(c);
    }
    vec![
        format!("{path} mr,"),
        "/etc/saiga/saiga.toml r,".to_owned(),
        "@{PROC}/@{pid}/{stat,fd/,fdinfo/*} r,".to_owned(),
        "network netlink dgram,".to_owned(),
        "unix addr=@saiga-*,".to_owned(),
        "unix peer=(addr=@saiga-*),".to_owned(),
    ]
}

/// A profile and its rules.
struct Profile {
    name: String,
    /// Whether its flags let the program do what no rule allows.
    is_lenient: bool,
    /// Length of the attachment up to its first wildcard: the longest of several takes precedence.
    literal: usize,
    rules: Vec<String>,
}

/// The lines of a file, with those of the files that it includes.
struct Text {
    lines: Vec<String>,
}

impl Text {
    fn read(root: &Root, file: &str) -> Self {
        let mut lines = Vec::new();
        read(root, Path::new(file), 0, &mut lines);
        Self { lines }
    }

    /// The profile that is attached to `program`.
    fn profile_of(&self, program: &str) -> Option<Profile> {
        let mut lines = self.lines.iter();
        let mut found: Option<Profile> = None;
        while let Some(line) = lines.next() {
            let Some(header) = line.strip_suffix('{') else {
                continue;
            };
            let words = split(header.strip_prefix("profile ").unwrap_or(header));
            let is_path = |word: &&String| word.starts_with(['/', '@', '{']);
            let attachment = words
                .get(1)
                .filter(is_path)
                .or(words.first().filter(is_path));
            let pattern = attachment.map(|word| self.expand(word)).unwrap_or_default();
            let profile = Profile {
                name: words.first().cloned().unwrap_or_default(),
                is_lenient: header.contains("complain") || header.contains("unconfined"),
                literal: pattern.find(['*', '?', '[', '{']).unwrap_or(usize::MAX),
                rules: body(&mut lines),
            };
            let precedes = |other: &Profile| other.literal >= profile.literal;
            if glob::matches(&pattern, program) && !found.as_ref().is_some_and(precedes) {
                found = Some(profile);
            }
        }
        found
    }

    /// Replaces variables by their values, as alternatives.
    fn expand(&self, word: &str) -> String {
        let mut text = word.to_owned();
        for _ in 0..DEPTH_MAX {
            let Some((at, end)) = text
                .find("@{")
                .zip(text.find('}'))
                .filter(|(at, end)| at < end)
            else {
                break;
            };
            let name = &text[at..=end];
            let values = self.lines.iter().filter_map(|line| {
                let (key, values) = line.split_once('=')?;
                (key.trim_end_matches('+').trim_end() == name).then(|| split(values))
            });
            let values: Vec<String> = values.flatten().collect();
            text.replace_range(at..=end, &format!("{{{}}}", values.join(",")));
        }
        text
    }

    /// Whether a rule of the profile gives the right `right` (`r` or `m`) to a file.
    fn allows(&self, profile: &Profile, file: &str, right: char) -> bool {
        profile.rules.iter().any(|rule| {
            let mut words = split(rule.trim_end_matches(','));
            words.retain(|word| !["audit", "allow", "file"].contains(&word.as_str()));
            match &words[..] {
                [] => rule.ends_with("file,"),
                [all] => all == "all",
                [path, rights, ..] if path.starts_with(['/', '@', '{']) => {
                    rights.contains(right) && glob::matches(&self.expand(path), file)
                }
                [rights, path, ..] => {
                    let is_rights = rights.chars().all(|c| "rwamlkixupPUcC".contains(c));
                    is_rights && rights.contains(right) && glob::matches(&self.expand(path), file)
                }
            }
        })
    }
}

/// The rules up to the end of a profile, without those of profiles in it.
fn body<'a>(lines: &mut impl Iterator<Item = &'a String>) -> Vec<String> {
    let (mut rules, mut depth) = (Vec::new(), 0);
    for line in lines {
        match line.as_str() {
            "}" if depth == 0 => break,
            "}" => depth -= 1,
            line if line.ends_with('{') => depth += 1,
            line if depth == 0 => rules.push(line.to_owned()),
            _ => {}
        }
    }
    rules
}

/// Appends the lines of a file, or of the files in a folder. Behind the line of an include follow
/// those of the file.
fn read(root: &Root, name: &Path, depth: usize, lines: &mut Vec<String>) {
    let path = root.file(Path::new(FOLDER).join(name));
    if path.is_dir() {
        for file in names_in(&path) {
            read(root, &name.join(file), depth + 1, lines);
        }
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    for line in text.lines().map(str::trim) {
        if let Some(included) = included(line) {
            lines.push(format!("include {included}"));
            if depth < DEPTH_MAX {
                read(root, Path::new(included), depth + 1, lines);
            }
        } else if !line.starts_with('#') {
            let rule = line.split(" #").next().unwrap_or_default();
            lines.push(rule.trim_end().to_owned());
        }
    }
}

/// The file of an include: `include <FILE>`, also with `if exists`, with a `#` or with quotes.
fn included(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix('#')
        .unwrap_or(line)
        .strip_prefix("include ")?
        .trim_start();
    let rest = rest.strip_prefix("if exists").unwrap_or(rest).trim_start();
    let file = rest.strip_prefix(['<', '"'])?.split(['>', '"']).next()?;
    Some(file.strip_prefix("/etc/apparmor.d/").unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "/opt/saiga/libsaiga.so";

    /// Finds the confinement of /usr/sbin/db by a file `db` with these lines.
    fn find(lines: &str) -> Option<Confinement> {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path()).unwrap();
        for (file, text) in [
            ("sys/module/apparmor/parameters/enabled", "Y\n"),
            (
                "sys/kernel/security/apparmor/profiles",
                "db (enforce)\nmild (complain)\n/usr/sbin/d* (enforce)\n",
            ),
            (
                "etc/apparmor.d/tunables/global",
                "@{libs} = /srv /opt/saiga\n",
            ),
            (
                "etc/apparmor.d/abstractions/all/opt",
                "/opt/*/*.so mr, # all\n",
            ),
            ("etc/apparmor.d/db", lines),
            (
                "etc/apparmor.d/db.dpkg-old",
                "profile db /usr/sbin/db {\n}\n",
            ),
        ] {
            fs::create_dir_all(root.file(file).parent().unwrap()).unwrap();
            fs::write(root.file(file), text).unwrap();
        }
        Confinement::find(&root, "/usr/sbin/db", LIBRARY)
    }

    #[test]
    fn a_profile_is_found_by_its_attachment() {
        for (header, name) in [
            ("profile db /usr/sbin/db {", Some("db")),
            (
                "profile db /{usr/,}{,s}bin/db flags=(attach_disconnected) {",
                Some("db"),
            ),
            (
                "@{exe} = /bin/x /usr/sbin/db\nprofile db @{exe} {",
                Some("db"),
            ),
            ("/usr/sbin/d* {", Some("/usr/sbin/d*")),
            (
                "profile other /usr/bin/** {\n}\nprofile db /usr/sbin/db {",
                Some("db"),
            ),
            (
                "profile mild /usr/sbin/* {\n}\nprofile db /usr/sbin/db {",
                Some("db"),
            ),
            (
                "profile db /usr/sbin/* {\n}\nprofile mild /usr/sbin/db {",
                None,
            ),
            ("profile db /usr/bin/db {", None),
            ("profile db {", None),
            ("profile b /usr/sbin/db {", None),
        ] {
            let found = find(&format!("#include <tunables/global>\n{header}\n}}\n"));
            assert_eq!(found.map(|it| it.profile).as_deref(), name, "{header}");
        }
    }

    #[test]
    fn a_profile_that_lets_the_library_be_mapped_is_not_an_obstacle() {
        for (rules, is_allowed) in [
            ("/opt/saiga/libsaiga.so mr,", true),
            ("audit /opt/** rm,", true),
            ("mr /opt/**,", true),
            ("/opt/** r,\n/opt/**.so m,", true),
            ("@{libs}/* mr,", true),
            ("include <abstractions/all>", true),
            ("file,", true),
            ("/opt/** r,", false),
            ("/opt/* mr,", false),
            ("@{unknown}/* mr,", false),
            ("owner /opt/** mr,", false),
            ("deny /opt/** mr,", false),
            ("profile child {\n/opt/** mr,\n}", false),
            ("# /opt/** mr,", false),
        ] {
            let text =
                format!("include <tunables/global>\nprofile db /usr/sbin/db {{\n{rules}\n}}\n");
            assert_eq!(find(&text).is_none(), is_allowed, "{rules}");
        }
    }
}
