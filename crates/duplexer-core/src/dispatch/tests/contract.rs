//! What every dispatcher does, whatever lies between the two ends. Each test runs unchanged over each kind.

mod ending;
mod failures;
mod notifications;
mod requests;

/// One test per kind. Time is the runtime's and jumps where nothing but time is waited for; only what goes
/// through the operating system must live in real time.
macro_rules! over_every_kind {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                super::$name(super::Kind::Memory).await;
            })+
        }

        mod pipes {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::Kind::Pipes).await;
            })+
        }

        mod direct {
            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                super::$name(super::Kind::Direct).await;
            })+
        }
    };
}

use over_every_kind;
