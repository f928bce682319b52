//! CPU time of a server on this machine, as Linux counts it: of a program that was started, or of the process that listens.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use duplexer_oauth_base::address::is_loopback;
use url::Url;

/// Processes whose CPU time is counted.
#[derive(Clone, Debug)]
pub(super) enum Processes {
    /// A process group.
    Group(u32),
    /// A process.
    One(u32),
}

impl Processes {
    /// Returns the process that listens at a URL of this machine, if it can be seen.
    pub(super) fn at(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        if !is_loopback(&url.host()?) {
            return None;
        }
        let sockets = listening(url.port_or_known_default()?);
        numbers("/proc")
            .find(|id| {
                let Ok(files) = fs::read_dir(format!("/proc/{id}/fd")) else { return false };
                files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).any(|link| {
                    let inode =
                        link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']'));
                    inode.is_some_and(|inode| sockets.contains(inode))
                })
            })
            .map(Self::One)
    }

    /// Returns the CPU time that they have used so far.
    pub(super) fn used(&self) -> Option<Duration> {
        let ids: Vec<u32> = match self {
            Self::One(id) => vec![*id],
            Self::Group(group) => {
                numbers("/proc").filter(|id| stat(*id).is_some_and(|stat| stat.group == *group)).collect()
            }
        };
        let used: Vec<u64> = ids.iter().filter_map(|id| stat(*id)).map(|stat| stat.ticks).collect();
        let ticks: u64 = used.iter().sum();
        (!used.is_empty()).then(|| Duration::from_millis(ticks * 1000 / ticks_per_second()))
    }
}

#[cfg(target_os = "linux")]
fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

#[cfg(not(target_os = "linux"))]
fn ticks_per_second() -> u64 {
    100
}

/// What is read of `/proc/ID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    group: u32,
    ticks: u64,
}

fn stat(id: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// Reads the fields behind the name of the program, which can contain anything.
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Stat { group: fields.get(2)?.parse().ok()?, ticks })
}

fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the inodes of the sockets that listen on a port.
fn listening(port: u16) -> HashSet<String> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|table| fs::read_to_string(table).ok());
    tables.flat_map(|table| parse_table(&table, port)).collect()
}

fn parse_table(table: &str, port: u16) -> Vec<String> {
    let suffix = format!(":{port:04X}");
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_listening = fields.get(1)?.ends_with(&suffix) && *fields.get(3)? == "0A";
        is_listening.then(|| fields.get(9).map(|inode| (*inode).to_owned())).flatten()
    };
    table.lines().filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_linux_are_read() {
        let text = "17 (a ) b) S 1 42 42 0 -1 4194304 1 2 3 4 100 50 7 3 20 0 1 0 1";
        assert_eq!(parse_stat(text), Some(Stat { group: 42, ticks: 160 }));
        assert_eq!(parse_stat("17"), None);
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 777 1\n   \
            1: 0100007F:1F40 0100007F:9999 01 00000000:00000000 00:00000000 00000000  0 0 778 1\n";
        assert_eq!(parse_table(table, 8000), ["777"]);
        assert!(parse_table(table, 8001).is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let Some(Processes::One(id)) = Processes::at(&url) else { panic!("{url} is not found") };
        assert_eq!(id, std::process::id());
        assert!(Processes::One(id).used().is_some());
        assert!(Processes::at("http://203.0.113.1/mcp").is_none());
    }
}
