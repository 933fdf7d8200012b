"""Let an SDK's client list and call the tools of a server; print what it saw as a JSON object.

    client.py SDK ASKED CALLS TARGET...

SDK is "mcp" or "fastmcp"; ASKED is "auto", "modern", "legacy" or a legacy revision; CALLS is a JSON
list of [name, arguments]; TARGET is a URL or a command.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack


def mode(asked):
    if asked == "modern":
        return "2026-07-28"
    if not asked.startswith("20"):
        return asked
    # The SDK has no setting for an older handshake: this is the constant that it offers.
    import mcp.client.session

    mcp.client.session.LATEST_HANDSHAKE_VERSION = asked
    return "legacy"


def mcp_client(asked, target):
    from mcp import Client, StdioServerParameters

    command, *arguments = target
    is_url = command.startswith("http")
    server = command if is_url else StdioServerParameters(command=command, args=arguments)
    return Client(server, mode=mode(asked), read_timeout_seconds=20)


def fastmcp_client(asked, target):
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    command, *arguments = target
    is_url = command.startswith("http")
    server = command if is_url else StdioTransport(command, arguments, keep_alive=False)
    return Client(server, mode=mode(asked), timeout=20)


async def call(client, name, arguments):
    options = {} if type(client).__module__.startswith("mcp.") else {"raise_on_error": False}
    result = await client.call_tool(name, arguments, **options)
    return {
        "text": "".join(block.text for block in result.content),
        "structured": result.structured_content,
        "is_error": result.is_error,
    }


async def main(sdk, asked, calls, *target):
    async with AsyncExitStack() as stack:
        make = {"mcp": mcp_client, "fastmcp": fastmcp_client}[sdk]
        client = await stack.enter_async_context(make(asked, target))
        tools = await client.list_tools()
        report = {
            "protocol_version": client.protocol_version,
            "tools": [tool.name for tool in getattr(tools, "tools", tools)],
            "results": [await call(client, *each) for each in json.loads(calls)],
        }
    print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
