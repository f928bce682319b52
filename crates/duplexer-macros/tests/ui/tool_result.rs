use duplexer::prelude::*;

struct Opaque;

#[tool]
async fn make() -> Opaque {
    Opaque
}

fn main() {
    let _ = Server::builder("x", "1").tool(make);
}
