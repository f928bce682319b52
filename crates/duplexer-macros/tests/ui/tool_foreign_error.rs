use duplexer::prelude::*;

struct Foreign;

#[tool]
async fn load() -> Result<String, Foreign> {
    Err(Foreign)
}

fn main() {
    let _ = Server::builder("x", "1").tool(load);
}
