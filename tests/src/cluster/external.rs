//! The balancer of a run: our own, or nginx or `HAProxy` as an operator would set them up.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::balancer;
use crate::random::Random;
use crate::reply::NODE;

/// Time for a start.
const START: Duration = Duration::from_secs(10);

/// What distributes the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancer {
    /// Part of this program.
    Own,
    /// nginx from `PATH`.
    Nginx,
    /// `HAProxy` from `PATH`.
    Haproxy,
}

impl FromStr for Balancer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "own" => Ok(Self::Own),
            "nginx" => Ok(Self::Nginx),
            "haproxy" => Ok(Self::Haproxy),
            _ => Err(format!("no balancer is called {text}; there are own, nginx and haproxy")),
        }
    }
}

/// Returns the configuration for a port, the ports of nodes, and a folder.
type Configuration = fn(u16, &[u16], &Path) -> String;

/// A balancer that runs. It ends with this value.
pub struct Running {
    address: SocketAddr,
    _tasks: JoinSet<()>,
    _process: Option<Child>,
}

impl Running {
    /// Returns where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Balancer {
    /// Starts the balancer in front of nodes at these ports.
    pub async fn start(self, ports: &[u16], random: Random, folder: &Path) -> Running {
        let (arguments, configuration): (&[&str], Configuration) = match self {
            Self::Own => {
                let (address, tasks) = balancer::start(ports, random).await;
                return Running { address, _tasks: tasks, _process: None };
            }
            Self::Nginx => (&["nginx", "-e", "stderr", "-c"], nginx),
            Self::Haproxy => (&["haproxy", "-db", "-f"], haproxy),
        };
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = free.local_addr().expect("its address");
        drop(free);
        let file = folder.join("balancer.conf");
        std::fs::write(&file, configuration(address.port(), ports, folder)).expect("a configuration");
        let log = std::fs::File::create(folder.join("balancer.log")).expect("a log");
        let process = Command::new(arguments[0])
            .args(&arguments[1..])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", arguments[0]));
        let limit = Instant::now() + START;
        while TcpStream::connect(address).await.is_err() {
            assert!(Instant::now() < limit, "{} does not listen", arguments[0]);
            sleep(Duration::from_millis(50)).await;
        }
        Running { address, _tasks: JoinSet::new(), _process: Some(process) }
    }
}

fn nginx(port: u16, nodes: &[u16], folder: &Path) -> String {
    let folder = folder.display();
    let mut servers = String::new();
    for node in nodes {
        let _ = writeln!(servers, "    server 127.0.0.1:{node} max_fails=0;");
    }
    format!(
        "daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/nginx-body;
  proxy_temp_path {folder}/nginx-proxy;
  fastcgi_temp_path {folder}/nginx-fastcgi;
  uwsgi_temp_path {folder}/nginx-uwsgi;
  scgi_temp_path {folder}/nginx-scgi;
  upstream nodes {{
    random;
{servers}    keepalive 64;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://nodes;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_set_header Host $host;
      proxy_buffering off;
      proxy_read_timeout 1h;
      proxy_connect_timeout 1s;
      add_header {NODE} $upstream_addr always;
    }}
  }}
}}
"
    )
}

fn haproxy(port: u16, nodes: &[u16], _: &Path) -> String {
    let mut servers = String::new();
    for node in nodes {
        let _ = writeln!(servers, "  server 127.0.0.1:{node} 127.0.0.1:{node}");
    }
    format!(
        "global
  maxconn 4096
defaults
  mode http
  timeout connect 1s
  timeout client 1h
  timeout server 1h
  retries 3
  option redispatch 1
  option http-server-close
frontend clients
  bind 127.0.0.1:{port}
  default_backend nodes
backend nodes
  balance random
  option httpchk GET /readyz
  http-check send hdr Host 127.0.0.1
  http-after-response set-header {NODE} %[srv_name]
  default-server check inter 200ms fall 1 rise 1
{servers}"
    )
}
