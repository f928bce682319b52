use duplexer::prelude::*;

struct Opaque;

#[tool]
async fn make() -> Opaque {
    Opaque
}

fn main() {
    let _ = Server::builder("x").tool(make);
}
