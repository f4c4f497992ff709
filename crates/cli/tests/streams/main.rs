//! `saiga streams` on real file systems, with real files and a real database.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounted;
mod astream;
mod check;
mod elsewhere;
mod faults;
mod files;
mod gate;
mod links;
mod locks;
mod mounts;
mod namespaces;
mod record;
mod record_ends;
mod record_loop;
mod record_part;
mod record_volume;
mod redis;
mod restart;
mod rights;
mod rules;
mod site;
mod stop;
mod suggest_live;
mod tpcc_tool;
mod unit;

#[path = "../support/mod.rs"]
mod support;
