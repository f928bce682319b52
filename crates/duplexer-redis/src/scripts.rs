//! The scripts, one file each. A script is one atomic operation of the store.

use std::sync::LazyLock;

use redis::Script;

macro_rules! scripts {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(include_str!(concat!("scripts/", $file, ".lua"))));)*
    };
}

scripts! {
    CREATE = "create";
    ADMIT = "admit";
    UPDATE = "update";
    RELEASE = "release";
    TOUCH = "touch";
    DELETE = "delete";
    FORGET = "forget";
    APPEND = "append";
    READ = "read";
    ATTACH = "attach";
    DETACH = "detach";
    CONCLUDE = "conclude";
    SEND = "send";
    TAKEN = "taken";
    PUBLISH = "publish";
    SINCE = "since";
}

#[cfg(feature = "auth")]
scripts! {
    SWAP = "swap";
}
