"""Calls the server with the official Python client and fails on the first difference.

Usage: drive.py SERVER            a program, over its standard streams, in both eras
       drive.py URL [resumable]   over HTTP, in both eras at once, the handshake with a session, and over the HTTP+SSE beside it
"""

import sys
import uuid
import warnings

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

warnings.simplefilter("ignore")

CHECKS = 0


def check(actual, expected, what):
    global CHECKS
    CHECKS += 1
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


async def until(condition, what):
    """Returns when the condition holds, and fails if it never does."""
    try:
        with anyio.fail_after(10):
            while not await condition():
                await anyio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"in vain: {what}") from None
    check(True, True, what)


def text(result):
    return result.content[0].text


def own_name():
    """Several clients use one server: names of their own items are unique."""
    return uuid.uuid4().hex


class Peer:
    """Handlers for requests of the server, and the received notifications."""

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
        self.messages.append(getattr(message, "root", message))

    def kinds(self):
        return {type(message).__name__ for message in self.messages}

    def updated(self):
        updates = [one for one in self.messages if isinstance(one, types.ResourceUpdatedNotification)]
        return {str(update.params.uri) for update in updates}

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
    check(len(tools), 11, "the number of tools")
    check(text(await client.call_tool("echo", {"text": "Grüße \U0001f980"})), "Grüße \U0001f980", "an echo")
    failed = await client.call_tool("echo", {"text": 5})
    check(failed.is_error, True, "bad arguments are reported in-band")
    try:
        await client.call_tool("unknown", {})
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
    """A cancelled call is dropped at the server, and the connection stays usable."""
    name = {"text": own_name()}
    started = anyio.Event()

    async def progress(done, total, message):
        started.set()

    async with anyio.create_task_group() as group:

        async def call():
            await client.call_tool("wait", name, progress_callback=progress)

        group.start_soon(call)
        with anyio.fail_after(10):
            await started.wait()
        group.cancel_scope.cancel()

    async def dropped():
        return text(await client.call_tool("cancelled", name)) == "1"

    await until(dropped, "a cancelled call is dropped")


async def updates(client, peer):
    """Subscribers of a resource are notified of its changes until the subscription ends."""
    watched, other = (f"demo://item/{own_name()}" for _ in range(2))

    async def heard(uri):
        return uri in peer.updated()

    await client.subscribe_resource(watched)
    await client.subscribe_resource(other)
    await client.call_tool("change", {"text": watched})
    await until(lambda: heard(watched), "a subscribed resource has changed")
    check("ToolListChangedNotification" in peer.kinds(), True, "the list of tools has changed")
    await client.unsubscribe_resource(watched)
    peer.messages.clear()
    await client.call_tool("change", {"text": watched})
    await client.call_tool("change", {"text": other})
    await until(lambda: heard(other), "another subscription goes on")
    check(watched in peer.updated(), False, "nothing after the end of a subscription")


async def shake_hands(client, peer):
    check(client.protocol_version, "2025-11-25", "the revision of the handshake")
    await common(client, peer)
    await client.send_ping()
    await client.set_logging_level("error")
    peer.logs.clear()
    await client.call_tool("log", {})
    check(peer.logs, [], "messages below the level")
    await updates(client, peer)
    await cancels(client)


class Wire:
    """The HTTP exchanges between client and server."""

    def __init__(self, url):
        self.url = url
        self.seen = []
        self.session = None

    async def note(self, response):
        came_back = "last-event-id" in response.request.headers
        self.seen.append((response.request.method, response.status_code, came_back))
        self.session = response.headers.get("mcp-session-id", self.session)

    def http_client(self):
        timeout = httpx2.Timeout(20, read=60)
        return httpx2.AsyncClient(event_hooks={"response": [self.note]}, timeout=timeout)

    async def saw(self, *exchange):
        return exchange in self.seen


async def session(url, resumable):
    """A session over HTTP: requests and notifications of the server use its own streams."""
    peer, wire = Peer(), Wire(url)
    async with wire.http_client() as http:
        async with peer.client(streamable_http_client(url, http_client=http), "legacy") as client:
            await until(lambda: wire.saw("GET", 200, False), "the server's own stream")
            await shake_hands(client, peer)
            check(text(await client.call_tool("leave", {})), "come back" if resumable else "stay", "a stream let go")
            check(await wire.saw("GET", 200, True), resumable, "a stream is resumed")
        check(await wire.saw("DELETE", 200, False), True, "the client ends its session")
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        headers = {"mcp-session-id": wire.session, "accept": "application/json, text/event-stream"}
        check((await http.post(url, json=ping, headers=headers)).status_code, 404, "a session that is over")


async def handshake(server):
    peer = Peer()
    async with peer.client(server, "legacy") as client:
        await shake_hands(client, peer)
        check(text(await client.call_tool("leave", {})), "stay", "there is no stream to let go")


async def envelope(server):
    peer = Peer()
    async with peer.client(server, "auto") as client:
        check(client.protocol_version, "2026-07-28", "the revision of the envelope")
        await common(client, peer)
        check(text(await client.call_tool("rounds", {})), "answers: 2", "rounds of input with a sealed state")
        watched = f"demo://item/{own_name()}"
        async with client.listen(tools_list_changed=True, resource_subscriptions=[watched]) as changes:
            check(changes.honored.tools_list_changed, True, "what the server agreed to report")
            await client.call_tool("change", {"text": watched})
            events = set()
            with anyio.fail_after(10):
                async for event in changes:
                    events.add(type(event).__name__)
                    if len(events) == 2:
                        break
            check(len(events), 2, "both changes arrive")
        await cancels(client)


async def main():
    server, *rest = sys.argv[1:]
    if server.startswith("http"):
        async with anyio.create_task_group() as both:
            both.start_soon(session, server, rest == ["resumable"])
            both.start_soon(envelope, server)
        if not rest:
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
