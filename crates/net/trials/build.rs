//! Writes one `#[test]` per file in `programs/c` and `programs/py`.
//!
//! A new parity test is a new file: nothing has to be registered.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=programs");
    let mut tests = String::new();
    for (folder, extension) in [("c", "c"), ("py", "py")] {
        let mut names: Vec<String> = Vec::new();
        for entry in fs::read_dir(Path::new("programs").join(folder))? {
            let path = entry?.path();
            let stem = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default();
            if path.extension().is_some_and(|found| found == extension) && stem != "trial" {
                names.push(stem.to_owned());
            }
        }
        names.sort();
        for name in names {
            writeln!(
                tests,
                "#[test]\nfn {folder}_{name}() {{\n    parity::check(\"{folder}/{name}.{extension}\");\n}}"
            )?;
        }
    }
    fs::write(
        Path::new(&env::var("OUT_DIR")?).join("parity_tests.rs"),
        tests,
    )?;
    Ok(())
}
