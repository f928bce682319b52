//! Frames on a wire.
