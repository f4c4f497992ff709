//! Start-up: reads the settings and switches the library on in a process.

use crate::{
    allowance, asleep, chaos, clock, fork_group, kernel, policy, process, rt, settings, table,
    thread,
};
use saiga_settings::{SYSTEM_FILE, Sources};
use saiga_status::{Flags, Reason};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Facts that the preloaded library passes at start-up.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    pub ppoll: kernel::Ppoll,
    /// Address of glibc's `__libc_single_threaded`; null if it has none.
    pub single_threaded: *mut u8,
    /// Base name of the executable file.
    pub program: &'a [u8],
    /// Base name by which the program was started; differs from `program` if the file has several
    /// names, as Debian's redis-server has.
    pub invoked_as: &'a [u8],
    /// `Some` if loaded as `liblstack.so`: only the program named inside is accelerated.
    pub bound_program: Option<Option<&'a [u8]>>,
    /// A symbol that libc lacks, if any: then every call passes through.
    pub missing: Option<&'a str>,
}

/// Reads the settings and switches the library on, or shows why it stays off.
pub fn start(with: &Start<'_>) {
    kernel::set_ppoll(with.ppoll);
    thread::set_single_threaded_flag(with.single_threaded);
    if !table::init() {
        return;
    }
    asleep::start();
    rt::store_pid();
    rt::open_page();
    if let Some(bound) = with.bound_program {
        rt::header().set_flags(Flags::LSTACK);
        if bound != Some(with.program) && bound != Some(with.invoked_as) {
            let text = "GAZELLE_BIND_PROCNAME";
            return settings::switch_off(Reason::ProgramNotBound, text);
        }
    }
    if let Some(symbol) = with.missing {
        return settings::switch_off(Reason::MissingSymbol, symbol);
    }
    let variable = |name: &str| -> Option<OsString> { std::env::var_os(name) };
    if cfg!(feature = "chaos")
        && let Some(chaos) = variable("SAIGA_CHAOS").as_deref().and_then(OsStr::to_str)
    {
        chaos::start(chaos);
    }
    clock::calibrate();
    allowance::start();
    saiga_channel::barriers::join();
    policy::contention::set_cpus(process::cpus());
    fork_group::begin();
    let sources = Sources {
        system_file: Path::new(SYSTEM_FILE),
        variable: &variable,
    };
    settings::begin(&sources, [with.program, with.invoked_as]);
}
