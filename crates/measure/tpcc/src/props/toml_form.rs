//! Saiga's own form of a props file: TOML, with additional keys that BenchmarkSQL's form lacks.
//!
//! Each key is translated to a key of BenchmarkSQL, or to an option of `saiga bench tpcc run`,
//! which takes precedence. This file only translates names; [`Reader`](super::Reader) interprets
//! the values.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::text::Entry;
use saiga_document::nearest;

/// The translation of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Translation {
    /// A key of BenchmarkSQL.
    Prop(&'static str),
    /// An option of a run with a value.
    Run(&'static str),
    /// An option of a run without a value. It is present if the key is true.
    Switch(&'static str),
    /// The scope of the checks of the tables (`--check`); `true` means all.
    Check,
    /// The name of the environment variable that holds the password.
    PasswordVariable,
}

use Translation::{Check, PasswordVariable, Prop, Run, Switch};

const KEYS: [(&str, Translation); 43] = [
    ("database.url", Prop("conn")),
    ("database.user", Prop("user")),
    ("database.password", Prop("password")),
    ("database.password_env", PasswordVariable),
    ("database.sql", Prop("db")),
    ("database.warehouses", Prop("warehouses")),
    ("load.workers", Prop("loadWorkers")),
    ("load.first", Prop("loadidbegin")),
    ("load.last", Prop("loadidend")),
    ("load.csv", Prop("fileLocation")),
    ("load.csv_null", Prop("csvNullValue")),
    ("hints.profile", Prop("profile")),
    ("hints.data", Prop("data")),
    ("hints.backup", Prop("backup")),
    ("run.terminals", Prop("terminals")),
    ("run.minutes", Prop("runMins")),
    ("run.transactions_per_terminal", Prop("runTxnsPerTerminal")),
    ("run.limit_per_min", Prop("limitTxnsPerMin")),
    ("run.fixed_warehouse", Prop("terminalWarehouseFixed")),
    ("run.results", Prop("resultDirectory")),
    ("run.devices", Prop("osCollectorDevices")),
    ("run.mix.new_order", Prop("newOrderWeight")),
    ("run.mix.payment", Prop("paymentWeight")),
    ("run.mix.order_status", Prop("orderStatusWeight")),
    ("run.mix.delivery", Prop("deliveryWeight")),
    ("run.mix.stock_level", Prop("stockLevelWeight")),
    ("run.for", Run("--for")),
    ("run.ramp_up", Run("--ramp-up")),
    ("run.think", Switch("--think")),
    ("run.keying_multiplier", Run("--keying-multiplier")),
    ("run.thinking_multiplier", Run("--thinking-multiplier")),
    ("run.rate", Run("--rate")),
    ("run.arrivals", Run("--arrivals")),
    ("run.delivery", Run("--delivery")),
    ("run.delivery_workers", Run("--delivery-workers")),
    ("run.seed", Run("--seed")),
    ("run.max_retries", Run("--max-retries")),
    ("run.drain", Run("--drain")),
    ("run.give_up", Run("--give-up")),
    ("run.out", Run("--out")),
    ("run.result_csv", Switch("--result-csv")),
    ("run.check", Check),
    ("run.start_at", Run("--start-at")),
];

/// The TOML name of a key of BenchmarkSQL.
pub(super) fn name_of(key: &str) -> &str {
    let found = KEYS
        .iter()
        .find(|(_, translation)| matches!(translation, Prop(prop) if *prop == key));
    found.map_or(key, |(name, _)| name)
}

/// A file translated to BenchmarkSQL's keys and to options.
#[derive(Debug, Default)]
pub(super) struct TomlForm {
    pub(super) entries: BTreeMap<String, Entry>,
    /// Options such as `--ramp-up=30s`.
    pub(super) options: Vec<String>,
    /// Lines of the keys that have an effect; zero and false have no effect.
    lines: BTreeMap<&'static str, usize>,
}

/// Pairs of keys that exclude each other.
const EXCLUSIVE: [(&str, &str); 7] = [
    ("database.password_env", "database.password"),
    ("run.for", "run.minutes"),
    ("run.for", "run.transactions_per_terminal"),
    ("run.rate", "run.limit_per_min"),
    ("run.think", "run.limit_per_min"),
    ("run.keying_multiplier", "run.limit_per_min"),
    ("run.thinking_multiplier", "run.limit_per_min"),
];

/// Translates a text. `variable` looks up an environment variable. Returns all problems, in the
/// order of their lines.
pub(super) fn parse(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<TomlForm, Vec<String>> {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut problems: Vec<(usize, String)> = Vec::new();
    for error in &errors {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        problems.push((line, error.message().replace('\n', "; ")));
    }
    let mut leaves = Vec::new();
    flatten(text, "", root.get_ref(), &mut leaves);
    let mut form = TomlForm::default();
    for (path, line, value) in leaves {
        match value.and_then(|value| form.take(&path, line, value, &variable)) {
            Ok(()) => {}
            Err(problem) => problems.push((line, format!("{path} {problem}"))),
        }
    }
    problems.extend(form.contradictions());
    form.add_length();
    if problems.is_empty() {
        return Ok(form);
    }
    problems.sort();
    let lines = problems
        .into_iter()
        .map(|(line, text)| format!("line {line}: {text}"));
    Err(lines.collect())
}

impl TomlForm {
    fn take(
        &mut self,
        path: &str,
        line: usize,
        value: String,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        let Some((name, translation)) = KEYS.iter().find(|(name, _)| *name == path) else {
            let known: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
            let hint = nearest(path, &known).map(|near| format!(" (did you mean {near}?)"));
            return Err(format!("is not a key{}", hint.unwrap_or_default()));
        };
        if !matches!(value.as_str(), "0" | "false") {
            self.lines.insert(*name, line);
        }
        match translation {
            Prop(key) => self.add(key, line, value),
            Run(option) => self.options.push(format!("{option}={value}")),
            Check => {
                let what = match value.as_str() {
                    "true" => "all",
                    "false" => "none",
                    what => what,
                };
                self.options.push(format!("--check={what}"));
            }
            Switch(option) => match value.parse::<bool>() {
                Ok(true) => self.options.push((*option).to_owned()),
                Ok(false) => {}
                Err(_) => return Err(format!("is {value:?} but must be true or false")),
            },
            PasswordVariable => {
                let found = variable(&value);
                // The value may be the password itself, by mistake, so the message omits it.
                let missing = || {
                    "names an environment variable that is not set; give the name of a \
                     variable, not the password"
                        .to_owned()
                };
                self.add("password", line, found.ok_or_else(missing)?);
            }
        }
        Ok(())
    }

    fn add(&mut self, key: &str, line: usize, value: String) {
        self.entries.insert(key.to_owned(), Entry { value, line });
    }

    /// Pairs of keys that contradict each other, reported at the line of the later key.
    fn contradictions(&self) -> Vec<(usize, String)> {
        let both = |(one, other): &(&'static str, &'static str)| {
            let (a, b) = (*self.lines.get(one)?, *self.lines.get(other)?);
            let ((_, first), (line, second)) = if a < b {
                ((a, one), (b, other))
            } else {
                ((b, other), (a, one))
            };
            Some((
                line,
                format!("{second} excludes {first}; leave one of them out"),
            ))
        };
        EXCLUSIVE.iter().filter_map(both).collect()
    }

    /// Adds `runMins` if `run.for` is present, because BenchmarkSQL's form requires a length. The
    /// entry is a placeholder. Its line is 0, because it is not in the file.
    fn add_length(&mut self) {
        let has_for = self
            .options
            .iter()
            .any(|option| option.starts_with("--for="));
        if has_for && !self.entries.contains_key("runTxnsPerTerminal") {
            let value = "1".to_owned();
            self.entries
                .entry("runMins".to_owned())
                .or_insert(Entry { value, line: 0 });
        }
    }
}

/// Path of a key, its line, and its value as text.
type LeafValue = (String, usize, Result<String, String>);

fn flatten(text: &str, path: &str, table: &DeTable<'_>, leaves: &mut Vec<LeafValue>) {
    for (key, value) in table {
        let path = if path.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{path}.{}", key.get_ref())
        };
        let line = line_of(text, key.span().start);
        if let DeValue::Table(table) = value.get_ref() {
            flatten(text, &path, table, leaves);
        } else {
            leaves.push((path, line, shown(value.get_ref())));
        }
    }
}

/// The value as text, as in BenchmarkSQL's form. A list becomes words separated by blanks.
fn shown(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().replace('_', "")),
        DeValue::Float(number) => Ok(number.as_str().replace('_', "")),
        DeValue::Boolean(flag) => Ok(flag.to_string()),
        DeValue::Array(list) => {
            let words: Result<Vec<String>, String> =
                list.iter().map(|one| shown(one.get_ref())).collect();
            Ok(words?.join(" "))
        }
        DeValue::Datetime(time) => Ok(time.to_string()),
        DeValue::Table(_) => Err("is a table instead of a value".to_owned()),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<TomlForm, Vec<String>> {
        parse(text, |name| {
            (name == "TPCC_PASSWORD").then(|| "secret".to_owned())
        })
    }

    #[test]
    fn keys_are_translated_to_benchmarksqls_and_to_options() {
        let text = "[database]\nurl = \"jdbc:sqlite:t.db\"\nwarehouses = 1_000\npassword_env = \"TPCC_PASSWORD\"\n\
                    [run]\nterminals = 8\nfor = \"90s\"\nramp_up = \"auto\"\nthink = true\ncheck = false\n\
                    result_csv = false\ndevices = [\"blk_sda\", \"net_eth0\"]\nkeying_multiplier = 0.5\n\
                    [run.mix]\npayment = 43\n";
        let form = parsed(text).unwrap();
        let value = |key: &str| {
            form.entries
                .get(key)
                .map(|entry| (entry.value.as_str(), entry.line))
        };
        assert_eq!(value("conn"), Some(("jdbc:sqlite:t.db", 2)));
        assert_eq!(value("warehouses"), Some(("1000", 3)));
        assert_eq!(value("password"), Some(("secret", 4)));
        assert_eq!(value("osCollectorDevices"), Some(("blk_sda net_eth0", 12)));
        assert_eq!(value("paymentWeight"), Some(("43", 15)));
        assert_eq!(value("runMins"), Some(("1", 0)));
        let options = [
            "--for=90s",
            "--ramp-up=auto",
            "--think",
            "--check=none",
            "--keying-multiplier=0.5",
        ];
        let mut found = form.options.clone();
        found.sort();
        let mut wanted = options.map(str::to_owned).to_vec();
        wanted.sort();
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_check_of_the_tables_is_a_word_or_a_flag() {
        for (value, option) in [
            ("true", "--check=all"),
            ("false", "--check=none"),
            ("\"sample\"", "--check=sample"),
        ] {
            let form = parsed(&format!("[run]\ncheck = {value}\n")).unwrap();
            assert_eq!(form.options, [option]);
        }
    }

    #[test]
    fn keys_that_contradict_each_other_are_reported() {
        let text = "[database]\npassword = \"x\"\npassword_env = \"TPCC_PASSWORD\"\n\
                    [run]\nlimit_per_min = 9\nminutes = 1\nfor = \"9s\"\nrate = \"8/min\"\n";
        let both = |line, second, first| {
            format!("line {line}: {second} excludes {first}; leave one of them out")
        };
        assert_eq!(
            parsed(text).unwrap_err(),
            [
                both(3, "database.password_env", "database.password"),
                both(7, "run.for", "run.minutes"),
                both(8, "run.rate", "run.limit_per_min"),
            ]
        );
        let text = "[run]\ntransactions_per_terminal = 7\nfor = \"9s\"\n\
                    think = true\nkeying_multiplier = 0.5\nlimit_per_min = 1\n";
        assert_eq!(
            parsed(text).unwrap_err(),
            [
                both(3, "run.for", "run.transactions_per_terminal"),
                both(6, "run.limit_per_min", "run.keying_multiplier"),
                both(6, "run.limit_per_min", "run.think"),
            ]
        );
        let nothing = "[run]\nminutes = 0\nfor = \"9s\"\nthink = false\nlimit_per_min = 1\n";
        assert!(parsed(nothing).is_ok());
    }

    #[test]
    fn every_problem_is_reported_with_its_line() {
        let text = "[database]\nurll = \"x\"\npassword_env = \"NOPE\"\n[run]\nthink = 3\n[[run.rate]]\nx = 1\n";
        assert_eq!(
            parsed(text).unwrap_err(),
            [
                "line 2: database.urll is not a key (did you mean database.url?)",
                "line 3: database.password_env names an environment variable that is not set; \
                 give the name of a variable, not the password",
                "line 5: run.think is \"3\" but must be true or false",
                "line 6: run.rate is a table instead of a value",
            ]
        );
        let said = parsed("[run\nterminals = 1\n").unwrap_err();
        assert!(said[0].starts_with("line 1: "), "{said:?}");
    }
}
