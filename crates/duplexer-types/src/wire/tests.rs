//! What is written for a revision is what that revision has.

mod matrix;
mod messages;
mod samples;
mod schema;
mod stamp;

pub(crate) use schema::official;
