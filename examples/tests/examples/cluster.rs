//! The cluster: nodes are stopped and killed under a long call, and nothing is left behind.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// A program that is silent for longer hangs.
const SILENT: Duration = Duration::from_secs(60);

/// The program, its input and its output. It is killed with this value.
struct Cluster {
    process: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    /// The processes of the nodes, and the folder of the store.
    nodes: Vec<String>,
    folder: String,
}

impl Cluster {
    /// Starts the program and reads the lines of its nodes. `None` without a store, which is a failure where `CI=true`.
    fn start(test: &str) -> Option<Self> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_cluster"))
            .args(["--port", "0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        let (lines, received) = sync_channel(1024);
        let read = move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
        };
        std::thread::spawn(read);
        let output = received;
        let mut cluster = Self { process, input, output, nodes: Vec::new(), folder: String::new() };
        let Ok(url) = cluster.output.recv_timeout(SILENT) else {
            let reason = std::io::read_to_string(cluster.process.stderr.take().unwrap()).unwrap();
            assert!(reason.contains("no redis-server or valkey-server on PATH"), "{reason}");
            assert!(!std::env::var("CI").is_ok_and(|value| value == "true" || value == "1"), "{reason}");
            report_skipped(test);
            return None;
        };
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        let store = cluster.until("store: ");
        store.rsplit_once(" in ").unwrap().1.clone_into(&mut cluster.folder);
        for number in 1..=3 {
            let line = cluster.until(&format!("node {number}: ready"));
            let (_, rest) = line.split_once("process ").unwrap();
            cluster.nodes.push(rest.split(',').next().unwrap().to_owned());
        }
        Some(cluster)
    }

    fn send(&mut self, command: &str) {
        writeln!(self.input.as_mut().unwrap(), "{command}").unwrap();
    }

    /// Reads up to a line that contains a text.
    fn until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let line = self.output.recv_timeout(SILENT);
            assert!(line.is_ok(), "no {text:?}: {line:?}; {seen:#?}");
            match line {
                Ok(line) if line.contains(text) => return line,
                line => seen.extend(line),
            }
        }
    }

    /// Reads the progress of a call up to a step, and returns the number of its node.
    fn step(&mut self, call: u32, step: u32) -> char {
        let line = self.until(&format!(": step {step} of"));
        assert!(line.starts_with(&format!("call {call}: node ")), "{line}");
        line.chars().nth(format!("call {call}: node ").len()).unwrap()
    }

    /// Waits for the end, and returns whether it was in good order. No process and no file is left.
    fn ended(mut self) -> bool {
        self.until("ended");
        let success = self.process.wait().unwrap().success();
        for process in &self.nodes {
            assert!(!Path::new("/proc").join(process).exists(), "process {process} is left");
        }
        assert!(!Path::new(&self.folder).exists(), "{} is left", self.folder);
        success
    }
}

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn report_skipped(test: &str) {
    println!("SKIPPED (no redis-server): {test}");
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// SCL-91, SCL-92: a call survives the end of its node, and is repeated after its death; a question is answered at any
/// node, and a change is heard.
#[test]
fn a_long_call_survives_the_nodes_that_serve_it() {
    let Some(mut cluster) = Cluster::start("the cluster") else { return };
    cluster.send("work 30");
    let node = cluster.step(1, 5);
    cluster.send(&format!("stop {node}"));
    // Every step arrives, followed at another node while the first one ends.
    for step in 6..=30 {
        assert_eq!(cluster.step(1, step), node);
    }
    cluster.until(&format!("call 1: done by node {node}"));
    cluster.until(&format!("node {node} has ended"));
    cluster.send(&format!("start {node}"));
    cluster.until(&format!("node {node} is started"));
    cluster.send("work 20");
    let node = cluster.step(2, 5);
    cluster.send(&format!("kill {node}"));
    cluster.until(&format!("node {node} is killed"));
    cluster.until("call 2: its node is gone; it is called again");
    assert_ne!(cluster.step(2, 20), node);
    cluster.until("call 2: done by node ");
    cluster.send("nodes");
    cluster.until(&format!("node {node}: gone"));
    for (command, answer) in [("ask", "has heard: blue"), ("change", "and heard"), ("kill 7", "nodes 1 to 3")]
    {
        cluster.send(command);
        cluster.until(answer);
    }
    cluster.send("quit");
    assert!(cluster.ended());
}

/// SCL-91: Ctrl-C ends everything.
#[test]
fn a_cluster_that_is_interrupted_leaves_nothing_behind() {
    let Some(cluster) = Cluster::start("the end of the cluster") else { return };
    let process = cluster.process.id().to_string();
    assert!(Command::new("kill").args(["-INT", &process]).status().unwrap().success());
    assert!(cluster.ended());
}

#[test]
fn a_cluster_without_a_store_says_how_to_install_one() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cluster"));
    let output = command.args(["--port", "0"]).env("PATH", "").env_remove("REDIS_SERVER").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("apt install redis-server"), "{text}");
    let output = Command::new(env!("CARGO_BIN_EXE_cluster")).args(["--nodes", "0"]).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("--nodes: from 1 to 9"));
}
