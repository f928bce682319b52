//! The scripts, one file each. A script is one atomic operation of the store.

use std::fmt::Display;
use std::sync::LazyLock;

use redis::{Cmd, RedisWrite as _, Script, ToRedisArgs};

/// Arguments and bytes that most calls have at most.
const ARGUMENTS: usize = 24;
const BYTES: usize = 1024;

/// A script with its name, which metrics have as a label.
pub(crate) struct NamedScript {
    pub(crate) name: &'static str,
    text: &'static str,
    /// Identifies the text to the store.
    digest: String,
}

/// One call of a script.
pub(crate) struct ScriptCall {
    pub(crate) script: &'static NamedScript,
    pub(crate) command: Cmd,
}

impl NamedScript {
    fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, digest: Script::new(text).get_hash().to_owned() }
    }

    /// Returns a call with these keys.
    pub(crate) fn call<K: Display>(
        &'static self,
        keys: impl IntoIterator<Item = K, IntoIter: ExactSizeIterator>,
    ) -> ScriptCall {
        let keys = keys.into_iter();
        let mut command = Cmd::with_capacity(ARGUMENTS, BYTES);
        command.arg("EVALSHA").arg(&self.digest).arg(keys.len());
        for key in keys {
            command.write_arg_fmt(key);
        }
        ScriptCall { script: self, command }
    }

    /// Returns the command that sends the text.
    pub(crate) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.text);
        command
    }
}

impl ScriptCall {
    /// Adds an argument.
    pub(crate) fn arg<T: ToRedisArgs>(&mut self, argument: T) -> &mut Self {
        self.command.arg(argument);
        self
    }

    /// Adds the text of a value as an argument.
    pub(crate) fn text(&mut self, value: impl Display) -> &mut Self {
        self.command.write_arg_fmt(value);
        self
    }

    /// Adds the text of a value as an argument, or an empty one.
    pub(crate) fn text_or_empty(&mut self, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.text(value),
            None => self.arg(""),
        }
    }
}

macro_rules! scripts {
    ($all:ident: $($name:ident = $file:literal $(after $shared:literal)?;)*) => {
        $(pub(crate) static $name: LazyLock<NamedScript> = LazyLock::new(|| {
            let text = concat!(
                $(include_str!(concat!("scripts/", $shared, ".lua")),)?
                include_str!(concat!("scripts/", $file, ".lua"))
            );
            NamedScript::new($file, text)
        });)*

        static $all: &[&LazyLock<NamedScript>] = &[$(&$name),*];
    };
}

scripts! {
    COMMON:
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
    TASK_CREATE = "task_create" after "tasks";
    TASK_PUT = "task_put" after "tasks";
    TASK_LIST = "task_list" after "tasks";
    TASK_RENEW = "task_renew" after "tasks";
    TASK_EXPIRED = "task_expired" after "tasks";
    TASK_SWEEP = "task_sweep" after "tasks";
}

#[cfg(feature = "auth")]
scripts! {
    RECORDS:
    SWAP = "swap";
}

#[cfg(not(feature = "auth"))]
static RECORDS: &[&LazyLock<NamedScript>] = &[];

/// Returns all scripts.
pub(crate) fn all() -> impl Iterator<Item = &'static NamedScript> {
    COMMON.iter().chain(RECORDS).map(|script| &***script)
}
