//! Settings of the library and the CLI, each with its origin.
