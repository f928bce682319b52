"""A server of FastMCP whose tools run as tasks, on a free port. The first line of output is its URL."""

import asyncio
import socket

import mcp_types as types
import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension

WORK = 0.05

server = FastMCP("tasks")
server.add_extension(TasksExtension())


@server.tool()
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@server.tool(task=True)
async def render() -> str:
    await asyncio.sleep(WORK)
    return "rendered"


@server.tool(task=True)
async def publish(ctx: Context):
    answers = ctx.input_responses or {}
    if "sure" not in answers:
        schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
        question = types.ElicitRequestFormParams(message="Publish it?", requested_schema=schema)
        return types.InputRequiredResult(input_requests={"sure": types.ElicitRequest(params=question)})
    return f"published: {str(answers['sure'].content['sure']).lower()}"


@server.tool(task=True)
async def refuse() -> str:
    await asyncio.sleep(WORK)
    raise ToolError("There is no paper.")


@server.tool(task=True)
async def wait() -> str:
    await asyncio.Event().wait()
    return "never"


@server.tool(task=TaskConfig(mode="required"))
async def migrate() -> str:
    await asyncio.sleep(WORK)
    return "migrated"


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.http_app(path="/mcp"), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


main()
