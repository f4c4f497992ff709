//! The kill switch on running servers: for all programs, for one port, for one program. Connections
//! that are upgraded already stay upgraded, later connections stay on kernel TCP, and the switch
//! can be turned back.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use saiga_trials::{compile, library, peer::Peer};

mod support;
use support::{Installation, said, text};

/// Limit for a server to read changed settings. It checks the file at most once per second, when a
/// connection is opened.
const RELOAD_LIMIT: Duration = Duration::from_secs(20);

/// An installation with the real library and the settings of its servers.
struct Site {
    saiga: Installation,
}

/// An echo server under `saiga run`.
struct Server {
    peer: Peer,
    port: String,
}

impl Server {
    fn new(mut peer: Peer) -> Self {
        let port = peer.expect("port");
        Self { peer, port }
    }
}

impl Site {
    fn new() -> Self {
        let saiga = Installation::bare();
        let installed = saiga.path("lib/saiga/libsaiga.so");
        fs::copy(library::path(), installed).unwrap();
        fs::write(saiga.path("client.toml"), "").unwrap();
        let site = Self { saiga };
        site.set("");
        site
    }

    /// Replaces the servers' settings.
    fn set(&self, settings: &str) {
        let (fresh, path) = (self.saiga.path("fresh.toml"), self.settings());
        fs::write(&fresh, settings).unwrap();
        fs::rename(fresh, path).unwrap();
    }

    fn settings(&self) -> PathBuf {
        self.saiga.path("server.toml")
    }

    fn run(&self, settings: PathBuf, program: &[&str]) -> Peer {
        let arguments = [&["run", "--"], program].concat();
        let mut command = self.saiga.saiga(&arguments);
        command
            .env("SAIGA_CONFIG", settings)
            .env("SAIGA_EVIDENCE_MESSAGES", "0");
        Peer::spawn(command)
    }

    fn serve(&self) -> Server {
        let tool = compile::tool("crowd");
        Server::new(self.run(self.settings(), &[text(&tool), "listen"]))
    }

    /// Starts a server with LD_PRELOAD; `saiga run` preloads nothing into a program that the
    /// settings exclude.
    fn serve_preloaded(&self) -> Server {
        let mut command = Command::new(compile::tool("crowd"));
        command
            .arg("listen")
            .env("LD_PRELOAD", library::path())
            .env("SAIGA_CONFIG", self.settings())
            .env("SAIGA_EVIDENCE_MESSAGES", "0");
        Server::new(Peer::spawn(command))
    }

    /// Opens a connection to the server from a client with settings that never change.
    fn connect(&self, server: &Server) -> Peer {
        let (tool, settings) = (compile::tool("talker"), self.saiga.path("client.toml"));
        let program = [text(&tool), "127.0.0.1", "127.0.0.1", &server.port];
        let mut client = self.run(settings, &program);
        client.expect("port");
        client
    }

    /// Opens connections until one takes the path `wanted`.
    fn await_path(&self, server: &Server, wanted: &str) {
        let since = Instant::now();
        while path_of(&mut self.connect(server)) != wanted {
            let waited = since.elapsed();
            assert!(
                waited < RELOAD_LIMIT,
                "still not '{wanted}' after {waited:?}"
            );
        }
    }

    fn status(&self, server: &Server) -> serde_json::Value {
        let pid = server.peer.pid().to_string();
        let out = said(&mut self.saiga.saiga(&["status", "--json", &pid]));
        assert_eq!(out.code, Some(0), "{out:?}");
        serde_json::from_str(&out.stdout).unwrap()
    }
}

/// Sends messages through a connection and returns the path that they take: "moved" to shared
/// memory, or "kernel".
fn path_of(client: &mut Peer) -> String {
    client.tell("talk 300");
    client.line().unwrap()
}

/// Writes the settings `off`, then `on`. A connection from before stays upgraded, and in between
/// the status gives the reason `why`.
fn switch_off_and_on(site: &Site, server: &Server, off: &str, on: &str, why: &str) {
    let mut old = site.connect(server);
    assert_eq!(path_of(&mut old), "moved", "before: {off}");
    site.set(off);
    site.await_path(server, "kernel");
    assert_eq!(
        path_of(&mut site.connect(server)),
        "kernel",
        "{off}: the next connection"
    );
    assert_eq!(path_of(&mut old), "moved", "{off}: it was upgraded before");
    let status = site.status(server);
    assert_eq!(status["enabled"], false, "{off}");
    let said = status["disabled"].as_str().unwrap();
    assert!(said.contains(why), "{off}: {said}");
    site.set(on);
    site.await_path(server, "moved");
    assert_eq!(path_of(&mut old), "moved", "{on}");
    assert_eq!(site.status(server)["disabled"], serde_json::Value::Null);
}

#[test]
fn a_running_server_is_switched_off_and_on() {
    let site = Site::new();
    let server = site.serve();
    let off = "enabled = false\n";
    switch_off_and_on(&site, &server, off, "enabled = true\n", "enabled = false");
    let off = "programs_off = [\"tool-crowd\"]\n";
    switch_off_and_on(
        &site,
        &server,
        off,
        "programs_off = []\n",
        "denied by settings",
    );
    let off = "enabled = perhaps\n";
    switch_off_and_on(&site, &server, off, "", "settings could not be read");
}

#[test]
fn a_server_that_was_started_switched_off_is_switched_on() {
    let site = Site::new();
    site.set("enabled = false\n");
    let server = site.serve_preloaded();
    let mut early = site.connect(&server);
    assert_eq!(path_of(&mut early), "kernel");
    site.set("enabled = true\n");
    site.await_path(&server, "moved");
    assert_eq!(
        path_of(&mut early),
        "kernel",
        "its bytes were not counted from the first one"
    );
}

#[test]
fn one_port_of_several_is_switched_off_and_on() {
    let site = Site::new();
    let (server, other) = (site.serve(), site.serve());
    let mut old = site.connect(&server);
    assert_eq!(path_of(&mut old), "moved");
    site.set(&format!("ports_off = [{}]\n", server.port));
    site.await_path(&server, "kernel");
    assert_eq!(path_of(&mut old), "moved", "it was upgraded before");
    let mut fresh = site.connect(&server);
    assert_eq!(path_of(&mut fresh), "kernel");
    let status = site.status(&server);
    assert_eq!(status["enabled"], true);
    let sockets = status["sockets"].as_array().unwrap();
    let reasons = |wanted| sockets.iter().filter(|s| s["reason"] == wanted).count();
    assert_eq!(reasons("settings"), 1, "{status}");
    assert_eq!(
        path_of(&mut site.connect(&other)),
        "moved",
        "the other server"
    );
    site.set("");
    site.await_path(&server, "moved");
}
