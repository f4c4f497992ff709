//! A private nginx with several workers, run as a daemon as on production hosts.

use std::{
    cell::RefCell, fs, os::unix::process::CommandExt as _, path::Path, process::Command,
    sync::LazyLock,
};

use crate::{
    bounded::{self, Ending},
    parity::Arm,
    port,
    sys::{self, Signal},
    witness::{Site, await_listener, await_some, await_true, upgrades_in_group},
};

/// Sizes of the served files: empty, small, one buffer, many buffers.
pub const SIZES: [usize; 6] = [0, 1, 1000, 65_536, 300_000, 1_500_000];

/// Number of rounds, and the sizes of the files in each.
pub type Load<'a> = (u32, &'a [usize]);

/// The configuration of a server.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// One listening socket per worker.
    pub reuseport: bool,
    /// The workers drop root's rights; otherwise all processes run as an ordinary user.
    pub by_root: bool,
}

/// A running nginx: files on `port`, the same through a proxy on `proxy`.
#[derive(Debug)]
pub struct Nginx<'a> {
    /// Serves files, and accepts them by PUT below `/up/`.
    pub port: u16,
    /// Forwards requests to `port`.
    pub proxy: u16,
    site: &'a Site,
    arm: Arm,
    user: Option<u32>,
    group: u32,
    /// PIDs that the test has killed; their ends in the log are expected.
    killed: RefCell<Vec<u32>>,
}

/// Number of workers in [`configuration`].
const WORKERS: usize = 3;

/// The unprivileged user of the tests, www-data, which is in Debian's base system. Not nobody: its
/// number stands for every unknown user, so it is never accepted as the peer's.
const WWW_DATA: u32 = 33;

/// Contents of the file of `size` bytes; every size begins elsewhere in one text.
///
/// # Panics
/// Above five million bytes.
pub fn content(size: usize) -> &'static [u8] {
    static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut text = Vec::new();
        for line in 0_u32..500_000 {
            text.extend_from_slice(b"line ");
            text.extend_from_slice(&line.to_le_bytes());
            text.extend_from_slice(b" ;\n");
        }
        text
    });
    let from = size % 9973;
    &TEXT[from..from + size]
}

