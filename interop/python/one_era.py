"""A server of the official Python package that speaks one era only, over its standard streams.

Usage: one_era.py handshake|envelope
"""

import sys
from typing import Annotated

import mcp.server.lowlevel.server as lowlevel
import mcp.server.runner as runner
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, ListRoots, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel


class Name(BaseModel):
    name: str


async def handshake_only(server, read, write, *, lifespan_state, session_id=None, init_options=None, raise_exceptions=False):
    await runner._serve_legacy_stream(
        server, read, write, lifespan_state=lifespan_state, session_id=session_id, init_options=init_options,
        raise_exceptions=raise_exceptions,
    )


async def envelope_only(server, read, write, *, lifespan_state, session_id=None, init_options=None, raise_exceptions=False):
    await runner._serve_modern_stream(
        server, read, write, lifespan_state=lifespan_state, raise_exceptions=raise_exceptions
    )


lowlevel.serve_dual_era_loop = {"handshake": handshake_only, "envelope": envelope_only}[sys.argv[1]]

server = MCPServer("one-era", instructions="One era only.")


@server.tool()
def echo(text: str) -> str:
    return text


@server.tool()
async def progress(ctx: Context) -> str:
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3, "working")
    return "done"


async def ask_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


@server.tool()
async def ask_user(name: Annotated[Name, Resolve(ask_name)]) -> str:
    return name.name


async def ask_for_sample() -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="hi"))
    return Sample([message], max_tokens=16)


@server.tool()
async def ask_model(answer: Annotated[CreateMessageResult, Resolve(ask_for_sample)]) -> str:
    return answer.content.text


async def ask_for_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def ask_roots(roots: Annotated[ListRootsResult, Resolve(ask_for_roots)]) -> str:
    return ",".join(str(root.uri) for root in roots.roots)


@server.resource("demo://text")
def text() -> str:
    return "hello"


@server.prompt()
def greeting(name: str) -> str:
    return f"Greet {name}."


server.run("stdio")
