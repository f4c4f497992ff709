//! A harness that starts the servers its argument names, prints their PIDs, and waits to be killed.
//! The test `reaper` checks that nothing outlives it.

use std::{env, io, process::Command};

use saiga_trials::{
    mariadb,
    parity::Arm::Kernel,
    peer::Peer,
    postgres, redis,
    witness::{
        Evidence, Site,
        nginx::{Nginx, Setup},
    },
};

fn main() {
    let kind = env::args().nth(1).unwrap_or_default();
    match kind.as_str() {
        "children" => {
            let site = Site::new(Evidence::Default);
            let [cat, mut sleep] = ["cat", "sleep"].map(Command::new);
            sleep.arg("1000");
            let (peer, server) = (Peer::spawn(cat), site.serve(sleep));
            stay(&[peer.pid(), server.pid()]);
        }
        "redis" => {
            let server = redis::Server::start(Kernel, "127.0.0.1", &[]);
            stay(&[server.pid()]);
        }
        "mariadb" => {
            let server = mariadb::Server::start(mariadb::Kind::MariaDb, Kernel, &[]);
            stay(&[server.pid()]);
        }
        "postgres" => postgres(&postgres::Server::start(Kernel, &[])),
        "postgres-restarted" => {
            let mut server = postgres::Server::start(Kernel, &[]);
            server.restart();
            postgres(&server);
        }
        "nginx" => {
            let site = Site::new(Evidence::Default);
            let setup = Setup {
                reuseport: false,
                by_root: true,
            };
            stay(&Nginx::start(&site, Kernel, setup).processes());
        }
        other => panic!("'{other}' cannot be started"),
    }
}

/// Starts a connection first, so that the server has one more process.
fn postgres(server: &postgres::Server) {
    let mut client = server.client(Kernel);
    assert_eq!(client.ask("SELECT 1;"), "1");
    stay(&server.processes());
}

/// Prints the PIDs, and waits for the end of stdin.
fn stay(pids: &[u32]) {
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    println!("started {}", pids.join(" "));
    io::copy(&mut io::stdin(), &mut io::sink()).expect("stdin can be read");
}
