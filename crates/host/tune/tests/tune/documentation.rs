//! The table of knobs in `docs/tune.md` is that of the registry. `SAIGA_BLESS=1` writes it.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use saiga_tune::knobs::registry;

const BEGIN: &str = "<!-- knobs: a test writes this table -->\n";
const END: &str = "<!-- end of knobs -->\n";

#[test]
fn the_table_of_knobs_is_that_of_the_registry() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/tune.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    let mut expected = "| Knob | What | Default proposal | Risk | Source |\n".to_owned();
    expected.push_str("|---|---|---|---|---|\n");
    for knob in registry() {
        writeln!(
            expected,
            "| `{}` | {} | {} | {} | {} |",
            knob.id, knob.purpose, knob.default, knob.risk, knob.source
        )
        .unwrap();
    }
    if std::env::var_os("SAIGA_BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(table, expected, "SAIGA_BLESS=1 writes the new table");
}
