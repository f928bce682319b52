//! Values are written in the exact form of each revision.

mod matrix;
mod messages;
mod result_meta;
mod samples;
mod schema;

pub(crate) use schema::official;
