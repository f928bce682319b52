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

/// Scripts that begin with what all scripts of tasks share.
macro_rules! task_scripts {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(concat!(include_str!("scripts/tasks.lua"), include_str!(concat!("scripts/", $file, ".lua"))))
        });)*
    };
}

task_scripts! {
    TASK_CREATE = "task_create";
    TASK_PUT = "task_put";
    TASK_LIST = "task_list";
    TASK_RENEW = "task_renew";
    TASK_EXPIRED = "task_expired";
    TASK_SWEEP = "task_sweep";
}

#[cfg(feature = "auth")]
scripts! {
    SWAP = "swap";
}
