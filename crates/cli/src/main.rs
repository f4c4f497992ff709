//! `saiga`, the one binary: selects the verb and runs it.
//!
//! Each verb is a module with an `Args` struct and a `run` function that returns the exit code:
//! 0 success, 1 done but the answer is no, 2 error. The result goes to stdout, progress and errors
//! go to stderr.

mod args;
mod astream;
mod bench;
mod compare;
mod completions;
mod config;
mod diagnose;
mod exit;
mod gateway;
mod history;
mod holder;
mod host;
mod length;
mod load_file;
mod local_time;
mod man;
mod outfile;
mod panel;
mod print;
mod printable;
mod process;
mod run;
mod service;
mod snapshot;
mod status;
mod streams;
mod top;
mod topology;
mod tune;
mod waf;
mod writer;

use std::process::ExitCode;

fn main() -> ExitCode {
    if astream::is_called() {
        return astream::main();
    }
    let verb = match args::parse() {
        Ok(verb) => verb,
        Err(code) => return code,
    };
    exit::code(match verb {
        args::Verb::Run(args) => run::run(args),
        args::Verb::Enable(args) => service::enable(args),
        args::Verb::Disable(args) => service::disable(args),
        args::Verb::Status(args) => status::run(args),
        args::Verb::Top(args) => top::run(args),
        args::Verb::Topology(args) => topology::run(&args),
        args::Verb::Compare(args) => compare::run(*args),
        args::Verb::Bench(args) => bench::run(args),
        args::Verb::History(args) => history::run(&args),
        args::Verb::Snapshot(args) => snapshot::run(args),
        args::Verb::Waf(args) => waf::run(args),
        args::Verb::Streams(args) => streams::run(*args),
        args::Verb::RedisWriter(args) => writer::run(args),
        args::Verb::RedisHolder(args) => holder::run(args),
        args::Verb::Tune(args) => tune::run(args),
        args::Verb::Diagnose(args) => diagnose::run(&args),
        args::Verb::Gateway(args) => gateway::run(args),
        args::Verb::Config(args) => config::run(args),
        args::Verb::Completions(args) => completions::run(args),
        args::Verb::Man(args) => man::run(args),
    })
}
