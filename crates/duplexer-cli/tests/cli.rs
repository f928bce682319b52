//! The program, run as a user or a script would run it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "cli/asking.rs"]
mod asking;
#[path = "cli/bench.rs"]
mod bench;
#[path = "cli/configured.rs"]
mod configured;
#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/failing.rs"]
mod failing;
#[path = "cli/faulty.rs"]
mod faulty;
#[path = "cli/files.rs"]
mod files;
#[path = "cli/hosts.rs"]
mod hosts;
#[path = "cli/inspect.rs"]
mod inspect;
#[path = "cli/listening.rs"]
mod listening;
#[path = "cli/login.rs"]
mod login;
#[cfg(feature = "redis")]
#[path = "cli/nodes.rs"]
mod nodes;
#[path = "cli/project.rs"]
mod project;
#[path = "cli/proxy.rs"]
mod proxy;
#[path = "cli/screen.rs"]
mod screen;
#[path = "cli/skills.rs"]
mod skills;
#[path = "cli/support.rs"]
mod support;
#[path = "cli/tasks.rs"]
mod tasks;
#[path = "cli/transcripts.rs"]
mod transcripts;
#[path = "cli/verbs.rs"]
mod verbs;
