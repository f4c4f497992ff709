//! BPF programs: assembled at run time, loaded and attached by bpf(2), with their maps and rings.
//!
//! An [`Assembler`] makes a program from instructions by name. [`Program`] loads the result, and
//! [`Link`] attaches the program until the link is dropped. A [`Map`] or [`Ring`] is shared between
//! programs and this process. docs/adr/0024 says why there is no BPF compiler.
//!
//! Deliberately absent: type information (BTF), programs in object files, and instructions and
//! kinds of programs that Saiga does not use.

mod assembler;
mod call;
mod link;
mod map;
mod program;
mod ring;

pub use assembler::{Assembler, Condition, Helper, Instruction, Label, Reg, Width};
pub use link::{Link, XdpMode};
pub use map::{Map, MapKind};
pub use program::{LoadError, Program, ProgramKind, Run};
pub use ring::{Next, Ring};
