//! Where the program of a store is: `REDIS_SERVER`, or `valkey-server` or `redis-server` on `PATH`.

use std::ffi::OsString;

/// Returns the program of a store, if there is one.
pub fn find() -> Option<OsString> {
    if let Some(program) = std::env::var_os("REDIS_SERVER") {
        return Some(program);
    }
    let path = std::env::var_os("PATH")?;
    let mut folders = std::env::split_paths(&path);
    folders.find_map(|folder| {
        let found = ["valkey-server", "redis-server"]
            .map(|name| folder.join(name))
            .into_iter()
            .find(|it| it.is_file());
        found.map(Into::into)
    })
}
