//! Settings of a host and of its databases: read, propose, apply, verify and undo.
//!
//! [`plan`](plan::plan) is pure: machine, readings and goal in, a [`Plan`](plan::Plan) out. The
//! knobs that it may change are those of [`registry`](knobs::registry). [`apply`](apply::apply)
//! writes a [`journal`] before each change; [`undo`](undo::undo) puts back what the journal holds,
//! also after a crash or a restart. The host is behind [`Host`](host::Host), the journal behind
//! [`Store`](store::Store). [`cores`] divides the CPUs between server, interrupts and client,
//! [`database`] has the settings of servers, and [`move_pages`] moves page cache between nodes.

pub mod about;
pub mod advice;
pub mod apply;
pub mod confirm;
pub mod cores;
pub mod coverage;
pub mod database;
pub mod form;
pub mod goal;
pub mod history;
pub mod host;
pub mod identity;
pub mod journal;
pub mod knob;
pub mod knobs;
pub mod move_pages;
pub mod overrider;
mod own_text;
pub mod persist;
pub mod plan;
pub mod prove;
pub mod readings;
pub mod refused;
pub mod render;
mod restore;
pub mod step;
pub mod store;
pub mod target;
pub mod undo;
pub mod verify;
