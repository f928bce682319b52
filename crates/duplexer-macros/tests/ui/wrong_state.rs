use duplexer::Context;
use duplexer::prelude::*;

#[tool]
async fn count(cx: Context<Vec<u8>>) -> usize {
    cx.state().len()
}

fn main() {
    let _ = Server::builder("x", "1").tool(count);
}
