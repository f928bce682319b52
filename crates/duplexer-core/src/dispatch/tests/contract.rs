//! Behaviour of every dispatcher, independent of the connection. Each test runs unchanged over each kind.

mod ending;
mod failures;
mod notifications;
mod requests;

/// Creates one test per kind. The runtime's clock is paused and advances when all tasks wait; only pipes of the operating
/// system need real time.
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
