use duplexer::prelude::*;

async fn add(a: i64, b: i64) -> i64 {
    a + b
}

fn main() {
    let _ = Server::builder("x", "1").tool(add);
}
