//! The structures and functions of `dpdk/plugin.c`, with the same layout.

use std::ffi::{c_char, c_int, c_void};

/// Changes with every structure and function.
pub(super) const ABI: u32 = 1;
/// Frames that are taken at a time, at most.
pub(super) const BURST: u16 = 64;

/// `struct request`: how a port is opened.
#[repr(C)]
#[derive(Debug)]
pub(super) struct PortRequest {
    pub(super) queues: u16,
    pub(super) ring: u16,
    pub(super) frames: u32,
    /// 0 for that of the port.
    pub(super) mtu: u16,
}

/// `struct info`: what an open port is.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct PortInfo {
    pub(super) mac: [u8; 6],
    pub(super) mtu: u16,
    pub(super) abilities: u32,
    /// Buffers of a sent frame.
    pub(super) most_segments: u32,
}

impl PortInfo {
    /// The port forms the checksums of TCP and UDP.
    pub(super) const SENDS_CHECKSUMS: u32 = 1;
    /// The port divides super-segments.
    pub(super) const SEGMENTS: u32 = 2;
}

/// `struct frame`: a received frame.
#[repr(C)]
#[derive(Debug)]
pub(super) struct RawFrame {
    pub(super) bytes: *const u8,
    pub(super) length: u32,
    pub(super) is_verified: u32,
}

/// `struct offload`: what is to be done with a sent frame.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FrameRequest {
    pub(super) bits: u16,
    pub(super) link_bytes: u16,
    pub(super) network_bytes: u16,
    pub(super) transport_bytes: u16,
    pub(super) segment_bytes: u16,
}

impl FrameRequest {
    pub(super) const FORM_CHECKSUM: u16 = 1;
    pub(super) const IS_UDP: u16 = 2;
    pub(super) const IS_V6: u16 = 4;
    pub(super) const SEGMENT: u16 = 8;
}

/// `struct counts`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) down: u64,
    pub(super) refused: u64,
    /// Received frames of the whole port that found no memory; 0 but at queue 0.
    pub(super) missed: u64,
}

/// `struct queue`, whose fields are the plug-in's own.
#[repr(C)]
#[derive(Debug)]
pub(super) struct RawQueue {
    _opaque: [u8; 0],
}

/// Takes what DPDK says, on any of its threads.
pub(super) type Log = unsafe extern "C" fn(*const c_char, usize);
/// Work for DPDK's thread, with its argument.
pub(super) type Work = unsafe extern "C" fn(*mut c_void);

/// The table of functions.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Table {
    pub(super) abi: u32,
    pub(super) version: unsafe extern "C" fn() -> *const c_char,
    pub(super) start: unsafe extern "C" fn(c_int, *mut *mut c_char, Log) -> c_int,
    pub(super) on_thread: unsafe extern "C" fn(Work, *mut c_void) -> c_int,
    pub(super) port_of: unsafe extern "C" fn(*const c_char, *mut u16) -> c_int,
    pub(super) port_with_mac: unsafe extern "C" fn(*const u8, *mut u16) -> c_int,
    pub(super) open_port: unsafe extern "C" fn(
        u16,
        *const PortRequest,
        *mut PortInfo,
        *mut *mut RawQueue,
        *mut *const c_char,
    ) -> c_int,
    pub(super) stop_port: unsafe extern "C" fn(u16),
    pub(super) receive: unsafe extern "C" fn(*mut RawQueue, u16) -> u16,
    pub(super) frame: unsafe extern "C" fn(*mut RawQueue, u16, *mut RawFrame) -> c_int,
    pub(super) release: unsafe extern "C" fn(*mut RawQueue),
    pub(super) room: unsafe extern "C" fn(*mut RawQueue, *mut u32) -> *mut u8,
    pub(super) send: unsafe extern "C" fn(*mut RawQueue, u32, *const FrameRequest) -> c_int,
    pub(super) flush: unsafe extern "C" fn(*mut RawQueue) -> u16,
    pub(super) counts: unsafe extern "C" fn(*const RawQueue, *mut Counts),
}
