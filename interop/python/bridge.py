"""Calls a server of the other era with the official Python client, through `duplexer proxy`.

Usage: bridge.py PROXY
"""

import sys
import warnings
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters

warnings.simplefilter("ignore")

CHECKS = 0


def check(actual, expected, what):
    global CHECKS
    CHECKS += 1
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def text(result):
    return result.content[0].text


async def elicit(context, params):
    check(params.message, "What is your name?", "the question")
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def sample(context, params):
    check(params.max_tokens, 16, "the limit of tokens")
    return types.CreateMessageResult(
        role="assistant", content=types.TextContent(type="text", text="hello"), model="m"
    )


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///home")])


async def uses(client):
    check(client.server_info.name, "one-era", "the server's name")
    check(client.instructions, "One era only.", "the instructions")
    check(len((await client.list_tools()).tools), 5, "the number of tools")
    check(text(await client.call_tool("echo", {"text": "Grüße"})), "Grüße", "an echo")
    seen = []

    async def progress(done, total, message):
        seen.append((done, total, message))

    await client.call_tool("progress", {}, progress_callback=progress)
    check(seen, [(float(n), 3.0, "working") for n in (1, 2, 3)], "progress")
    check((await client.read_resource("demo://text")).contents[0].text, "hello", "a resource")
    prompt = await client.get_prompt("greeting", {"name": "Ada"})
    check(prompt.messages[0].content.text, "Greet Ada.", "a prompt")
    check(text(await client.call_tool("ask_user", {})), "Ada", "elicitation")
    check(text(await client.call_tool("ask_model", {})), "hello", "sampling")
    check(text(await client.call_tool("ask_roots", {})), "file:///home", "roots")
    try:
        await client.read_resource("demo://none")
        check(True, False, "an unknown resource is refused")
    except MCPError:
        check(True, True, "an unknown resource is refused")


async def main():
    script = str(Path(__file__).with_name("one_era.py"))
    for mode, revision, era in [("legacy", "2025-11-25", "envelope"), ("auto", "2026-07-28", "handshake")]:
        server = [sys.executable, script, era]
        through = StdioServerParameters(command=sys.argv[1], args=["proxy", "--", *server])
        client = Client(
            through,
            mode=mode,
            read_timeout_seconds=30,
            sampling_callback=sample,
            elicitation_callback=elicit,
            list_roots_callback=roots,
        )
        async with client as opened:
            check(opened.protocol_version, revision, "the revision of the client")
            await uses(opened)
    print(f"python clients and servers of different eras: {CHECKS} checks passed")


anyio.run(main)
