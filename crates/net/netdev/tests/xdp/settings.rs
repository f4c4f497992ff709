//! Settings of a network interface by ethtool's ioctls, because ethtool(8) is not a part of a test
//! machine.
#![expect(unsafe_code, reason = "ioctl(2) takes structures by pointer")]

use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

/// `ETHTOOL_STXCSUM`: checksums of sent frames are formed by the device.
pub(crate) const TX_CHECKSUM: u32 = 0x17;
/// `ETHTOOL_STSO`: super-segments are divided by the device.
pub(crate) const SEGMENTATION: u32 = 0x1f;

/// Sets a setting of an interface in the namespace of the thread to `value`.
pub(crate) fn set(name: &str, command: u32, value: u32) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut words = [command, value];
    let mut request = [0_u8; 40];
    request[..name.len()].copy_from_slice(name.as_bytes());
    let pointer = (words.as_mut_ptr() as usize).to_ne_bytes();
    request[16..16 + pointer.len()].copy_from_slice(&pointer);
    let request = request.as_mut_ptr();
    // SAFETY: the request is an ifreq with a pointer to the two words of the command.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, request) };
    assert_eq!(done, 0, "{name}: {}", std::io::Error::last_os_error());
}
