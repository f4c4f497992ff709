//! The plug-in: its file, and calls of its functions that concern the process and its ports.
//!
//! The library is never unloaded, because DPDK's thread goes on until the process ends.
#![expect(unsafe_code, reason = "the functions of the plug-in are C")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};

use saiga_wire::ethernet::Mac;

use super::error::DpdkError;
use super::raw::{ABI, PortInfo, PortRequest, RawQueue, Table};

/// The name of the plug-in's file.
const FILE: &str = "libsaiga_dpdk.so";
/// What takes DPDK's messages.
static LOG: OnceLock<fn(&str)> = OnceLock::new();
/// Held while DPDK makes, opens or closes a port: one thread at a time may.
static PORTS: Mutex<()> = Mutex::new(());

/// The plug-in for DPDK, loaded.
#[derive(Debug, Clone, Copy)]
pub struct Plugin(pub(super) &'static Table);

/// The function of the plug-in that failed, and its error.
pub(super) struct Failed {
    pub(super) call: &'static str,
    pub(super) source: io::Error,
}

impl Plugin {
    /// Loads the plug-in of this program: the file beside it (a build), or in `../lib/saiga` (an
    /// installation).
    ///
    /// # Errors
    /// [`DpdkError::NoPlugin`], and those of [`Self::load`].
    pub fn find() -> Result<Self, DpdkError> {
        let program = std::env::current_exe().map_err(|source| DpdkError::System {
            what: "cannot find the program's own file",
            source,
        })?;
        let [beside, installed] = places(&program);
        if beside.is_file() {
            return Self::load(&beside);
        }
        if installed.is_file() {
            return Self::load(&installed);
        }
        Err(DpdkError::NoPlugin { beside, installed })
    }

    /// Loads the plug-in from a file.
    ///
    /// # Errors
    /// [`DpdkError::Load`] and [`DpdkError::OtherVersion`].
    pub fn load(path: &Path) -> Result<Self, DpdkError> {
        let failed = |reason| DpdkError::Load {
            path: path.to_owned(),
            reason,
        };
        let name = CString::new(path.as_os_str().as_bytes());
        let name = name.map_err(|error| failed(error.to_string()))?;
        // SAFETY: the name is a string, and the plug-in and the libraries of DPDK may be loaded
        // into any process.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(failed(loader_error()));
        }
        // SAFETY: the library is open, and the name is a string.
        let table = unsafe { libc::dlsym(library, c"saiga_dpdk".as_ptr()) };
        if table.is_null() {
            return Err(failed(loader_error()));
        }
        // SAFETY: every version of the plug-in has its number there, and is never unloaded.
        let abi = unsafe { table.cast::<u32>().read() };
        if abi != ABI {
            let path = path.to_owned();
            return Err(DpdkError::OtherVersion { path });
        }
        // SAFETY: a plug-in of this number has this table, which is constant and never unloaded.
        Ok(Self(unsafe { &*table.cast::<Table>() }))
    }

    /// The version of DPDK, such as `DPDK 22.11.11`.
    #[must_use]
    pub fn version(&self) -> String {
        // SAFETY: `version` has no condition.
        let version = unsafe { (self.0.version)() };
        // SAFETY: `version` returns a constant string.
        let version = unsafe { CStr::from_ptr(version) };
        version.to_string_lossy().into_owned()
    }

    /// Begins DPDK; `log` takes its messages. To be called once in a process.
    pub(super) fn start(&self, arguments: &[CString], log: fn(&str)) -> io::Result<()> {
        LOG.get_or_init(|| log);
        // DPDK may keep pointers to them, and swaps their places.
        let arguments: &[CString] = arguments.to_vec().leak();
        let pointers = arguments.iter().map(|one| one.as_ptr().cast_mut());
        let mut pointers: Vec<*mut c_char> = pointers.chain([ptr::null_mut()]).collect();
        let count = c_int::try_from(arguments.len()).map_err(io::Error::other)?;
        // SAFETY: there are `count` strings and a null behind them. DPDK writes to none of them.
        check(unsafe { (self.0.start)(count, pointers.as_mut_ptr(), on_log) })
    }

    /// Runs `work` on DPDK's thread, soon.
    pub(super) fn on_thread(&self, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        let argument = Box::into_raw(Box::new(work)).cast::<c_void>();
        // SAFETY: `on_work` runs once, and takes the box over.
        check(unsafe { (self.0.on_thread)(on_work, argument) })
    }

    /// The number of the port of a device, which is made if that is possible.
    pub(super) fn port_of(&self, device: &str) -> io::Result<u16> {
        let device = CString::new(device)?;
        let mut port = 0;
        let _alone = ports();
        // SAFETY: `device` is a string, and the number is written to `port`.
        check(unsafe { (self.0.port_of)(device.as_ptr(), &raw mut port) })?;
        Ok(port)
    }

    /// The number of the port with a MAC address.
    pub(super) fn port_with_mac(&self, mac: Mac) -> io::Result<u16> {
        let mut port = 0;
        let _alone = ports();
        // SAFETY: six bytes are read, and the number is written to `port`.
        check(unsafe { (self.0.port_with_mac)(mac.0.as_ptr(), &raw mut port) })?;
        Ok(port)
    }

    /// Opens a port with as many queues as are asked for.
    pub(super) fn open_port(
        &self,
        port: u16,
        request: &PortRequest,
    ) -> Result<(PortInfo, Vec<*mut RawQueue>), Failed> {
        let mut info = PortInfo::default();
        let mut queues = vec![ptr::null_mut(); usize::from(request.queues)];
        let mut call = c"".as_ptr();
        let _alone = ports();
        // SAFETY: there is room for the queues that `request` asks for, and all pointers are valid
        // until the call returns.
        let done = unsafe {
            (self.0.open_port)(
                port,
                request,
                &raw mut info,
                queues.as_mut_ptr(),
                &raw mut call,
            )
        };
        // SAFETY: the plug-in leaves the pointer, or replaces it by one to a constant string.
        let call = unsafe { CStr::from_ptr::<'static>(call) };
        match check(done) {
            Ok(()) => Ok((info, queues)),
            Err(source) => Err(Failed {
                call: call.to_str().unwrap_or_default(),
                source,
            }),
        }
    }

    /// Stops a port, of which no thread uses a queue any more. Their memory stays.
    ///
    /// This is done on DPDK's thread: a driver that ends a connection there (memif) does not expect
    /// another thread to do the same.
    pub(super) fn stop_port(self, port: u16) {
        let _alone = ports();
        let (sender, receiver) = mpsc::channel();
        let stop = move || {
            // SAFETY: `open_port` has started the port.
            unsafe { (self.0.stop_port)(port) };
            // The receiver waits below.
            let _sent = sender.send(());
        };
        if self.on_thread(Box::new(stop)).is_ok() {
            let _stopped = receiver.recv();
        }
    }
}

fn ports() -> MutexGuard<'static, ()> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the plug-in of a program is.
fn places(program: &Path) -> [PathBuf; 2] {
    let folder = program.parent().unwrap_or(Path::new("/"));
    let prefix = folder.parent().unwrap_or(Path::new("/"));
    [folder.join(FILE), prefix.join("lib/saiga").join(FILE)]
}

/// The reason of the last failure of dlopen(3) or dlsym(3) in this thread.
fn loader_error() -> String {
    // SAFETY: dlerror has no condition.
    let reason = unsafe { libc::dlerror() };
    if reason.is_null() {
        return "the loader gives no reason".to_owned();
    }
    // SAFETY: the reason is a string until the next call of the loader in this thread.
    let reason = unsafe { CStr::from_ptr(reason) };
    reason.to_string_lossy().into_owned()
}

/// The result of a function that returns 0 or a negative error number.
pub(super) fn check(result: c_int) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(result.saturating_neg()));
    }
    Ok(())
}

/// Takes a message of DPDK: whole lines.
unsafe extern "C" fn on_log(text: *const c_char, length: usize) {
    // SAFETY: the plug-in passes `length` bytes, until this function returns.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    if let Some(log) = LOG.get() {
        let text = String::from_utf8_lossy(text);
        text.lines().for_each(log);
    }
}

/// Runs the work that [`Plugin::on_thread`] has passed.
unsafe extern "C" fn on_work(argument: *mut c_void) {
    // SAFETY: the argument is such a box, and the plug-in passes it once.
    let work = unsafe { Box::from_raw(argument.cast::<Box<dyn FnOnce() + Send>>()) };
    work();
}
