//! Every program in `programs/c` and `programs/py`, on the kernel and under the
//! library: one test each, written by `build.rs`.

use saiga_trials::parity;

include!(concat!(env!("OUT_DIR"), "/parity_tests.rs"));
