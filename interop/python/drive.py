"""Drives the server with the official Python client and fails on the first surprise.

Usage: drive.py SERVER   a program, over its standard streams, in both eras
       drive.py URL      over HTTP in the envelope era, and over the HTTP+SSE beside it in both
"""

import sys
import warnings

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

warnings.simplefilter("ignore")

CHECKS = 0


def check(actual, expected, what):
    global CHECKS
    CHECKS += 1
    if actual != expected:
        raise SystemExit(f"FAILED: {what}: expected {expected!r}, got {actual!r}")


def text(result):
    return result.content[0].text


class Peer:
    """What the server may ask, and what it has told."""

    def __init__(self):
        self.logs = []
        self.messages = []

    async def elicit(self, context, params):
        check(params.message, "What is your name?", "the question")
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(self, context, params):
        check(params.max_tokens, 16, "the limit of tokens")
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="hello"), model="m"
        )

    async def roots(self, context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///home")])

    async def log(self, params):
        self.logs.append(params.data)

    async def message(self, message):
        self.messages.append(message)

    def client(self, server, mode):
        return Client(
            server,
            mode=mode,
            read_timeout_seconds=20,
            sampling_callback=self.sample,
            elicitation_callback=self.elicit,
            list_roots_callback=self.roots,
            logging_callback=self.log,
            log_level="info",
            message_handler=self.message,
        )


async def common(client, peer):
    check(client.server_info.name, "interop", "the server's name")
    check(client.instructions, "One of everything.", "the instructions")
    tools = (await client.list_tools()).tools
    check(len(tools), 10, "the number of tools")
    check(text(await client.call_tool("echo", {"text": "Grüße \U0001f980"})), "Grüße \U0001f980", "an echo")
    failed = await client.call_tool("echo", {"text": 5})
    check(failed.is_error, True, "bad arguments are told in-band")
    try:
        await client.call_tool("nobody", {})
        check(True, False, "an unknown tool is refused")
    except MCPError as error:
        check(error.error.code, -32602, "the code of an unknown tool")

    seen = []

    async def progress(done, total, message):
        seen.append((done, total, message))

    await client.call_tool("progress", {}, progress_callback=progress)
    check(seen, [(float(n), 3.0, "working") for n in (1, 2, 3)], "progress")

    await client.call_tool("log", {})
    check("loud" in peer.logs, True, "a log message")

    read = await client.read_resource("demo://text")
    check(read.contents[0].text, "hello", "a text resource")
    read = await client.read_resource("demo://item/QUJD")
    check(read.contents[0].blob, "QUJD", "a binary resource")
    check(len((await client.list_resources()).resources), 1, "resources")
    check(len((await client.list_resource_templates()).resource_templates), 1, "templates")

    check(len((await client.list_prompts()).prompts), 1, "prompts")
    prompt = await client.get_prompt("greeting", {"name": "Ada"})
    check(prompt.messages[0].content.text, "Greet Ada.", "a prompt")
    completed = await client.complete(
        types.PromptReference(type="ref/prompt", name="greeting"), {"name": "name", "value": "A"}
    )
    check(completed.completion.values, ["Ada", "Alan"], "a completion")

    check(text(await client.call_tool("ask_user", {})), "accept Ada", "elicitation")
    check(text(await client.call_tool("ask_model", {})), "hello", "sampling")
    check(text(await client.call_tool("ask_roots", {})), "file:///home", "roots")


async def cancels(client):
    """A call that is given up is dropped at the server, and the connection goes on."""
    before = int(text(await client.call_tool("cancelled", {})))
    started = anyio.Event()

    async def progress(done, total, message):
        started.set()

    async with anyio.create_task_group() as group:

        async def call():
            await client.call_tool("wait", {}, progress_callback=progress)

        group.start_soon(call)
        with anyio.fail_after(10):
            await started.wait()
        group.cancel_scope.cancel()
    with anyio.fail_after(10):
        while int(text(await client.call_tool("cancelled", {}))) != before + 1:
            await anyio.sleep(0.01)
    check(True, True, "a cancelled call is dropped")


async def handshake(server):
    peer = Peer()
    async with peer.client(server, "legacy") as client:
        check(client.protocol_version, "2025-11-25", "the revision of the handshake")
        await common(client, peer)
        await client.send_ping()
        await client.set_logging_level("error")
        peer.logs.clear()
        await client.call_tool("log", {})
        check(peer.logs, [], "messages below the level")
        await client.subscribe_resource("demo://text")
        await client.call_tool("change", {})
        with anyio.fail_after(10):
            while len(kinds(peer)) < 1:
                await anyio.sleep(0.01)
        check("ResourceUpdatedNotification" in kinds(peer), True, "a subscribed resource has changed")
        await client.unsubscribe_resource("demo://text")
        await cancels(client)


def kinds(peer):
    names = {type(getattr(message, "root", message)).__name__ for message in peer.messages}
    return {name for name in names if name.startswith("Resource")}


async def envelope(server):
    peer = Peer()
    async with peer.client(server, "auto") as client:
        check(client.protocol_version, "2026-07-28", "the revision of the envelope")
        await common(client, peer)
        check(text(await client.call_tool("rounds", {})), "answers: 2", "rounds of input with a sealed state")
        async with client.listen(tools_list_changed=True, resource_subscriptions=["demo://text"]) as changes:
            check(changes.honored.tools_list_changed, True, "what the server agreed to report")
            await client.call_tool("change", {})
            events = []
            with anyio.fail_after(10):
                async for event in changes:
                    events.append(type(event).__name__)
                    if len(events) == 2:
                        break
            check(len(set(events)), 2, "both changes arrive")
        await cancels(client)


async def main():
    server = sys.argv[1]
    if server.startswith("http"):
        await envelope(server)
        old = server.removesuffix("/mcp") + "/sse"
        await handshake(sse_client(old))
        await envelope(sse_client(old))
        print(f"python client over HTTP: {CHECKS} checks passed")
        return
    server = StdioServerParameters(command=server)
    await handshake(server)
    await envelope(server)
    print(f"python client over stdio: {CHECKS} checks passed")


anyio.run(main)
