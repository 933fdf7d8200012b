"""Let the official SDK's client list and read the resources of a server; print what it saw.

    resources.py ASKED URIS TARGET...

ASKED is "modern" or "legacy"; URIS is a JSON list; TARGET is a URL or a command. A resource that
cannot be read is reported with its error code, message and data.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters


def connect(asked, target):
    command, *arguments = target
    is_url = command.startswith("http")
    server = command if is_url else StdioServerParameters(command=command, args=arguments)
    mode = "2026-07-28" if asked == "modern" else asked
    return Client(server, mode=mode, read_timeout_seconds=20)


async def read(client, uri):
    try:
        result = await client.read_resource(uri)
    except MCPError as error:
        return {"code": error.error.code, "message": error.error.message, "data": error.error.data}
    return [
        one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in result.contents
    ]


async def main(asked, uris, *target):
    async with connect(asked, target) as client:
        listed = await client.list_resources()
        templates = await client.list_resource_templates()
        report = {
            "protocol_version": client.protocol_version,
            "resources": [str(one.uri) for one in listed.resources],
            "templates": [one.uri_template for one in templates.resource_templates],
            "read": [await read(client, uri) for uri in json.loads(uris)],
        }
    print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
