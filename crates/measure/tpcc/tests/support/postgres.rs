//! A private PostgreSQL server, started with `saiga_trials`, and sessions with it.
#![allow(dead_code, reason = "each test program uses its own part of it")]

use std::fs;
use std::path::{Path, PathBuf};

use saiga_tpcc::db::connect::connect;
use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::{ConnectError, Session};
use saiga_tpcc::props::{Password, Props, Url};
use saiga_trials::parity::Arm;
use saiga_trials::postgres::{self, Account};

/// The superuser, and the database that every cluster has.
pub(crate) const ADMIN: &str = "postgres";
/// A pg_hba.conf that admits all users without a password.
pub(crate) const TRUST: &str = "host all all 127.0.0.1/32 trust\nhost all all ::1/128 trust\n";

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    server: postgres::Server,
}

impl Server {
    /// Starts a server on a new cluster, with the given pg_hba.conf and settings, and waits until
    /// it accepts connections.
    pub(crate) fn start(hba: &str, settings: &[&str]) -> Self {
        let settings = [&["log_min_messages=warning"], settings].concat();
        let server = postgres::Server::start_with(Arm::Kernel, &settings, |data| {
            fs::write(data.join("pg_hba.conf"), hba).expect("the cluster can be changed");
        });
        Self {
            port: server.port,
            server,
        }
    }

    /// The superuser's URL, with parameters such as `?prepareThreshold=0`.
    pub(crate) fn url(&self, params: &str) -> Url {
        let port = self.port;
        let url = format!("jdbc:postgresql://127.0.0.1:{port}/{ADMIN}{params}");
        Url::parse(&url).expect("a good URL")
    }

    /// Opens a session of the superuser.
    pub(crate) fn session(&self, params: &str) -> Box<dyn Session> {
        log_in(&self.url(params), ADMIN, "").expect("the superuser may log in")
    }

    /// Ends the server at once (SIGQUIT), with its sessions.
    pub(crate) fn quit(&mut self) {
        self.server.quit();
    }
}

/// Opens a session by a URL, in the same way as Saiga.
pub(crate) fn log_in(
    url: &Url,
    user: &str,
    password: &str,
) -> Result<Box<dyn Session>, ConnectError> {
    let options = Options::of(url).expect("good options");
    connect(url, user, &secret(password), &options)
}

/// A [`Password`], read from a props file because there is no other way to create one.
pub(crate) fn secret(text: &str) -> Password {
    let text = format!("conn=jdbc:postgresql://h/t\nwarehouses=1\npassword={text}\n");
    let props = Props::parse(PathBuf::from("test.props"), &text);
    props.expect("good props").password
}

/// Makes the server's user the owner of a file or folder.
pub(crate) fn own(path: &Path) {
    Account::Server.own(path);
}
