"""A sound server of the official Python package, with one of everything.

Usage: sound.py stdio | http | json | stateless

Over HTTP it prints its URL first. `json` answers with JSON instead of streams, `stateless` has no sessions.
"""

import socket
import sys

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel


class Sum(BaseModel):
    sum: float


server = MCPServer("sound", instructions="Nothing is wrong here.")


@server.tool()
def add(a: float, b: float) -> Sum:
    """Adds two numbers."""
    return Sum(sum=a + b)


@server.tool()
def search(text: str, limit: int = 10, tags: list[str] | None = None) -> list[str]:
    """Finds texts."""
    return [text][:limit]


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and reports progress."""
    for step in range(1, to + 1):
        await ctx.report_progress(step, to)
    return "done"


@server.resource("demo://text")
def text() -> str:
    return "hello"


@server.resource("demo://{name}/greeting")
def greeting_of(name: str) -> str:
    return f"Hello {name}"


@server.prompt()
def greeting(name: str) -> str:
    return f"Greet {name}."


def main():
    mode = sys.argv[1]
    if mode == "stdio":
        return server.run("stdio")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    app = server.streamable_http_app(stateless_http=mode == "stateless", json_response=mode == "json")
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


main()