fn configuration(site: &Site, setup: Setup, ports: (u16, u16)) -> String {
    let root = site.path("");
    let root = root.display();
    let user = if setup.by_root && sys::is_root() {
        "user www-data;"
    } else {
        ""
    };
    let shared = if setup.reuseport { " reuseport" } else { "" };
    let (port, proxy) = ports;
    format!(
        "{user} env LD_PRELOAD; env SAIGA_EVIDENCE_MESSAGES; worker_processes {WORKERS}; pid {root}/run/pid; error_log {root}/run/log notice;
         events {{ worker_connections 256; }}
         http {{
           access_log off; sendfile on; keepalive_requests 1000000; client_max_body_size 64m;
           client_body_temp_path {root}/run/body; proxy_temp_path {root}/run/proxy;
           fastcgi_temp_path {root}/run/f; uwsgi_temp_path {root}/run/u; scgi_temp_path {root}/run/s;
           upstream files {{ server 127.0.0.1:{port}; keepalive 8; }}
           server {{
             listen 127.0.0.1:{port}{shared}; root {root}/www;
             location /up/ {{ dav_methods PUT; create_full_put_path on; }}
           }}
           server {{
             listen 127.0.0.1:{proxy}{shared};
             location / {{ proxy_pass http://files; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}
           }}
         }}"
    )
}

impl<'a> Nginx<'a> {
    /// Starts nginx on `arm` and waits until it listens and has all its workers.
    ///
    /// # Panics
    /// If it does not come up; shows its log.
    pub fn start(site: &'a Site, arm: Arm, setup: Setup) -> Self {
        let (port, proxy) = (port::free(), port::free());
        for folder in ["run", "www", "www/up"] {
            fs::create_dir_all(site.path(folder)).expect("room in the folder");
        }
        for size in SIZES {
            site.write(&format!("www/f{size}"), content(size));
        }
        let configuration = configuration(site, setup, (port, proxy));
        site.write("nginx.conf", configuration);
        let user = (sys::is_root() && !setup.by_root).then_some(WWW_DATA);
        if sys::is_root() {
            for folder in ["run", "www/up"] {
                let path = site.path(folder);
                std::os::unix::fs::chown(path, Some(WWW_DATA), None).expect("root may");
            }
        }
        let mut nginx = Self {
            port,
            proxy,
            site,
            arm,
            user,
            group: 0,
            killed: RefCell::default(),
        };
        nginx.launch();
        nginx
    }

    /// Starts nginx with its files and ports, which a former one may have left behind, and waits
    /// until it listens and has all its workers.
    ///
    /// # Panics
    /// If it does not come up; shows its log.
    pub fn launch(&mut self) {
        // An nginx that was killed could not remove the file.
        let _ = fs::remove_file(self.site.path("run/pid"));
        let mut command = self.site.command(program(), self.arm);
        command.arg("-c").arg(self.site.path("nginx.conf"));
        command.arg("-e").arg(self.site.path("run/log"));
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let started = bounded::run_daemon(command);
        assert!(
            started.ending == Ending::Exited(0),
            "nginx: {started:?}\n{}",
            self.log()
        );
        await_listener(self.proxy);
        let master = self.master();
        self.group = master;
        self.await_workers(master);
    }

    /// Waits for all workers: the master listens before it has started them.
    fn await_workers(&self, master: u32) {
        await_true(
            || self.has_workers(master),
            || format!("workers are missing\n{}", self.log()),
        );
    }

    /// PID of the master in charge.
    pub fn master(&self) -> u32 {
        await_some(
            || self.site.read("run/pid").trim().parse().ok(),
            || format!("nginx writes no pid\n{}", self.log()),
        )
    }

    /// Contents of its error log.
    pub fn log(&self) -> String {
        self.site.read("run/log")
    }

    /// All its processes, of every generation: as a daemon they are one process group.
    pub fn processes(&self) -> Vec<u32> {
        bounded::group_members(self.group).unwrap_or_default()
    }

    /// Upgrades so far by the running processes.
    pub fn upgrades(&self) -> u64 {
        upgrades_in_group(self.group)
    }

    /// Sends SIGHUP, and waits until the old workers have ended.
    pub fn reload(&self) {
        let before = self.processes();
        let master = self.master();
        self.signal(master, Signal::HUP);
        self.await_gone(&before, &[master]);
        self.await_workers(master);
    }

    /// Sends USR2, then QUIT to the old master: the new binary inherits the listeners over exec.
    /// nginx passes on only the variables that its configuration names by `env`.
    ///
    /// # Panics
    /// If the new master does not come, or the old one does not end.
    pub fn replace_binary(&self) {
        let (old, before) = (self.master(), self.processes());
        self.signal(old, Signal::USR2);
        let new = await_some(
            || Some(self.master()).filter(|master| *master != old && self.has_workers(*master)),
            || format!("no new master\n{}", self.log()),
        );
        assert_ne!(new, old);
        self.signal(old, Signal::WINCH);
        self.signal(old, Signal::QUIT);
        self.await_gone(&before, &[]);
    }

    /// Whether `master` has started workers, which its group then contains.
    fn has_workers(&self, master: u32) -> bool {
        self.workers(master).len() >= WORKERS
    }

    /// The children of `master`.
    fn workers(&self, master: u32) -> Vec<u32> {
        let parent = |pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let rest = stat.rsplit(')').next().unwrap_or_default().to_owned();
            rest.split_whitespace()
                .nth(1)
                .and_then(|text| text.parse().ok())
        };
        let all = self.processes().into_iter();
        all.filter(|pid| parent(*pid) == Some(master)).collect()
    }

    /// Sends SIGKILL to the first `count` workers, and waits until the master has replaced them.
    pub fn kill_workers(&self, count: usize) {
        let master = self.master();
        let mut victims = self.workers(master);
        victims.truncate(count);
        for &pid in &victims {
            self.signal(pid, Signal::KILL);
        }
        self.killed.borrow_mut().extend(&victims);
        await_true(
            || {
                let now = self.workers(master);
                let replaced = !now.iter().any(|pid| victims.contains(pid));
                replaced && now.len() >= WORKERS
            },
            || format!("no new workers\n{}", self.log()),
        );
    }

    /// Sends SIGKILL to the master, and waits until it has ended; its workers go on without it.
    pub fn kill_master(&self) {
        let master = self.master();
        self.signal(master, Signal::KILL);
        self.killed.borrow_mut().push(master);
        self.await_gone(&[master], &[]);
    }

    /// Sends SIGKILL to all remaining processes, and waits until they have ended.
    pub fn kill_all(&self) {
        let all = self.processes();
        for &pid in &all {
            self.signal(pid, Signal::KILL);
        }
        self.await_gone(&all, &[]);
        self.killed.borrow_mut().extend(all);
    }

    fn await_gone(&self, old: &[u32], but: &[u32]) {
        await_true(
            || {
                let now = self.processes();
                let stays = |pid: &u32| old.contains(pid) && !but.contains(pid);
                !now.iter().any(stays)
            },
            || format!("old processes stay\n{}", self.log()),
        );
    }

    fn signal(&self, pid: u32, signal: Signal) {
        sys::signal(pid, signal)
            .unwrap_or_else(|error| panic!("{signal:?}: {error}\n{}", self.log()));
    }

    /// Sends QUIT and waits; its log must not report a crash.
    ///
    /// # Panics
    /// If a worker was killed by a signal, or a process does not end.
    pub fn end(self) {
        let all = self.processes();
        self.signal(self.master(), Signal::QUIT);
        self.await_gone(&all, &[]);
        let log = self.log();
        let ours = |line: &&str| {
            let is_of = |pid: &u32| line.contains(&format!("process {pid} exited on signal 9"));
            self.killed.borrow().iter().any(is_of)
        };
        for line in log.lines().filter(|line| !ours(line)) {
            for word in ["exited on signal", "[alert]", "[crit]", "[emerg]"] {
                assert!(!line.contains(word), "{:?}\n{log}", self.user);
            }
        }
    }
}

impl Drop for Nginx<'_> {
    fn drop(&mut self) {
        if self.group != 0 && !self.processes().is_empty() {
            sys::kill_group(self.group);
        }
    }
}

