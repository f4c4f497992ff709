//! Arms, pairs, runs and statistics.
