//! Rings, segments and doorbells in shared memory.
