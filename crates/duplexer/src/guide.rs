//! Guides, one task each. The tests compile every snippet and run those that terminate.

#[doc = include_str!("../guide/tools.md")]
pub mod tools {}

#[doc = include_str!("../guide/resources.md")]
pub mod resources {}

#[doc = include_str!("../guide/prompts.md")]
pub mod prompts {}

#[doc = include_str!("../guide/asking.md")]
pub mod asking {}

#[doc = include_str!("../guide/client.md")]
pub mod client {}

#[doc = include_str!("../guide/http.md")]
pub mod http {}

#[doc = include_str!("../guide/authorization.md")]
pub mod authorization {}

#[doc = include_str!("../guide/middleware.md")]
pub mod middleware {}

#[doc = include_str!("../guide/composition.md")]
pub mod composition {}

#[doc = include_str!("../guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../guide/eras.md")]
pub mod eras {}

#[doc = include_str!("../guide/from_rmcp.md")]
pub mod from_rmcp {}

#[doc = include_str!("../guide/troubleshooting.md")]
pub mod troubleshooting {}
