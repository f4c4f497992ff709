//! Layers of settings: their order, their errors, and reloads after a change.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use saiga_settings::{Origin, Profile, Settings, SettingsError, Sources, Watch};

/// A simulated machine: a folder in place of `/etc` and `$HOME`, a map as the environment.
struct Machine {
    root: tempfile::TempDir,
    variables: HashMap<&'static str, OsString>,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let variables = HashMap::from([("HOME", root.path().join("home").into_os_string())]);
        Self { root, variables }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn set(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.insert(name, value.into());
        self
    }

    fn read(&self) -> (Result<Settings, SettingsError>, Watch) {
        let system_file = self.path("etc.toml");
        let variable = |name: &str| self.variables.get(name).cloned();
        Sources {
            system_file: &system_file,
            variable: &variable,
        }
        .read()
    }

    fn settings(&self) -> Settings {
        self.read().0.unwrap()
    }

    fn error(&self) -> String {
        self.read().0.unwrap_err().to_string()
    }
}

#[test]
fn without_any_layer_the_defaults_hold() {
    let settings = Machine::new().settings();
    assert_eq!(settings, Settings::default());
    assert!(settings.enabled.value);
    assert_eq!(settings.evidence_messages.value, 64);
    assert_eq!(settings.ring.value.get(), 4_194_304);
    assert_eq!(settings.spin.value.get(), Duration::from_micros(50));
}

#[test]
fn later_layers_win_and_each_value_names_its_origin() {
    let machine = Machine::new()
        .set("SAIGA_RING", "64KiB")
        .set("SAIGA_PORTS_OFF", "3306, 5432,");
    let etc = machine.file(
        "etc.toml",
        "enabled = true\nring = \"8KiB\"\nspin = \"10us\"\nprograms_off = [\"psql\"]\n",
    );
    let home = machine.file("home/.config/saiga/saiga.toml", "spin = \"20us\"\n");
    let settings = machine.settings();
    assert_eq!(settings.ring.value.get(), 65536);
    assert_eq!(settings.ring.origin, Origin::Variable("SAIGA_RING"));
    assert_eq!(settings.spin.value.get(), Duration::from_micros(20));
    assert_eq!(settings.spin.origin, Origin::File(home));
    assert_eq!(settings.enabled.origin, Origin::File(etc));
    assert_eq!(settings.profile.origin, Origin::Default);
    assert!(settings.is_port_off(5432) && !settings.is_port_off(6379));
    assert!(settings.is_program_off(b"psql") && !settings.is_program_off(b"psql2"));
}

#[test]
fn the_file_in_saiga_config_replaces_the_users_file_and_must_exist() {
    let machine = Machine::new();
    machine.file("home/.config/saiga/saiga.toml", "enabled = false\n");
    assert!(!machine.settings().enabled.value);
    let named = machine.file("named.toml", "profile = \"gentle\"\n");
    let machine = machine.set("SAIGA_CONFIG", named);
    assert!(machine.settings().enabled.value);
    assert_eq!(machine.settings().profile.value, Profile::Gentle);
    let machine = machine.set("SAIGA_CONFIG", "/nowhere/saiga.toml");
    assert!(
        machine
            .error()
            .contains("SAIGA_CONFIG names /nowhere/saiga.toml")
    );
}

#[test]
fn the_spin_follows_the_profile_unless_it_is_set() {
    let machine = Machine::new().set("SAIGA_PROFILE", "gentle");
    let settings = machine.settings();
    assert_eq!(settings.profile.value, Profile::Gentle);
    assert_eq!(settings.spin.value.get(), Duration::ZERO);
    assert_eq!(settings.spin.origin, Origin::Follows("profile"));
    machine.file("etc.toml", "spin = \"7us\"\n");
    assert_eq!(
        machine.settings().spin.value.get(),
        Duration::from_micros(7)
    );
}

#[test]
fn each_error_names_file_line_and_remedy() {
    for (text, expected) in [
        ("enabled = maybe", "line 1"),
        ("\n\nenable = true\n", "line 3: unknown field `enable`"),
        ("enabled = \"yes\"", "expected a boolean"),
        ("evidence_messages = -1", "line 1"),
        ("ring = \"5KiB\"", "power of two from \"4KiB\" to \"4MiB\""),
        ("ring = 65536", "line 1"),
        ("spin = \"50\"", "a time with its unit, such as \"50us\""),
        ("ports_off = [70000]", "line 1"),
        ("profile = \"fast\"", "use latency, default or gentle"),
        (
            "enabled = true\nlog = \"/var/log/saiga.log\"",
            "log and log_level were removed",
        ),
        (
            "\nlog_level = \"warn\"",
            "line 2: unknown field `log_level`",
        ),
        ("[section]\n", "unknown field `section`"),
    ] {
        let machine = Machine::new();
        let path = machine.file("etc.toml", text);
        let error = machine.error();
        assert!(error.contains(expected), "{text:?}: {error}");
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        assert!(!error.contains('\n'), "{error:?} has several lines");
    }
}

