//! The SQL scripts that create, complete and drop the tables. Users can replace them.
//!
//! As with BenchmarkSQL's `runSQL.sh`, the script of a step is `sql.DB/STEP.sql`, or else
//! `sql.common/STEP.sql`; the user's folder is searched before the built-in files. In a file, `;`
//! at the end of a line ends a statement, `\;` is a semicolon inside a statement, and a line that
//! begins with `--` is a comment. An empty file is a step that does nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A step of creating or dropping the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The only step before the load. All other steps except `TableDrops` come after it.
    TableCreates,
    IndexCreates,
    ForeignKeys,
    /// Sets up the numbering of rows that runs add to HISTORY.
    ExtraHistId,
    /// Collects statistics for the query planner.
    BuildFinish,
    TableDrops,
}

impl Step {
    /// The steps after a load, in their order.
    pub const AFTER_LOAD: [Self; 4] = [
        Self::IndexCreates,
        Self::ForeignKeys,
        Self::ExtraHistId,
        Self::BuildFinish,
    ];

    /// The name of the script without `.sql`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TableCreates => "tableCreates",
            Self::IndexCreates => "indexCreates",
            Self::ForeignKeys => "foreignKeys",
            Self::ExtraHistId => "extraHistID",
            Self::BuildFinish => "buildFinish",
            Self::TableDrops => "tableDrops",
        }
    }
}

/// The statements of a step and their origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The path of the user's file, or the name of a built-in file.
    pub source: String,
    /// The statements, without the semicolons that end them.
    pub statements: Vec<String>,
}

/// A script that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
}

/// The built-in files as folder, step and text.
macro_rules! built_in {
    ($($folder:literal / $step:literal),* $(,)?) => {
        [$((
            $folder,
            $step,
            include_str!(concat!("../sql/", $folder, "/", $step, ".sql")),
        )),*]
    };
}

const BUILT_IN: [(&str, &str, &str); 18] = built_in![
    "sql.common" / "tableCreates",
    "sql.common" / "indexCreates",
    "sql.common" / "foreignKeys",
    "sql.common" / "extraHistID",
    "sql.common" / "buildFinish",
    "sql.common" / "tableDrops",
    "sql.mysql" / "tableCreates",
    "sql.mysql" / "indexCreates",
    "sql.mysql" / "foreignKeys",
    "sql.mysql" / "extraHistID",
    "sql.mysql" / "buildFinish",
    "sql.mysql" / "tableDrops",
    "sql.sqlite" / "tableCreates",
    "sql.sqlite" / "indexCreates",
    "sql.sqlite" / "foreignKeys",
    "sql.sqlite" / "extraHistID",
    "sql.sqlite" / "buildFinish",
    "sql.sqlite" / "tableDrops",
];

/// Finds the script of a step for the database system `db`; `own` is the user's folder. Fails if
/// the user's file exists and cannot be read.
pub fn find(own: Option<&Path>, db: &str, step: Step) -> Result<Script, ScriptError> {
    let folders = [format!("sql.{db}"), "sql.common".to_owned()];
    for folder in own
        .into_iter()
        .flat_map(|own| folders.iter().map(|f| own.join(f)))
    {
        let path = folder.join(step.name()).with_extension("sql");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let source = path.display().to_string();
                let statements = statements(&text);
                return Ok(Script { source, statements });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(ScriptError::Unreadable { path, error }),
        }
    }
    Ok(built_in(&folders, step))
}

/// Finds a built-in script; `sql.common` has one for every step.
fn built_in(folders: &[String], step: Step) -> Script {
    let known = |folder: &&String| {
        let mut all = BUILT_IN.into_iter();
        all.find(|(of, name, _)| of == folder && *name == step.name())
    };
    let found = folders.iter().find_map(|folder| known(&folder));
    let (folder, name, text) = found.unwrap_or(("sql.common", step.name(), ""));
    Script {
        source: format!("{folder}/{name}.sql (built in)"),
        statements: statements(text),
    }
}

