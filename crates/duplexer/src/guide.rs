//! The guides, as pages of the documentation. `guide.md` lists them in a learner's order.
#![doc = ""]
#![doc = include_str!("../guide.md")]

#[doc = include_str!("../guide/first_server.md")]
pub mod first_server {}

#[doc = include_str!("../guide/hosts.md")]
pub mod hosts {}

#[doc = include_str!("../guide/tools.md")]
pub mod tools {}

#[doc = include_str!("../guide/errors.md")]
pub mod errors {}

#[doc = include_str!("../guide/resources.md")]
pub mod resources {}

#[doc = include_str!("../guide/files.md")]
pub mod files {}

#[doc = include_str!("../guide/prompts.md")]
pub mod prompts {}

#[doc = include_str!("../guide/skills.md")]
pub mod skills {}

#[doc = include_str!("../guide/asking.md")]
pub mod asking {}

#[doc = include_str!("../guide/long_tasks.md")]
pub mod long_tasks {}

#[doc = include_str!("../guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../guide/inspecting.md")]
pub mod inspecting {}

#[doc = include_str!("../guide/http.md")]
pub mod http {}

#[doc = include_str!("../guide/scaling_out.md")]
pub mod scaling_out {}

#[doc = include_str!("../guide/authorization.md")]
pub mod authorization {}

#[doc = include_str!("../guide/observability.md")]
pub mod observability {}

#[doc = include_str!("../guide/deploying.md")]
pub mod deploying {}

#[doc = include_str!("../guide/client.md")]
pub mod client {}

#[doc = include_str!("../guide/logging_in.md")]
pub mod logging_in {}

#[doc = include_str!("../guide/bridges.md")]
pub mod bridges {}

#[doc = include_str!("../guide/middleware.md")]
pub mod middleware {}

#[doc = include_str!("../guide/composition.md")]
pub mod composition {}

#[doc = include_str!("../guide/extensions.md")]
pub mod extensions {}

#[doc = include_str!("../guide/eras.md")]
pub mod eras {}

#[doc = include_str!("../guide/from_rmcp.md")]
pub mod from_rmcp {}

#[doc = include_str!("../guide/from_python.md")]
pub mod from_python {}

#[doc = include_str!("../guide/troubleshooting.md")]
pub mod troubleshooting {}
