//! Expands `${NAME}` in the values of an experiment file.
//!
//! Variables come from the file's `[vars]` and from `--set`, which takes precedence. `$${` is an
//! escaped `${`, for commands that are passed to a shell. Deliberately absent: environment
//! variables, on which a campaign must not depend.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Kind, Problem, Value};
use saiga_document::nearest;

/// The variables of a file.
#[derive(Debug)]
pub(super) struct Variables {
    values: BTreeMap<String, String>,
    /// Names from `--set`; the file must use each of them.
    set: BTreeSet<String>,
    used: RefCell<BTreeSet<String>>,
}

impl Variables {
    /// Collects the variables from the table `own`, the predefined variable `given` and `sets`;
    /// also returns problems.
    pub(super) fn new(
        own: Option<Value>,
        given: (&str, &str),
        sets: &[(String, String)],
    ) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let mut values = BTreeMap::from([(given.0.to_owned(), given.1.to_owned())]);
        match own {
            None => {}
            Some(Value {
                kind: Kind::Table(entries),
                ..
            }) => {
                for (name, value) in entries {
                    match text_of(value.kind) {
                        Some(text) => drop(values.insert(name, text)),
                        None => problems.push((
                            value.line,
                            format!("vars.{name} is neither a string nor a number"),
                        )),
                    }
                }
            }
            Some(Value { line, .. }) => problems.push((line, "vars is not a table".to_owned())),
        }
        for (name, value) in sets {
            values.insert(name.clone(), value.clone());
        }
        let variables = Self {
            values,
            set: sets.iter().map(|(name, _)| name.clone()).collect(),
            used: RefCell::default(),
        };
        (variables, problems)
    }

    /// Replaces all variables in `text`.
    pub(super) fn expand(&self, text: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if let Some(before) = rest[..at].strip_suffix('$') {
                expanded.push_str(before);
                expanded.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            expanded.push_str(&rest[..at]);
            let Some(end) = rest[at..].find('}') else {
                return Err(format!("{:?} lacks a closing brace", &rest[at..]));
            };
            let name = &rest[at + 2..at + end];
            expanded.push_str(self.value(name)?);
            rest = &rest[at + end + 1..];
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value(&self, name: &str) -> Result<&str, String> {
        self.used.borrow_mut().insert(name.to_owned());
        if let Some(value) = self.values.get(name) {
            return Ok(value);
        }
        let known: Vec<&str> = self.values.keys().map(String::as_str).collect();
        let hint = nearest(name, &known).map_or_else(
            || {
                format!(
                    "set it in [vars] or with --set {name}=VALUE, or write $${{{name}}} for a \
                     variable of the shell"
                )
            },
            |near| format!("did you mean ${{{near}}}?"),
        );
        Err(format!("${{{name}}} is an unknown variable; {hint}"))
    }

    /// Problems for variables of `--set` that no value uses.
    pub(super) fn unused(&self) -> Vec<Problem> {
        let used = self.used.borrow();
        let unused = self.set.iter().filter(|name| !used.contains(*name));
        let known: Vec<&str> = used.iter().map(String::as_str).collect();
        let problem = |name: &String| {
            let hint = nearest(name, &known)
                .map_or(String::new(), |near| format!(" (did you mean {near}?)"));
            (0, format!("--set {name}: no value uses ${{{name}}}{hint}"))
        };
        unused.map(problem).collect()
    }
}

fn text_of(kind: Kind) -> Option<String> {
    match kind {
        Kind::Text(text) => Some(text),
        Kind::Whole(number) => Some(number.to_string()),
        Kind::Fraction(number) => Some(number.to_string()),
        Kind::Flag(_) | Kind::List(_) | Kind::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(sets: &[(&str, &str)]) -> Variables {
        let text = |text: &str| Value {
            line: 1,
            kind: Kind::Text(text.to_owned()),
        };
        let own = [
            ("DIR".to_owned(), text("/data")),
            ("N".to_owned(), text("2")),
        ];
        let own = Value {
            line: 1,
            kind: Kind::Table(own.into()),
        };
        let sets: Vec<(String, String)> = sets
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Variables::new(Some(own), ("HERE", "/here"), &sets).0
    }

    #[test]
    fn variables_are_expanded_and_those_of_the_shell_are_kept() {
        let known = variables(&[("N", "7")]);
        for (text, expanded) in [
            ("", ""),
            ("${DIR}/${N}", "/data/7"),
            ("$N $(id) $${N}", "$N $(id) ${N}"),
        ] {
            assert_eq!(known.expand(text).as_deref(), Ok(expanded), "{text}");
        }
        assert_eq!(known.unused(), []);
    }

    #[test]
    fn unknown_and_unused_variables_are_reported() {
        let known = variables(&[("DIRR", "x")]);
        let unknown = known.expand("${DIRS}").unwrap_err();
        assert_eq!(
            unknown,
            "${DIRS} is an unknown variable; did you mean ${DIR}?"
        );
        assert!(
            known
                .expand("${DIR")
                .unwrap_err()
                .contains("lacks a closing brace")
        );
        let unused = known.unused();
        assert!(
            unused[0].1.starts_with("--set DIRR: no value uses"),
            "{unused:?}"
        );
    }
}
