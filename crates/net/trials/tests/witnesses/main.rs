//! Third-party programs under the library, each with a workload that checks its own answers, once
//! with every connection upgraded at once and once with the default evidence.

mod curl;
mod memcached;
mod namespaces;
mod nginx;
mod pods;
mod runtimes;
mod ssh;
