//! OpenTelemetry: a span per request, as a child of the caller's span if the client sends its trace context.
//!
//! Run: `cargo run -p duplexer-examples --bin otel`; it serves standard input and output.
//! Try: `duplexer call add a:=2 b:=3 -- target/debug/otel`, which prints the spans to standard error.
//! Then replace `ToStderr` with the exporter of your collector, such as the one of `opentelemetry-otlp`.
//! The middleware comes first, so that its spans cover everything else.

use std::io::Write;

use duplexer::otel::OtelMiddleware;
use duplexer::prelude::*;
use opentelemetry::global;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};

/// Writes each span as one line.
#[derive(Debug)]
struct ToStderr;

impl SpanExporter for ToStderr {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        for span in spans {
            let took = span.end_time.duration_since(span.start_time).unwrap_or_default();
            // A closed standard error is no reason to fail.
            let _ = writeln!(
                std::io::stderr(),
                "trace {} span `{}` took {took:?}",
                span.span_context.trace_id(),
                span.name,
            );
        }
        Ok(())
    }
}

/// Adds two numbers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

fn main() -> Result<(), BoxError> {
    let provider = SdkTracerProvider::builder().with_simple_exporter(ToStderr).build();
    global::set_tracer_provider(provider.clone());
    let server =
        Server::builder("calculator", "1.0.0").middleware(OtelMiddleware::new()).tool(add).build()?;
    run_stdio(&server)?;
    Ok(provider.shutdown()?)
}