/// Path of the program, which Debian keeps out of users' PATH.
fn program() -> &'static Path {
    Path::new("/usr/sbin/nginx")
}

/// A curl that fetches the files of `sizes`, `rounds` times on kept connections, from `port`.
pub fn fetch(site: &Site, arm: Arm, port: u16, (rounds, sizes): Load<'_>, mark: &str) -> Command {
    let mut list = String::new();
    for round in 0..rounds {
        for size in sizes {
            let out = site.path(&format!("{mark}-{round}-{size}"));
            list += &format!(
                "url=http://127.0.0.1:{port}/f{size}\noutput={}\n",
                out.display()
            );
        }
    }
    let list = site.write(&format!("{mark}.list"), list);
    let mut curl = site.command("curl", arm);
    curl.args(["-sS", "--fail", "--max-time", "50", "-K"])
        .arg(list);
    curl
}

/// Checks, and removes, the files that [`fetch`] got from a server that was killed during the
/// fetch: each file is complete, or begins as it should, or is missing. Returns the number of
/// complete files.
///
/// # Panics
/// If a file has a wrong byte.
pub fn check_beginnings(site: &Site, (rounds, sizes): Load<'_>, mark: &str) -> u32 {
    let mut whole = 0;
    for round in 0..rounds {
        for &size in sizes {
            let path = site.path(&format!("{mark}-{round}-{size}"));
            let Ok(got) = fs::read(&path) else { continue };
            assert!(
                content(size).starts_with(&got),
                "{} differs ({} bytes)",
                path.display(),
                got.len()
            );
            whole += u32::from(got.len() == size);
            fs::remove_file(path).expect("our own file");
        }
    }
    whole
}

/// Checks, and removes, the files of [`fetch`].
///
/// # Panics
/// If a file is missing or differs.
pub fn check(site: &Site, (rounds, sizes): Load<'_>, mark: &str) {
    for round in 0..rounds {
        for &size in sizes {
            let path = site.path(&format!("{mark}-{round}-{size}"));
            let got = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(
                got == content(size),
                "{} differs ({} bytes)",
                path.display(),
                got.len()
            );
            fs::remove_file(path).expect("our own file");
        }
    }
}