#[test]
fn a_path_that_is_not_a_settings_file_fails_without_blocking() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("etc.toml")).unwrap();
    assert!(machine.error().contains("not a regular file"));

    let machine = Machine::new();
    let fifo = machine.path("etc.toml");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    assert!(machine.error().contains("not a regular file"));

    let machine = Machine::new();
    machine.file("etc.toml", &"#".repeat(70_000));
    assert!(machine.error().contains("larger than 64 KiB"));
    fs::write(machine.path("etc.toml"), b"ring = \"\xff\"").unwrap();
    assert!(machine.error().contains("not UTF-8"));
}

#[test]
fn a_bad_variable_is_named_with_its_value() {
    for (name, value, expected) in [
        (
            "SAIGA_ENABLED",
            "off",
            "SAIGA_ENABLED=off: use true or false",
        ),
        (
            "SAIGA_EVIDENCE_MESSAGES",
            "many",
            "SAIGA_EVIDENCE_MESSAGES=many",
        ),
        (
            "SAIGA_PORTS_OFF",
            "80,http",
            "\"http\" is not a whole number",
        ),
    ] {
        let error = Machine::new().set(name, value).error();
        assert!(error.contains(expected), "{error}");
    }
    assert!(
        Machine::new()
            .set("SAIGA_ENABLED", "")
            .settings()
            .enabled
            .value,
        "an empty variable counts as unset"
    );
}

#[test]
fn misspelt_variables_are_found() {
    let names = [
        "SAIGA_RINGS",
        "SAIGA_RING",
        "HOME",
        "SAIGA_LOG",
        "SAIGA_SOAK",
    ]
    .map(OsString::from);
    assert_eq!(
        saiga_settings::unknown_variables(names),
        ["SAIGA_LOG", "SAIGA_RINGS"]
    );
}

#[test]
fn a_reload_finds_created_changed_broken_and_deleted_files() {
    let machine = Machine::new().set("SAIGA_RING", "16KiB");
    let (first, mut watch) = machine.read();
    assert!(first.unwrap().enabled.value);
    assert!(watch.reload_if_changed().is_none(), "nothing changed");

    let path = machine.file("etc.toml", "enabled = false\n");
    let settings = watch.reload_if_changed().unwrap().unwrap();
    assert!(!settings.enabled.value, "created");
    assert_eq!(settings.ring.value.get(), 16384, "variables still override");
    assert!(watch.reload_if_changed().is_none());

    replace(&path, "enabled = nonsense\n");
    assert!(watch.reload_if_changed().unwrap().is_err(), "broken");
    assert!(watch.reload_if_changed().is_none(), "reported once");

    replace(&path, "enabled = true\n");
    assert!(
        watch.reload_if_changed().unwrap().unwrap().enabled.value,
        "corrected"
    );

    fs::remove_file(&path).unwrap();
    assert_eq!(
        watch.reload_if_changed().unwrap().unwrap().enabled.origin,
        Origin::Default,
        "deleted"
    );
}

/// Saves as editors do: a new file replaces the old file by rename(2).
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

#[test]
fn the_example_file_is_valid_and_changes_nothing() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/saiga.toml");
    let text = fs::read_to_string(example).unwrap();
    let machine = Machine::new();
    machine.file("etc.toml", &text);
    assert_eq!(machine.settings(), Settings::default());

    // Every commented-out value is valid and the default.
    let active: String = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix("#")
                .filter(|rest| !rest.starts_with([' ', '#']))
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    machine.file("etc.toml", &active);
    let (settings, defaults) = (machine.settings(), Settings::default());
    for (row, default) in settings.rows().iter().zip(defaults.rows()) {
        assert_eq!(row.value, default.value, "{}", row.key);
        assert_ne!(
            row.origin, default.origin,
            "{} is not in the example",
            row.key
        );
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    /// Any text in a file or a variable gives settings, or an error of one line that names the
    /// file or variable.
    #[test]
    fn any_text_gives_settings_or_an_error(
        file in proptest::prop_oneof![
            "\\PC{0,40}",
            "(enabled|ring|spin|log|ports_off|profile) ?= ?[\"\\[]?[0-9a-zKMiBus,]{0,9}[\"\\]]?\n",
        ],
        variable in "\\PC{0,12}",
    ) {
        let machine = Machine::new();
        let path = machine.file("etc.toml", &file);
        if let Err(error) = machine.read().0 {
            let error = error.to_string();
            proptest::prop_assert!(error.contains(path.to_str().unwrap()), "{}", error);
            proptest::prop_assert!(!error.contains('\n'), "{}", error);
        }
        for name in ["SAIGA_RING", "SAIGA_SPIN", "SAIGA_PORTS_OFF", "SAIGA_ENABLED"] {
            let machine = Machine::new().set(name, &variable);
            if let Err(error) = machine.read().0 {
                proptest::prop_assert!(error.to_string().starts_with(name));
            }
        }
    }
}
