//! Creates certificates of test CAs with openssl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options for a new key of a type that is generated quickly.
const KEY: [&str; 5] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
];

/// Creates in a folder: `ca.pem` and `other.pem`, the certificates of two CAs; `server.key` and
/// `server.pem`, signed by the first CA for the name `localhost` only; and `old.pem`, a version 1
/// certificate of the same key, which has no names.
pub(crate) fn make(folder: &Path) {
    let run = |words: &[&[&str]]| {
        let words: Vec<&str> = words.concat();
        let mut command = Command::new("openssl");
        let output = command.args(&words).current_dir(folder).output();
        let output = output.expect("openssl is installed; tools/setup test");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {words:?}: {said}");
    };
    for name in ["ca", "other"] {
        let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
        let subject = format!("/CN={name} of a test");
        let own = ["req", "-x509", "-days", "2", "-subj", &subject];
        run(&[&own, &KEY, &["-keyout", &key, "-out", &pem]]);
    }
    let request = ["req", "-subj", "/CN=server of a test"];
    run(&[
        &request,
        &KEY,
        &["-keyout", "server.key", "-out", "server.csr"],
    ]);
    let names = "basicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost\n";
    fs::write(folder.join("names"), names).expect("the file can be written");
    let sign = ["x509", "-req", "-in", "server.csr", "-days", "2"];
    let by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
    let extensions = ["-extfile", "names", "-out", "server.pem"];
    run(&[&sign, &by, &extensions]);
    run(&[&sign, &by, &["-out", "old.pem"]]);
}

/// The path of a file in `folder`, as text.
pub(crate) fn path(folder: &Path, name: &str) -> String {
    let path: PathBuf = folder.join(name);
    path.to_str().expect("the path is UTF-8").to_owned()
}
