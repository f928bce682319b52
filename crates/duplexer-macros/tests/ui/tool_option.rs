use duplexer::prelude::*;

#[tool(readonly)]
async fn add(a: i64) -> i64 {
    a
}

fn main() {}
