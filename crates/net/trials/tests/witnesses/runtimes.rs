//! Language runtimes with their own event loops: Python, Node.js, Java, Go. Each serves its own
//! client, and a client without the library.

use std::process::Command;

use saiga_trials::{
    parity::Arm::{Kernel, Library},
    port,
    witness::{EVIDENCE, Site, await_listener, source},
};

/// The commands of a runtime's server and clients.
struct Runtime<'a> {
    serve: &'a dyn Fn() -> Command,
    ask: &'a dyn Fn(saiga_trials::parity::Arm) -> Command,
    said: &'a str,
}

/// Serves a client on each arm; the accelerated client must be upgraded at least `least` times.
fn check(site: &Site, ports: &[u16], runtime: &Runtime<'_>, least: u64) {
    let mut server = site.serve((runtime.serve)());
    for port in ports {
        server = server.listening(*port);
    }
    for arm in [Kernel, Library] {
        assert_eq!(site.done((runtime.ask)(arm)), runtime.said, "{arm:?}");
        let upgrades = server.upgrades();
        let wanted = if arm == Library { least } else { 0 };
        assert!(
            upgrades >= wanted && (upgrades > 0) == (wanted > 0),
            "{upgrades} upgrades, client on {arm:?}"
        );
    }
    server.end();
}

#[test]
fn asyncio_streams_echo() {
    for evidence in EVIDENCE {
        let (site, port) = (Site::new(evidence), port::free());
        let serve = || {
            let mut command = site.python("aio.py", Library);
            command.args(["serve", &port.to_string()]);
            command
        };
        let ask = |arm| {
            let mut command = site.python("aio.py", arm);
            command.args(["ask", &port.to_string(), "10", "60"]);
            command
        };
        let runtime = Runtime {
            serve: &serve,
            ask: &ask,
            said: "checked 600\n",
        };
        check(&site, &[port], &runtime, 10);
    }
}

#[test]
fn node_serves_http_and_half_closed_sockets() {
    for evidence in EVIDENCE {
        let (site, port, net) = (Site::new(evidence), port::free(), port::free());
        let serve = || {
            let mut command = site.command("node", Library);
            command.arg(source("web.js")).arg("serve");
            command.args([port.to_string(), net.to_string()]);
            command
        };
        let ask = |arm| {
            let mut command = site.command("node", arm);
            command.arg(source("web.js")).arg("ask");
            command.args([port.to_string(), net.to_string(), "120".to_owned()]);
            command
        };
        let runtime = Runtime {
            serve: &serve,
            ask: &ask,
            said: "checked 363\n",
        };
        // Three connections of the agents. Each echo may be written by a single call.
        check(&site, &[port, net], &runtime, 3);
    }
}

#[test]
fn java_selectors_and_blocking_sockets_echo() {
    for evidence in EVIDENCE {
        let (site, port) = (Site::new(evidence), port::free());
        let mut compiler = site.command("javac", Kernel);
        compiler
            .arg("-d")
            .arg(site.path(""))
            .arg(source("Nio.java"));
        site.compiled(compiler);
        let java = |arm, role: &[&str]| {
            let mut command = site.command("java", arm);
            command.args(["-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp"]);
            command.arg(site.path("")).arg("Nio").args(role);
            command
        };
        let serve = || java(Library, &["serve", &port.to_string()]);
        let ask = |arm| java(arm, &["ask", &port.to_string(), "1500"]);
        let runtime = Runtime {
            serve: &serve,
            ask: &ask,
            said: "checked 6000\n",
        };
        // A client that reads while another of its threads writes may never be upgraded.
        check(&site, &[port], &runtime, 2);
    }
}

/// Go makes system calls itself: nothing is upgraded and nothing breaks, with any peer.
#[test]
fn go_keeps_working() {
    for evidence in EVIDENCE {
        let (site, port) = (Site::new(evidence), port::free());
        let echo = site.path("echo");
        let mut compiler = site.command("go", Kernel);
        compiler.env("GOCACHE", std::env::temp_dir().join("saiga-trials-go"));
        compiler.env("GO111MODULE", "off").args(["build", "-o"]);
        compiler.arg(&echo).arg(source("echo.go"));
        site.compiled(compiler);
        let mut command = site.command(&echo, Library);
        command.args(["serve", &port.to_string()]);
        let server = site.serve(command).listening(port);
        for arm in [Kernel, Library] {
            let mut client = site.command(&echo, arm);
            client.args(["ask", &port.to_string(), "4", "200"]);
            assert_eq!(site.done(client), "checked 800\n");
            let mut client = site.python("talk.py", arm);
            client.args(["ask", "127.0.0.1", &port.to_string(), "0", "python", "300"]);
            assert_eq!(site.done(client), "checked 300 of python\n");
        }
        assert_eq!(server.upgrades(), 0, "Go's bytes pass no hook");
        server.end();
    }
}

#[test]
fn http_server_of_python_serves_curl() {
    for evidence in EVIDENCE {
        let (site, port) = (Site::new(evidence), port::free());
        let page = saiga_trials::witness::nginx::content(3_000_000);
        site.write("page", page);
        let mut command = site.command(saiga_trials::parity::python(), Library);
        command.args([
            "-m",
            "http.server",
            "--bind",
            "127.0.0.1",
            "--protocol",
            "HTTP/1.1",
        ]);
        command
            .arg(port.to_string())
            .arg("--directory")
            .arg(site.path(""));
        let server = site.serve(command).listening(port);
        for arm in [Kernel, Library] {
            let mut curl = site.command("curl", arm);
            curl.args(["-sS", "--fail", "--output", "back#1"]);
            curl.arg(format!("http://127.0.0.1:{port}/page?[1-8]"));
            site.done(curl);
            for copy in 1..=8 {
                let back = std::fs::read(site.path(&format!("back{copy}"))).expect("curl wrote it");
                assert!(back == page, "copy {copy} differs, client on {arm:?}");
            }
        }
        assert_eq!(
            server.upgrades(),
            1,
            "{evidence:?}: one connection for all pages"
        );
        server.end();
    }
}

/// A listener passed as descriptor 3 over exec, as by systemd's socket activation.
#[test]
fn socket_activation_passes_a_listener_on() {
    for evidence in EVIDENCE {
        let (site, port) = (Site::new(evidence), port::free());
        let mut command = site.python("activate.py", Library);
        command
            .arg(port.to_string())
            .arg(saiga_trials::parity::python());
        command.arg("-B").arg(source("activated.py"));
        let server = site.serve(command);
        await_listener(port);
        for arm in [Kernel, Library] {
            let mut client = site.python("talk.py", arm);
            client.args(["ask", "127.0.0.1", &port.to_string(), "0", "client", "300"]);
            assert_eq!(site.done(client), "checked 300 of client\n");
        }
        assert_eq!(server.upgrades(), 1, "{evidence:?}");
        server.end();
    }
}
