//! `[outgoing]`, `[metrics]`, `[capture]` and `[runtime]`: the service around the stack.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;

use super::address::prefix;
use super::output::Output;
use super::reader::Table;
use super::value::Bytes;

/// Most bytes of a path of a socket, without the final zero byte (`man 7 unix`).
const SOCKET_PATH: usize = 107;
/// Default of `snap_length`: more than any packet has.
const SNAP_LENGTH: u32 = 262_144;
/// Default of `file_size`.
const FILE_SIZE: Bytes = Bytes(256 << 20);

/// Connections of programs of this host to other hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// Prefixes of destinations; connections to all others go by the kernel.
    pub prefixes: Vec<IpNet>,
}

/// Metrics for Prometheus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Where they are served, by HTTP; `None` for nowhere.
    pub listen: Option<SocketAddr>,
}

/// Defaults of `saiga gateway capture`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Bytes of each packet that are kept.
    pub snap_length: u32,
    /// Size at which a capture ends.
    pub file_size: Bytes,
}

impl Default for Capture {
    fn default() -> Self {
        Self {
            snap_length: SNAP_LENGTH,
            file_size: FILE_SIZE,
        }
    }
}

/// The process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// The user that the gateway becomes after its start.
    pub user: String,
    /// The socket by which `saiga gateway status` and others reach the gateway.
    pub control: PathBuf,
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            user: "saiga".to_owned(),
            control: PathBuf::from("/run/saiga-gateway/gateway.sock"),
        }
    }
}

impl Outgoing {
    pub(super) fn read(table: &Table<'_>) -> Self {
        table.check_names();
        let prefixes = table.parsed_list("prefixes", prefix).unwrap_or_default();
        for (index, one) in prefixes.iter().enumerate() {
            let first = one.addr();
            if first.is_loopback() || first.is_multicast() {
                let what = format!("{one} is not on another host; remove it");
                table.problem("prefixes", &what);
            }
            if prefixes[..index].contains(one) {
                table.problem("prefixes", &format!("{one} is in the list twice"));
            }
        }
        Self { prefixes }
    }

    pub(super) fn write(&self, out: &mut Output) {
        let Self { prefixes } = self;
        out.table("outgoing");
        out.texts("prefixes", prefixes);
    }
}

impl Metrics {
    pub(super) fn read(table: &Table<'_>) -> Self {
        table.check_names();
        let listen = table.parsed_by("listen", |text| {
            let address = text.parse().ok();
            let is_usable = |address: &SocketAddr| {
                let ip = address.ip();
                address.port() != 0 && !ip.is_multicast() && ip.to_canonical() == ip
            };
            let usable = address.filter(is_usable);
            let example = "write address and port such as \"127.0.0.1:9464\" or \"[::1]:9464\"";
            usable.ok_or_else(|| example.to_owned())
        });
        Self { listen }
    }

    pub(super) fn write(&self, out: &mut Output) {
        let Self { listen } = self;
        out.table("metrics");
        if let Some(listen) = listen {
            out.text("listen", listen);
        }
    }
}

impl Capture {
    pub(super) fn read(table: &Table<'_>) -> Self {
        table.check_names();
        let capture = Self {
            snap_length: table
                .whole("snap_length", &(64..=SNAP_LENGTH))
                .unwrap_or(SNAP_LENGTH),
            file_size: table.parsed("file_size").unwrap_or(FILE_SIZE),
        };
        if capture.file_size < Bytes(1 << 20) {
            table.problem("file_size", "write at least \"1MiB\"");
        }
        capture
    }

    pub(super) fn write(&self, out: &mut Output) {
        let Self {
            snap_length,
            file_size,
        } = self;
        out.table("capture");
        if *snap_length != SNAP_LENGTH {
            out.key("snap_length", snap_length);
        }
        if *file_size != FILE_SIZE {
            out.text("file_size", file_size);
        }
    }
}

impl Runtime {
    pub(super) fn read(table: &Table<'_>) -> Self {
        table.check_names();
        let default = Self::default();
        let user = table.parsed_by("user", user);
        Self {
            user: user.unwrap_or(default.user),
            control: socket_path(table, "control").unwrap_or(default.control),
        }
    }

    pub(super) fn write(&self, out: &mut Output) {
        let Self { user, control } = self;
        let default = Self::default();
        out.table("runtime");
        if *user != default.user {
            out.text("user", user);
        }
        if *control != default.control {
            out.text("control", control.display());
        }
    }
}

/// Parses the name of a user as useradd(8) accepts it.
fn user(text: &str) -> Result<String, String> {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let is_next = |byte: u8| is_first(byte) || byte.is_ascii_digit() || byte == b'-';
    let mut bytes = text.bytes();
    let is_name = bytes.next().is_some_and(is_first) && bytes.all(is_next) && text.len() <= 32;
    match text {
        "root" => Err(
            "write a user without rights of its own; the gateway keeps only the \
                       capabilities that it needs"
                .to_owned(),
        ),
        text if is_name => Ok(text.to_owned()),
        _ => Err("write the name of a user such as \"saiga\"".to_owned()),
    }
}

/// Reads the path of a socket.
pub(super) fn socket_path(table: &Table<'_>, key: &'static str) -> Option<PathBuf> {
    let path = table.parsed_by(key, absolute)?;
    if path.as_os_str().len() > SOCKET_PATH {
        let what = format!("write a path of at most {SOCKET_PATH} bytes, the most for a socket");
        table.problem(key, &what);
    }
    if path.file_name().is_none() {
        table.problem(key, "write the path of a socket, not of a folder");
    }
    Some(path)
}

/// Parses an absolute path.
pub(crate) fn absolute(text: &str) -> Result<PathBuf, String> {
    if Path::new(text).is_absolute() {
        Ok(PathBuf::from(text))
    } else {
        Err("write an absolute path".to_owned())
    }
}