fn statements(text: &str) -> Vec<String> {
    let (mut all, mut one) = (Vec::new(), String::new());
    // Some editors begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for line in text.lines().map(str::trim_end) {
        if line.trim_start().starts_with("--") || (line.is_empty() && one.is_empty()) {
            continue;
        }
        let (body, ends) = match line.strip_suffix(';') {
            Some(body) if !body.ends_with('\\') => (body, true),
            _ => (line, false),
        };
        if !one.is_empty() {
            one.push('\n');
        }
        one.push_str(&body.replace("\\;", ";"));
        if ends {
            all.push(std::mem::take(&mut one));
        }
    }
    all.push(one); // The last statement may lack its semicolon.
    all.retain(|statement| !is_empty(statement));
    all
}

/// Whether a statement consists only of comments. MySQL executes comments that begin with `!`.
fn is_empty(statement: &str) -> bool {
    let mut rest = statement.trim_start();
    while let Some(comment) = rest.strip_prefix("/*") {
        let is_run = ["!", "M!"].iter().any(|mark| comment.starts_with(mark));
        match comment.split_once("*/") {
            Some((_, after)) if !is_run => rest = after.trim_start(),
            Some(_) | None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    #[test]
    fn semicolons_end_statements_unless_escaped_or_inside_a_line() {
        let text = "-- a comment;\n\ncreate table a (\n  b int -- c\n);\nselect 1; select 2;\n\
                    create function f() as $$\nbegin\\;\nend\\;\n$$;\n  -- end\nlast";
        assert_eq!(
            statements(text),
            [
                "create table a (\n  b int -- c\n)",
                "select 1; select 2",
                "create function f() as $$\nbegin;\nend;\n$$",
                "last",
            ]
        );
    }

    /// Servers refuse an empty query and a byte order mark.
    #[test]
    fn a_file_without_a_statement_is_a_step_that_does_nothing() {
        for text in [
            "",
            "\n\n",
            "-- nothing\n\n",
            "\u{feff}-- nothing\n",
            "/* nothing */\n",
            "/* of two\n   lines */ /* two */;\n",
            ";\n;\n",
        ] {
            assert_eq!(statements(text), [""; 0], "{text:?}");
        }
        // MySQL executes the first two. The third is sent, so that the server reports the error.
        for text in [
            "/*!40000 select 1 */",
            "/*M!100000 select 1 */",
            "/* no end",
        ] {
            assert_eq!(statements(text), [text]);
        }
        assert_eq!(statements("\u{feff}select 1;"), ["select 1"]);
    }

    #[test]
    fn every_engine_has_every_step_and_every_table_with_its_columns() {
        for db in ["mysql", "postgres", "opengauss", "sqlite"] {
            let made = find(None, db, Step::TableCreates).unwrap().statements;
            for table in Table::ALL {
                let head = format!("create table {} (", table.name());
                let of_table = made.iter().find(|statement| statement.starts_with(&head));
                let lines: Vec<&str> = of_table.unwrap().lines().skip(1).map(str::trim).collect();
                let columns: Vec<&str> = lines
                    .iter()
                    .filter_map(|line| line.split(' ').next())
                    .filter(|word| word.contains('_'))
                    .collect();
                assert_eq!(columns, table.columns(), "{db} {table:?}");
            }
            let dropped = find(None, db, Step::TableDrops).unwrap().statements;
            for table in Table::ALL {
                let line = format!("drop table if exists {}", table.name());
                assert!(dropped.contains(&line), "{db} {table:?}");
            }
            for step in Step::AFTER_LOAD {
                let source = find(None, db, step).unwrap().source;
                let ours = [format!("sql.{db}/"), "sql.common/".to_owned()];
                assert!(
                    ours.iter().any(|folder| source.starts_with(folder)),
                    "{source}"
                );
            }
        }
    }

    #[test]
    fn a_users_file_replaces_a_built_in_one_and_its_own_system_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path();
        let put = |path: &str, text: &str| {
            let path = own.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let found = |step| find(Some(own), "postgres", step).unwrap();
        assert!(found(Step::IndexCreates).source.ends_with("(built in)"));
        put("sql.common/indexCreates.sql", "common;");
        assert_eq!(found(Step::IndexCreates).statements, ["common"]);
        put("sql.postgres/indexCreates.sql", "own;");
        assert_eq!(found(Step::IndexCreates).statements, ["own"]);
        put("sql.postgres/buildFinish.sql/x", "");
        let error = find(Some(own), "postgres", Step::BuildFinish).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("cannot read {}", own.display()))
        );
    }
}
