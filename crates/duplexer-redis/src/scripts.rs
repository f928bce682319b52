//! The scripts, one file each. A script is one atomic operation of the store.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use redis::{Script, ScriptInvocation, ToRedisArgs};

/// A script with its name, which metrics have as a label.
pub(crate) struct NamedScript {
    name: &'static str,
    script: Script,
}

/// One call of a script.
pub(crate) struct ScriptCall<'a> {
    pub(crate) name: &'static str,
    call: ScriptInvocation<'a>,
}

impl NamedScript {
    /// Returns a call with a first key.
    pub(crate) fn key<T: ToRedisArgs>(&self, key: T) -> ScriptCall<'_> {
        ScriptCall { name: self.name, call: self.script.key(key) }
    }

    /// Returns a call without keys.
    pub(crate) fn prepare_invoke(&self) -> ScriptCall<'_> {
        ScriptCall { name: self.name, call: self.script.prepare_invoke() }
    }
}

impl<'a> Deref for ScriptCall<'a> {
    type Target = ScriptInvocation<'a>;

    fn deref(&self) -> &ScriptInvocation<'a> {
        &self.call
    }
}

impl<'a> DerefMut for ScriptCall<'a> {
    fn deref_mut(&mut self) -> &mut ScriptInvocation<'a> {
        &mut self.call
    }
}

macro_rules! scripts {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) static $name: LazyLock<NamedScript> = LazyLock::new(|| NamedScript {
            name: $file,
            script: Script::new(include_str!(concat!("scripts/", $file, ".lua"))),
        });)*
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
    LIMIT = "limit";
}

/// Scripts that begin with what all scripts of tasks share.
macro_rules! task_scripts {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) static $name: LazyLock<NamedScript> = LazyLock::new(|| NamedScript {
            name: $file,
            script: Script::new(concat!(
                include_str!("scripts/tasks.lua"),
                include_str!(concat!("scripts/", $file, ".lua"))
            )),
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
