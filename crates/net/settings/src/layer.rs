//! One layer of settings: the values that a file or the environment sets.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::FromStr;

use crate::error::SettingsError;
use crate::value::{Profile, RingBytes, Spin};

/// Every environment variable that Saiga reads.
pub const VARIABLES: [&str; 8] = [
    "SAIGA_CONFIG",
    "SAIGA_ENABLED",
    "SAIGA_EVIDENCE_MESSAGES",
    "SAIGA_PROFILE",
    "SAIGA_SPIN",
    "SAIGA_RING",
    "SAIGA_PORTS_OFF",
    "SAIGA_PROGRAMS_OFF",
];

/// Variables of the project's own tests begin with these prefixes.
const TEST_PREFIXES: [&str; 4] = [
    "SAIGA_LIBRARY",
    "SAIGA_CHAOS_LIBRARY",
    "SAIGA_SOAK",
    "SAIGA_TRIALS_",
];

/// Errors of `toml` about keys of earlier versions begin like this.
const REMOVED: [&str; 2] = ["unknown field `log`", "unknown field `log_level`"];

const FILE_BYTES_MAX: u64 = 64 << 10;
/// Opens a FIFO without waiting for its writer: the constructor must not hang.
const O_NONBLOCK: i32 = 0o4000;

/// The keys of `saiga.toml`. `None` leaves the value of the layer below in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layer {
    pub(crate) enabled: Option<bool>,
    pub(crate) evidence_messages: Option<u32>,
    pub(crate) profile: Option<Profile>,
    pub(crate) spin: Option<Spin>,
    pub(crate) ring: Option<RingBytes>,
    pub(crate) ports_off: Option<Vec<u16>>,
    pub(crate) programs_off: Option<Vec<String>>,
}

impl Layer {
    /// Reads the file at `path`; `None` if the file does not exist.
    pub(crate) fn from_file(path: &Path) -> Result<Option<Self>, SettingsError> {
        let failed = |source| SettingsError::Read {
            path: path.to_owned(),
            source,
        };
        let not_settings = |problem| SettingsError::NotASettingsFile {
            path: path.to_owned(),
            problem,
        };
        let file = match OpenOptions::new()
            .read(true)
            .custom_flags(O_NONBLOCK)
            .open(path)
        {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(not_settings("it is not a regular file"));
        }
        let bytes = read_up_to(file, FILE_BYTES_MAX + 1).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(not_settings("it is larger than 64 KiB"));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| not_settings("it is not UTF-8 text"))?;
        let bad_line = |(line, problem)| SettingsError::Line {
            path: path.to_owned(),
            line,
            problem,
        };
        Self::from_toml(text).map(Some).map_err(bad_line)
    }

    fn from_toml(text: &str) -> Result<Self, (usize, String)> {
        toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.as_bytes().get(..start).unwrap_or_default();
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            let mut problem = error.message().replace('\n', " ");
            if REMOVED.iter().any(|key| problem.starts_with(key)) {
                problem +=
                    "; log and log_level were removed because no log was written: delete the line";
            }
            (line, problem)
        })
    }

    /// Reads the `SAIGA_*` variables. An empty variable counts as unset.
    pub(crate) fn from_variables(
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SettingsError> {
        Ok(Self {
            enabled: read(variable, "SAIGA_ENABLED", boolean)?,
            evidence_messages: read(variable, "SAIGA_EVIDENCE_MESSAGES", number)?,
            profile: read(variable, "SAIGA_PROFILE", Profile::from_str)?,
            spin: read(variable, "SAIGA_SPIN", Spin::from_str)?,
            ring: read(variable, "SAIGA_RING", RingBytes::from_str)?,
            ports_off: read(variable, "SAIGA_PORTS_OFF", |text| list(text, number))?,
            programs_off: read(variable, "SAIGA_PROGRAMS_OFF", |text| {
                list(text, |item| Ok(item.to_owned()))
            })?,
        })
    }
}

/// The sorted names among `names` that begin with `SAIGA_` and that Saiga does not read: most
/// likely misspelt.
pub fn unknown_variables(names: impl IntoIterator<Item = OsString>) -> Vec<String> {
    let mut unknown: Vec<String> = names
        .into_iter()
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with("SAIGA_") && !VARIABLES.contains(&name.as_str()))
        .filter(|name| !TEST_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    unknown.sort();
    unknown
}

fn read<T>(
    variable: &dyn Fn(&str) -> Option<OsString>,
    name: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, SettingsError> {
    let Some(value) = variable(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let parsed = match value.to_str() {
        Some(text) => parse(text.trim()),
        None => Err("it is not UTF-8 text".to_owned()),
    };
    parsed.map(Some).map_err(|problem| SettingsError::Variable {
        name,
        value: printable(&value),
        problem,
    })
}

fn printable(value: &OsStr) -> String {
    value.to_string_lossy().replace(char::is_control, " ")
}

fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("use true or false".to_owned()),
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a whole number in range"))
}

fn list<T>(text: &str, item: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(item)
        .collect()
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn read_up_to(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
