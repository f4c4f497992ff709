//! Limits of the whole kernel on files, requests and shared memory.

use crate::goal::Engine;
use crate::knob::{Domain, Knob};

const FS: &str = "Linux admin-guide/sysctl/fs.rst; gs_checkos check_list.conf";
const KERNEL: &str = "Linux admin-guide/sysctl/kernel.rst; gs_checkos check_list.conf";
const LIMIT_EFFECT: &str = "none until the limit is met; then requests fail without it";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "fs.aio-max-nr",
        purpose: "asynchronous I/O requests of all processes",
        reason: "Each InnoDB instance reserves 256 for every I/O thread (24 + 16 in procedure 001).",
        source: FS,
        effect: LIMIT_EFFECT,
        default: "at least 1048576 for a MySQL server",
        domain: Domain::Number(1, i64::MAX as u64),
        propose: |context, place| {
            let serves = context.serves_any(&[Engine::Mysql]);
            serves.then(|| context.at_least(place, 1 << 20)).flatten()
        },
        ..Knob::kernel("/proc/sys/fs/aio-max-nr")
    },
    Knob {
        id: "fs.file-max",
        purpose: "open files of all processes",
        reason: "Each connection and each table of a server needs an open file.",
        source: FS,
        effect: LIMIT_EFFECT,
        domain: Domain::Number(8192, i64::MAX as u64),
        ..Knob::kernel("/proc/sys/fs/file-max")
    },
    Knob {
        id: "fs.nr_open",
        purpose: "highest limit of open files for one process",
        reason: "A server with more than a million connections and files needs it.",
        source: FS,
        effect: LIMIT_EFFECT,
        domain: Domain::Number(8192, i32::MAX as u64),
        ..Knob::kernel("/proc/sys/fs/nr_open")
    },
    Knob {
        id: "kernel.sem",
        purpose: "System V semaphores: per set, in all, per call, and sets",
        reason: "openGauss and old versions of PostgreSQL use 17 for every 16 connections.",
        source: KERNEL,
        effect: LIMIT_EFFECT,
        domain: Domain::Numbers(4),
        ..Knob::kernel("/proc/sys/kernel/sem")
    },
    Knob {
        id: "kernel.shmmax",
        purpose: "bytes of one System V shared memory segment",
        reason: "The shared buffer of an old server is one segment.",
        source: KERNEL,
        effect: LIMIT_EFFECT,
        domain: Domain::Number(1, u64::MAX),
        ..Knob::kernel("/proc/sys/kernel/shmmax")
    },
    Knob {
        id: "kernel.shmall",
        purpose: "pages of all System V shared memory",
        reason: "The shared buffer of an old server is one segment.",
        source: KERNEL,
        effect: LIMIT_EFFECT,
        domain: Domain::Number(1, u64::MAX),
        ..Knob::kernel("/proc/sys/kernel/shmall")
    },
];
