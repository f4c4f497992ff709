//! `saiga`: the one binary.
fn main() {}
