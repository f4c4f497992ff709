//! Other people's programs under the library, each with a workload that checks its own answers,
//! once with every connection upgraded at once and once with the evidence that users have.

mod curl;
mod memcached;
mod namespaces;
mod nginx;
mod pods;
mod runtimes;
mod ssh;
