"""The client that the official suite runs, once for each scenario: `client.py URL`.

The suite says in the environment which scenario it plays and which revision it speaks; for some
it adds what to do. Everything that a scenario demands beyond ordinary use is done by the package.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from minimcp import Client, ProtocolError

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
ERA = "modern" if os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"] >= "2026" else "legacy"
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")


def fill_in(params: dict[str, Any]) -> dict[str, Any]:
    """Answer a form with its defaults, and with yes where there are none."""
    fields = params.get("requestedSchema", {}).get("properties", {})
    content = {name: field.get("default", True) for name, field in fields.items()}
    return {"action": "accept", "content": content}


def list_only(client: Client) -> None:
    client.list_tools()


def call_each_tool(client: Client) -> None:
    for tool in client.list_tools():
        arguments = dict.fromkeys(tool["inputSchema"].get("required", []), 1)
        client.call_tool(tool["name"], arguments)


def call_with_text(client: Client) -> None:
    for tool in client.list_tools():
        client.call_tool(tool["name"], dict.fromkeys(tool["inputSchema"]["properties"], "x"))


def call_what_is_asked(client: Client) -> None:
    client.list_tools()
    for call in CONTEXT["toolCalls"]:
        client.call_tool(call["name"], call["arguments"])


def use_every_header(client: Client) -> None:
    call_each_tool(client)
    resources = client.request("resources/list")["resources"]
    for resource in resources:
        client.request("resources/read", {"uri": resource["uri"]})
    for prompt in client.request("prompts/list")["prompts"]:
        client.request("prompts/get", {"name": prompt["name"]})


def echo_schema(client: Client) -> None:
    schema = client.list_tools()[0]["inputSchema"]
    client.call_tool("json_schema_echo", {"schema": schema})


SCENARIOS: dict[str, Callable[[Client], None]] = {
    "initialize": list_only,
    "json-schema-ref-no-deref": list_only,
    "json-schema-2020-12-preservation": echo_schema,
    "http-custom-headers": call_what_is_asked,
    "http-invalid-tool-headers": call_with_text,
    "http-standard-headers": use_every_header,
}


ASKED = ("elicitation-sep1034-client-defaults", "sep-2322-client-request-state")


def main(url: str) -> int:
    play = SCENARIOS.get(SCENARIO, call_each_tool)
    able = {"elicitation/create": fill_in} if SCENARIO in ASKED else {}
    patient = {"timeout": 60.0, "probe_timeout": 60.0}  # all scenarios run at once
    with Client(url, era=ERA, on_input=able, **patient) as client:
        try:
            play(client)
        except ProtocolError as error:
            print(f"{SCENARIO}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
