use duplexer::Context;
use duplexer::prelude::*;

#[tool]
async fn method(cx: &Context) -> String {
    cx.method().to_owned()
}

fn main() {}
