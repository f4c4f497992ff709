//! One systemd in namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use saiga_disks::Disks;
use saiga_process::proc;
use saiga_trials::witness::await_some;

use crate::support::{Installation, said, text};

/// Much longer than any answer takes.
const LIMIT: Duration = Duration::from_secs(60);
/// Run instead of `unshare`: enters cgroups of its own, without a view of those above.
const ENTER: &str = "for place in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do \
                     test -e $place/cgroup.procs || continue; mkdir -p $place/$GROUP; echo 0 \
                     >$place/$GROUP/cgroup.procs; done; \
                     exec unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup \
                     \"$@\"";

/// A running systemd, which is stopped on drop.
pub(crate) struct Machine {
    maker: Child,
    init: u32,
    group: String,
    /// Visible in the machine as /srv/db.
    pub(crate) data: PathBuf,
    // Dropped last.
    _installation: Installation,
    _disks: Disks,
}

impl Machine {
    /// Boots a systemd and waits until its start jobs are done.
    pub(crate) fn boot() -> Self {
        let mut disks = Disks::new();
        let data = disks.disk("ext4");
        let (root, log) = (disks.path("machine"), disks.path("boot.log"));
        fs::create_dir(&root).unwrap();
        let installation = Installation::with_real_library();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/systemd/boot.sh");
        let group = format!("saiga-trial-{}", root.parent().unwrap().display()).replace('/', "-");
        let mut command = Command::new("sh");
        command.args(["-ec", ENTER, "sh", "bash", text(&script), text(&root)]);
        command.args([text(&installation.path("")), text(&data)]);
        let maker = command
            .env("GROUP", &group)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&log).unwrap())
            .stderr(fs::File::options().append(true).open(&log).unwrap())
            .spawn()
            .unwrap();
        let mut machine = Self {
            maker,
            init: 0,
            group,
            data,
            _installation: installation,
            _disks: disks,
        };
        machine.init = machine.first_process(&log);
        machine.wait_until("systemctl is-system-running --wait");
        machine
    }

    /// PID of the first process, once it is systemd.
    fn first_process(&mut self, log: &Path) -> u32 {
        let maker = self.maker.id();
        let systemd = || {
            let children = proc::children(maker);
            children
                .into_iter()
                .find(|child| proc::name(*child) == "systemd")
        };
        await_some(systemd, || {
            let ended = self.maker.try_wait();
            format!("{ended:?}: {}", fs::read_to_string(log).unwrap())
        })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.init.to_string(), "--mount", "--pid", "--uts"]);
        command.args(["--ipc", "--net", "--cgroup", "--root", "--wd"]);
        command.args(["env", "-i", "TERM=dumb"]);
        command.arg("PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.args(["sh", "-c", line]);
        command
    }

    /// Runs a command line that must succeed; returns its output.
    pub(crate) fn run(&self, line: &str) -> String {
        let out = said(&mut self.command(line));
        assert_eq!(out.code, Some(0), "{line}: {out:#?}");
        out.stdout.trim_end().to_owned()
    }

    /// Runs a command line until it succeeds.
    pub(crate) fn wait_until(&self, line: &str) {
        let began = Instant::now();
        loop {
            let out = said(&mut self.command(line));
            if out.code == Some(0) {
                return;
            }
            assert!(began.elapsed() < LIMIT, "{line}: {out:#?}");
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // When its first process ends, the kernel kills all others and removes the mounts.
        if self.init == 0 {
            let _ = self.maker.kill();
        } else {
            let init = self.init.to_string();
            let _ = Command::new("kill").args(["-9", &init]).status();
        }
        let _ = self.maker.wait();
        for place in ["systemd/", "unified/", ""] {
            remove_groups(&PathBuf::from(format!(
                "/sys/fs/cgroup/{place}{}",
                self.group
            )));
        }
    }
}

/// Removes control groups, the innermost first.
fn remove_groups(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}
