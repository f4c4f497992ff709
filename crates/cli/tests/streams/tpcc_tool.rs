//! `tools/streams-tpcc`, which starts a server: no server is left, however the tool ends.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use saiga_process::proc;
use saiga_trials::witness::await_true;

use crate::site::{Labeller, Site, run};
use crate::support::{said, text};

const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools");

/// The directory of the servers; processes that remain there are killed on drop.
struct Home(PathBuf);

impl Home {
    fn new(site: &Site) -> Self {
        let dir = site.path("home");
        fs::create_dir(&dir).unwrap();
        // A server refuses to run as root.
        let outer = dir.parent().unwrap();
        fs::set_permissions(outer, Permissions::from_mode(0o755)).unwrap();
        Self(dir)
    }

    /// Processes with this directory in their command lines.
    fn servers(&self) -> Vec<u32> {
        let pids = proc::pids().unwrap().into_iter();
        let is_here = |pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words);
            words.contains(text(&self.0)) && words.contains("mariadbd")
        };
        pids.filter(is_here).collect()
    }

    /// Whether the server answers.
    fn is_ready(&self) -> bool {
        let folders = fs::read_dir(&self.0).unwrap();
        let logs = folders.map(|folder| folder.unwrap().path().join("server/log"));
        logs.flat_map(fs::read_to_string)
            .any(|log| log.contains("ready for connections"))
    }

    fn has_loop_device(&self) -> bool {
        let listed = said(Command::new("losetup").args(["-l", "-n", "-O", "BACK-FILE"]));
        listed.stdout.contains(text(&self.0))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for pid in self.servers() {
            let _ = Command::new("kill")
                .args(["-KILL", &pid.to_string()])
                .status();
        }
    }
}

fn tool(site: &Site, home: &Path) -> Command {
    let mut command = Command::new(format!("{TOOLS}/streams-tpcc"));
    command
        .arg("mariadb")
        .args(["--size", "1GiB", "--dir", text(home)]);
    command.arg("--saiga").arg(site.saiga.path("bin/saiga"));
    command.arg("--out").arg(site.path("out"));
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdout(Stdio::null());
    // As from a shell with a terminal, whose Ctrl-C goes to the whole process group.
    command.process_group(0);
    command
}

#[test]
fn a_tool_stopped_while_loading_leaves_no_server() {
    for (signal, is_for_all, code) in [("INT", true, 130), ("TERM", false, 143)] {
        let site = Site::new();
        let home = Home::new(&site);
        let mut running = Labeller::warning(&mut tool(&site, &home.0));
        let pid = running.child.id();
        await_true(|| home.is_ready(), || "no server".to_owned());
        assert_eq!(home.servers().len(), 1);
        let whom = if is_for_all {
            format!("-{pid}")
        } else {
            pid.to_string()
        };
        run("kill", &[&format!("-{signal}"), "--", &whom]);
        let found = running.child.wait().unwrap().code();
        assert_eq!(found, Some(code), "{signal}: {:#?}", running.rest());
        assert_eq!(home.servers(), [0; 0], "{signal}");
        assert_eq!(fs::read_dir(&home.0).unwrap().count(), 0, "{signal}");
        await_true(
            || !home.has_loop_device(),
            || format!("{signal}: the loop device is still there"),
        );
    }
}

/// A server that ignores SIGTERM is killed. A server that has ended before its name is read is
/// ignored.
#[test]
fn a_server_is_stopped_in_every_state() {
    let script = r#"
import io, subprocess, sys
import servers
def server(script):
    it = servers.MariaDb.__new__(servers.MariaDb)
    # It waits by itself: a process has no command line in the middle of an exec.
    command = ["sh", "-c", script + "echo; read line", "1000"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    vars(it).update(pid=process.pid, process=None, data="1000")
    it.patience_s = 0.1
    return it, process
deaf, process = server("trap '' TERM; ")
deaf.stop()
assert process.wait() == -9, process.returncode
class Gone(io.StringIO):
    def read(self):
        raise ProcessLookupError
gone, process = server("")
for found in (Gone, lambda: open("/no/file")):
    servers.open = lambda path: found()
    gone.stop()
    assert process.poll() is None
process.kill()
process.wait()
"#;
    // The server may hang.
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "30", "python3", "-c", script]);
    command
        .env("PYTHONPATH", TOOLS)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let out = said(&mut command);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stderr.contains("does not end on SIGTERM"), "{out:?}");
}

/// Medians and half ranges over recordings, with a row for each simulated drive, for both
/// isolations.
#[test]
fn the_table_has_medians_of_recordings() {
    let script = r#"
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("tool", sys.argv[1])
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("tool", loader))
loader.exec_module(tool)
def case(rules, by, placement, ratio, unit_pages, waf=2.0, is_oracle=False):
    return {"rules": rules, "by": by, "placement": placement, "flash_writes_ratio": ratio, "is_oracle": is_oracle,
            "utilisation": 0.9, "policy": "greedy", "trim": False, "unit_pages": unit_pages, "result": {"waf": waf}}
def recording(ratio, waf, sizes):
    for size in sizes:
        yield case("none", "stream", "one stream", 1.0, size, waf)
        for by, worse in (("stream", 0.0), ("hint", 0.05)):
            yield case("postgres", by, "initially isolated", ratio + worse, size)
            yield case("postgres", by, "persistently isolated", ratio + worse - 0.1, size)
            yield case("suggested", by, "initially isolated", 0.5, size)
        yield case("oracle", "stream", "initially isolated", 0.25, size, is_oracle=True)
made = lambda sizes: [{"cases": list(recording(*one, sizes))} for one in ((0.7, 2.0), (0.9, 4.0), (0.8, 2.5))]
sys.stdout.write(tool.table("postgres", made([512])))
sys.stdout.write("".join(tool.table("postgres", made([128, 512])).splitlines(True)[2:]))
"#;
    let mut command = Command::new("python3");
    command
        .args(["-c", script])
        .arg(format!("{TOOLS}/streams-tpcc"));
    command
        .env("PYTHONPATH", TOOLS)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let out = said(&mut command);
    assert_eq!(out.code, Some(0), "{out:?}");
    let figures = "2.500 ±1.000 | -20.0 ±10.0 / -30.0 ±10.0 | -15.0 ±10.0 / -25.0 ±10.0 | \
                   -50.0 ±0.0 | -50.0 ±0.0 | -75.0 ±0.0 | -60.0 ±12.5 |";
    let drive = "90 %, greedy, no discards";
    let expected = format!(
        "| live, victims | WAF of one stream | postgres, by stream | postgres, by hint | \
         suggested, by stream | suggested, by hint | oracle | ceiling |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n\
         | {drive} | {figures}\n\
         | {drive}, units of 128 pages | {figures}\n\
         | {drive}, units of 512 pages | {figures}\n"
    );
    assert_eq!(out.stdout, expected);
}
