"""Calls a server whose tools run as tasks with the client of FastMCP, and fails on the first difference.

Usage: drive.py SERVER URL   a program, over its standard streams, and the same server over HTTP
"""

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from fastmcp_tasks import call_tool_task
from fastmcp_tasks.client_models import CancelTaskRequest, GetTaskRequest, UpdateTaskRequest

CHECKS = 0


def check(actual, expected, what):
    global CHECKS
    CHECKS += 1
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


async def fails(call, expected, what):
    try:
        await call
    except ToolError as error:
        check(str(error), expected, what)
    else:
        raise AssertionError(f"{what}: it did not fail")


def text(result):
    return result.content[0].text


async def drive(server):
    asked = []

    async def elicit(message, response_type, params, context):
        asked.append(message)
        return {"sure": True}

    async with Client(server, mode="2026-07-28", elicitation_handler=elicit, timeout=20) as client:
        check(text(await client.call_tool("greet", {"name": "Ada"})), "Hello, Ada!", "a plain tool")
        check(text(await client.call_tool("render")), "rendered", "a tool that waits")
        check(text(await client.call_tool("migrate")), "migrated", "a tool that requires tasks")
        check(text(await client.call_tool("publish")), "published: true", "a task that asks")
        check(asked, ["Publish it?"], "its question")
        await fails(client.call_tool("refuse"), "There is no paper.", "a tool error")
        await fails(client.call_tool("fail"), "The press is broken", "a protocol error")

        task = await call_tool_task(client, "render")
        check((await task.status()).task_id, task.task_id, "the state of a task")
        check((await task.wait()).status, "completed", "its end")
        check(text(await task.result()), "rendered", "its result")

        task = await call_tool_task(client, "wait")
        check((await task.status()).status, "working", "a task that runs")
        await task.cancel()
        check((await task.wait()).status, "cancelled", "a cancelled task")
        await fails(task.result(), f"Task {task.task_id} was cancelled", "its result")


async def main():
    program, url = sys.argv[1:]
    await drive(StdioTransport(program, ["tasks"]))
    # The extension requires `Mcp-Name` over HTTP, which this client leaves out: its requests do not say where the name is.
    for request in (GetTaskRequest, UpdateTaskRequest, CancelTaskRequest):
        request.name_param = "taskId"
    await drive(url)
    print(f"FastMCP client of tasks over stdio and HTTP: {CHECKS} checks passed")


asyncio.run(asyncio.wait_for(main(), 60))
