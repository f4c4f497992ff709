//! Names of service units (`man 5 systemd.unit`), such as `redis-server.service`.

use std::fmt;
use std::str::FromStr;

/// The name of a service unit, with its ending `.service` and without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitName(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("{0:?} is not the name of a unit")]
    Invalid(String),
    #[error("{0} is not a service")]
    OtherType(String),
}

const OTHER_TYPES: [&str; 8] = [
    ".socket", ".target", ".timer", ".mount", ".path", ".slice", ".scope", ".swap",
];

impl FromStr for UnitName {
    type Err = NameError;

    /// As systemctl: a name without a type is the name of a service.
    fn from_str(name: &str) -> Result<Self, NameError> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_allowed) {
            return Err(NameError::Invalid(name.to_owned()));
        }
        if OTHER_TYPES.iter().any(|kind| name.ends_with(kind)) {
            return Err(NameError::OtherType(name.to_owned()));
        }
        let stem = name.strip_suffix(".service").unwrap_or(name);
        Ok(Self(format!("{stem}.service")))
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl UnitName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without `.service`.
    pub fn stem(&self) -> &str {
        self.0.strip_suffix(".service").unwrap_or(&self.0)
    }

    /// For `a@b.service`: `a`. The stem of any other name.
    pub(crate) fn prefix(&self) -> &str {
        self.stem()
            .split_once('@')
            .map_or(self.stem(), |(prefix, _)| prefix)
    }

    /// For `a@b.service`: `b`; empty for a template (`a@.service`) and for any other name.
    pub(crate) fn instance(&self) -> &str {
        self.stem()
            .split_once('@')
            .map_or("", |(_, instance)| instance)
    }

    /// For `a.service` and `a@b.service`: `a@.service`.
    pub(crate) fn template(&self) -> Self {
        Self(format!("{}@.service", self.prefix()))
    }

    /// For the template `a@.service` and the instance `b`: `a@b.service`. Any other name is
    /// returned as it is.
    pub(crate) fn instantiate(self, instance: &str) -> Self {
        match self.stem().strip_suffix('@') {
            Some(prefix) => Self(format!("{prefix}@{instance}.service")),
            None => self,
        }
    }

    /// The names under which drop-ins of this unit are found, the most specific first. For
    /// `a-b@c.service`: `a-b@c.service`, `a-b@.service`, `a-@c.service`, `a-@.service`, `service`.
    pub(crate) fn drop_in_names(&self) -> Vec<String> {
        let mut names = self.file_names();
        for name in self.file_names() {
            let rest = &name[self.prefix().len()..];
            let dashes = self.prefix().rmatch_indices('-').map(|(at, _)| at);
            let truncated = dashes.filter(|at| at + 1 < self.prefix().len());
            names.extend(truncated.map(|at| format!("{}{rest}", &self.prefix()[..=at])));
        }
        names.push("service".to_owned());
        names
    }

    /// The names of the files that can define this unit: its own, then its template's.
    pub(crate) fn file_names(&self) -> Vec<String> {
        let mut names = vec![self.0.clone()];
        if !self.instance().is_empty() {
            names.push(self.template().0);
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_type_is_the_name_of_a_service() {
        let read = |name: &str| name.parse::<UnitName>().map(|name| name.to_string());
        assert_eq!(read("db").as_deref(), Ok("db.service"));
        assert_eq!(
            read("pg@15-main.service").as_deref(),
            Ok("pg@15-main.service")
        );
        for name in ["", ".db", "../db", "a b", "a/b"] {
            assert_eq!(read(name), Err(NameError::Invalid(name.to_owned())));
        }
        assert_eq!(
            read("a.socket"),
            Err(NameError::OtherType("a.socket".to_owned()))
        );
    }

    #[test]
    fn drop_ins_belong_to_a_unit_its_template_and_truncated_names() {
        let names = |name: &str| name.parse::<UnitName>().unwrap().drop_in_names();
        assert_eq!(names("db"), ["db.service", "service"]);
        assert_eq!(
            names("a-b-c@x"),
            [
                "a-b-c@x.service",
                "a-b-c@.service",
                "a-b-@x.service",
                "a-@x.service",
                "a-b-@.service",
                "a-@.service",
                "service"
            ]
        );
        assert_eq!(names("a-"), ["a-.service", "service"]);
    }
}
