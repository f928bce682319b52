//! The kernel over a memory stream, line by line.

use std::sync::Arc;

use duplexer_types::json::Json;
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult, Tool};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex, split};

use super::*;
use crate::error::McpError;
use crate::transport::{TransportContext, lines};

struct Wire {
    lines: Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    writer: tokio::io::WriteHalf<DuplexStream>,
}

impl Wire {
    async fn send(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    async fn next(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }
}

async fn connect(server: Server) -> Wire {
    let (here, there) = duplex(1 << 16);
    let (reader, writer) = split(there);
    let transport = lines::over(reader, writer, TransportContext::stream("test"), lines::DEFAULT_LIMIT);
    let running = server.start().await.unwrap();
    tokio::task::LocalSet::new();
    #[expect(clippy::disallowed_methods, reason = "the test's runtime owns it")]
    tokio::spawn(async move { serve(&running, transport).await });
    let (reader, writer) = split(here);
    Wire { lines: BufReader::new(reader).lines(), writer }
}

fn server() -> Server {
    Server::builder("test")
        .version("1")
        .state(Arc::new(5_i64))
        .on(methods::ToolsList, |_: PaginatedParams| async {
            Ok::<_, McpError>(ListToolsResult::new(vec![Tool::new("echo", Json::object())]))
        })
        .on(methods::ToolsCall, |cx: Context<Arc<i64>>, params: CallToolParams| async move {
            cx.progress(1.0, None, None).await;
            Ok::<_, McpError>(CallToolResult::text(format!("{} {}", params.name, cx.state())))
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn smoke() {
    let mut wire = connect(server()).await;
    wire.send(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#).await;
    println!("{}", wire.next().await);
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    wire.send(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}"#,
    )
    .await;
    println!("{}", wire.next().await);
    println!("{}", wire.next().await);
    let mut wire = connect(server()).await;
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    wire.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{meta}}}}}"#)).await;
    println!("{}", wire.next().await);
    wire.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}"#)).await;
    println!("{}", wire.next().await);
    wire.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x",{meta}}}}}"#))
        .await;
    println!("{}", wire.next().await);
}
