//! A network namespace with one TUN device, which is as good as a host with one link.

use std::fs::{self, File, OpenOptions};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::sys;

/// Moves the calling thread into a namespace of its own, whose device has `address`. Returns the
/// device's other end.
pub(crate) fn enter(address: Ipv4Addr) -> anyhow::Result<File> {
    sys::unshare_network().context("cannot make a network namespace; this needs root")?;
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .context("/dev/net/tun")?;
    sys::set_tun(&device, "tun0")?;
    ip(&["address", "add", &format!("{address}/24"), "dev", "tun0"])?;
    ip(&[
        "link",
        "set",
        "tun0",
        "txqueuelen",
        "10000",
        "mtu",
        "1500",
        "up",
    ])?;
    // Each run begins without knowledge of the path.
    sysctl("tcp_no_metrics_save", "1")?;
    Ok(device)
}

fn sysctl(name: &str, value: &str) -> anyhow::Result<()> {
    fs::write(format!("/proc/sys/net/ipv4/{name}"), value).with_context(|| name.to_owned())
}

/// Runs ip(8) in the namespace of the calling thread.
fn ip(words: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("ip").args(words).status().context("ip")?;
    ensure!(status.success(), "ip {words:?}: {status}");
    Ok(())
}
