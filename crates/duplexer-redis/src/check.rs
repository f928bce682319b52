//! What a node checks of the store before it serves.

use std::time::Duration;

use duplexer_core::error::{BoxError, StoreError};
use duplexer_core::stderr_log;
use redis::{Cmd, FromRedisValue as _, RedisError, Value};

use crate::address::Address;
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::keys::Keys;

const EVICTS: &str =
    "the store can evict sessions and events while they are in use: set `maxmemory-policy noeviction`";

/// The ACL rule for each kind of command, and a harmless command of that kind.
fn probes(keys: &Keys) -> Vec<(&'static str, &'static str, Cmd)> {
    let key = keys.check();
    let command = |name: &str, arguments: &[&str]| {
        let mut command = redis::cmd(name);
        for argument in arguments {
            command.arg(*argument);
        }
        command
    };
    vec![
        ("SET", "~dpx1:* +@write +@string", command("SET", &[&key, "1", "PX", "1000"])),
        ("GET", "+@read +@string", command("GET", &[&key])),
        // Of no type of data, so that the rules of the types do not allow them.
        ("EXISTS", "+@read", command("EXISTS", &[&key])),
        ("PEXPIRE", "+@write", command("PEXPIRE", &[&key, "1000"])),
        ("HGET", "+@hash", command("HGET", &[&format!("{key}h"), "f"])),
        ("ZCARD", "+@sortedset", command("ZCARD", &[&format!("{key}z")])),
        ("LLEN", "+@list", command("LLEN", &[&format!("{key}l")])),
        ("XLEN", "+@stream", command("XLEN", &[&format!("{key}x")])),
        ("EVAL", "+@scripting", command("EVAL", &["return 1", "0"])),
        // Scripts read the clock of the store.
        ("TIME", "+time", command("TIME", &[])),
        ("PUBLISH", "+@pubsub &dpx1:*", command("PUBLISH", &[&keys.changes_channel(), ""])),
    ]
}

/// Checks the version, the rights and the eviction policy, and loads the scripts.
pub(crate) async fn check(
    connection: &Connection,
    keys: &Keys,
    address: &Address,
) -> Result<(), ConnectError> {
    let info: Value = connection
        .query(redis::cmd("INFO").arg("server").arg("memory"))
        .await
        .map_err(|error| refused(error, "INFO", "+info", address))?;
    for info in texts(info) {
        check_version(&info)?;
        check_eviction(&info);
        if is_cluster(&info) && !matches!(address, Address::Cluster(_)) {
            check_size(connection, address).await?;
        }
    }
    for (name, rule, command) in probes(keys) {
        connection.query::<Value>(&command).await.map_err(|error| refused(error, name, rule, address))?;
    }
    let loaded = connection.load_scripts().await;
    loaded.map_err(|error| refused(error, "SCRIPT LOAD", "+@scripting", address))
}

/// Returns the texts of an answer: one, or one for each server of a cluster.
fn texts(answer: Value) -> Vec<String> {
    match answer {
        Value::Map(entries) => entries.into_iter().flat_map(|(_, text)| texts(text)).collect(),
        Value::Array(values) => values.into_iter().flat_map(texts).collect(),
        other => String::from_redis_value(other).into_iter().collect(),
    }
}

fn is_cluster(info: &str) -> bool {
    [field(info, "redis_mode"), field(info, "server_mode")].contains(&Some("cluster"))
}

/// Refuses one server of a cluster of several: commands for the keys of the others would fail.
async fn check_size(connection: &Connection, address: &Address) -> Result<(), ConnectError> {
    let info: Result<String, _> = connection.query(redis::cmd("CLUSTER").arg("INFO")).await;
    match info {
        Ok(info) if field(&info, "cluster_size") == Some("1") => Ok(()),
        _ => Err(ConnectError::Cluster { address: address.to_string() }),
    }
}

fn refused(error: StoreError, command: &'static str, rule: &'static str, address: &Address) -> ConnectError {
    match error {
        StoreError::Denied(cause) if needs_credentials(&cause) => {
            ConnectError::Credentials { address: address.to_string(), cause }
        }
        StoreError::Denied(cause) => ConnectError::Denied { command, rule, cause },
        StoreError::Full => ConnectError::Full,
        other => ConnectError::Failed(other.into()),
    }
}

/// A store that needs a password and gets none refuses the first command, and not the connection.
fn needs_credentials(cause: &BoxError) -> bool {
    cause.downcast_ref::<RedisError>().is_some_and(|error| error.code() == Some("NOAUTH"))
}

fn check_version(info: &str) -> Result<(), ConnectError> {
    // Valkey also reports the version of Redis that it is compatible with.
    let (name, version, first) = match (field(info, "valkey_version"), field(info, "redis_version")) {
        (Some(version), _) => ("Valkey", version, (7, 2)),
        (None, Some(version)) => ("Redis", version, (7, 0)),
        (None, None) => return Ok(()),
    };
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    if (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default()) < first {
        return Err(ConnectError::Version { name: name.to_owned(), version: version.to_owned() });
    }
    Ok(())
}

/// Warns of a policy that removes what sessions need. Everything has an expiry, so that `volatile-*` removes it too.
fn check_eviction(info: &str) {
    let policy = field(info, "maxmemory_policy").unwrap_or_default();
    if !policy.is_empty() && !matches!(policy, "noeviction" | "volatile-ttl") {
        tracing::warn!(policy, "{EVICTS}");
        stderr_log::warning(EVICTS);
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Returns why no connection could be made.
pub(crate) fn no_connection(address: &Address, error: RedisError) -> ConnectError {
    let address = address.to_string();
    if error.detail().is_some_and(|detail| detail.contains("cluster support disabled")) {
        return ConnectError::NotACluster { address };
    }
    match crate::error::store_error(error) {
        StoreError::Denied(cause) => ConnectError::Credentials { address, cause },
        StoreError::Unavailable(cause) => ConnectError::Unreachable { address, cause },
        other => ConnectError::Failed(other.into()),
    }
}

/// Returns the failure of an attempt that took too long.
pub(crate) fn too_slow(address: &Address, limit: Duration) -> ConnectError {
    let cause: BoxError = format!("no answer within {} s", limit.as_secs()).into();
    ConnectError::Unreachable { address: address.to_string(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SCL-25: versions before the first supported one are refused by name.
    #[test]
    fn versions_are_compared_by_program() {
        let check = |info: &str| check_version(info).map_err(|error| error.to_string());
        assert_eq!(check("redis_version:7.0.15\r\n"), Ok(()));
        assert_eq!(check("redis_version:7.2.4\r\nvalkey_version:9.1.2\r\n"), Ok(()));
        let old = "the store is Redis 6.2.14: Redis 7.0 or Valkey 7.2 is needed";
        assert_eq!(check("redis_version:6.2.14\r\n"), Err(old.to_owned()));
    }
}
