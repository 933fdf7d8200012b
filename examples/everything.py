"""A server that does everything: tools, resources, prompts, completion, logging, asking back.

    python examples/everything.py                 over stdio
    python examples/everything.py --http 3000     over Streamable HTTP

It is how you learn to extend a server. The package knows tools; everything else here stands on
two things, `@server.tool` and `@server.method(name, capability=…)`. The names are those that the
official conformance suite asks for, so `tests/test_conformance.py` can run it against this file.
"""

import base64
import json
import struct
import sys
import time
import zlib
from pathlib import Path
from typing import Annotated, Any

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed

from bridge import BridgeServer

from minimcp import Content, Context, InputRequired, ProtocolError, ToolError, run
from minimcp.protocol import INVALID_PARAMS, LOG_LEVELS, expect

server = BridgeServer("everything", version="1.0.0", instructions="Every feature, once.")

# ## Tools and what they return
#
# A `str` becomes a text block. A tool that wants other blocks makes them itself, and says so with
# the return annotation `Content`.


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _pixel() -> str:
    """One red pixel as a PNG file, in Base64."""
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    row = _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + header + row + _chunk(b"IEND", b"")).decode()


def _click() -> str:
    """Eight samples of sound as a WAV file, in Base64."""
    samples = bytes([128, 255, 128, 0, 128, 255, 128, 0])
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form
    body += b"data" + struct.pack("<I", len(samples)) + samples
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


IMAGE = {"type": "image", "data": _pixel(), "mimeType": "image/png"}
SOUND = {"type": "audio", "data": _click(), "mimeType": "audio/wav"}


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


def embedded(uri: str, kind: str, words: str) -> dict[str, Any]:
    """A block that holds a whole resource."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


@server.tool
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> Content:
    """Return an image."""
    return [IMAGE]


@server.tool
def test_audio_content() -> Content:
    """Return a sound."""
    return [SOUND]


@server.tool
def test_embedded_resource() -> Content:
    """Return a resource inside the result."""
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource.")]


@server.tool
def test_multiple_content_types() -> Content:
    """Return a text, an image and a resource."""
    data = embedded("test://mixed-content-resource", "application/json", '{"test":"data"}')
    return [text("Multiple content types test:"), IMAGE, data]


@server.tool
def test_error_handling() -> str:
    """Fail, in the way that a model can read."""
    raise ToolError("This tool intentionally returns an error for testing")


# Schemas come from type hints. A hint may carry more JSON Schema, here for the header that a
# client copies the argument into; and a whole schema written by hand goes to the client untouched.


@server.tool
def test_x_mcp_header(region: Annotated[str, {"x-mcp-header": "Region"}]) -> str:
    """Take an argument that HTTP clients repeat in the header Mcp-Param-Region."""
    return f"region: {region}"


CONTACT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool(input_schema=CONTACT)
def json_schema_2020_12_tool(**contact: Any) -> str:
    """Take what a JSON Schema written by hand allows."""
    return f"contact: {json.dumps(contact)}"


# ## While a tool works
#
# It can say how far it is and what it does. Who asked for neither gets neither.


@server.tool
def test_tool_with_progress(context: Context) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        context.progress(done, 100)
        time.sleep(0.05)
    return "Tool with progress executed successfully."


@server.tool
def test_tool_with_logging(context: Context) -> str:
    """Send three log messages."""
    for event in ("execution started", "processing data", "execution completed"):
        context.log("info", f"Tool {event}")
        time.sleep(0.05)
    return "Tool with logging executed successfully."


@server.tool
def test_logging_tool(context: Context) -> str:
    """Send one log message."""
    context.log("info", "a message from the tool")
    return "logged, if you wanted to hear of it"


@server.method("logging/setLevel", capability="logging", era="legacy")
def set_level(params: dict[str, Any], context: Context) -> None:
    """Older clients say once for all what they want to hear; newer ones with every request."""
    if params.get("level") not in LOG_LEVELS:
        raise ProtocolError(INVALID_PARAMS, f"params.level: one of {', '.join(LOG_LEVELS)}")
    context.peer.log_level = params["level"]


# ## When something changes


@server.tool
def test_trigger_tool_change() -> str:
    """Offer one more tool for a moment; the server tells everybody who listens."""
    server.tool(name="here_and_gone")(test_simple_text)
    server.remove_tool("here_and_gone")
    return "Tools changed."


@server.tool
def test_trigger_prompt_change() -> str:
    """Tell everybody who listens that the prompts changed."""
    server.announce("prompts")
    return "Prompts changed."


@server.tool
def update_watched_resource() -> str:
    """Tell everybody who watches test://watched-resource that it changed."""
    server.announce("resources", "test://watched-resource")
    return "Resource updated."


# ## Asking back
#
# A tool that lacks something returns questions and is called again with the answers. Nothing
# waits here in between: what it must not forget goes into `state`. (A client of an older revision
# is asked directly; see bridge.py.)

Asked = str | InputRequired
NAME = {"type": "string"}


def form(message: str, **properties: Any) -> dict[str, Any]:
    """A question to the user, with one field for each property; all must be filled in."""
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return {
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": schema},
    }


def prompt_for(words: str) -> dict[str, Any]:
    """A question to the client's model."""
    messages = [{"role": "user", "content": text(words)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}}


ROOTS = {"method": "roots/list", "params": {}}


def content(context: Context, key: str) -> Any:
    """What the user filled in; None if there is no answer, or not a whole one."""
    answer = context.inputs.get(key, {})
    return answer.get("content") if answer.get("action") == "accept" else None


@server.tool
def test_input_required_result_elicitation(context: Context) -> Asked:
    """Greet the user by name."""
    filled_in = content(context, "user_name") or {}
    if not isinstance(filled_in.get("name"), str):
        return InputRequired({"user_name": form("What is your name?", name=NAME)})
    return f"Hello, {filled_in['name']}!"


@server.tool
def test_input_required_result_sampling(context: Context) -> Asked:
    """Ask the client's model for a capital."""
    answer = context.inputs.get("capital_question")
    if answer is None:
        return InputRequired({"capital_question": prompt_for("What is the capital of France?")})
    return f"The model says: {json.dumps(answer.get('content'))}"


@server.tool
def test_input_required_result_list_roots(context: Context) -> Asked:
    """Ask for the folders that the client works in."""
    answer = context.inputs.get("client_roots")
    if answer is None:
        return InputRequired({"client_roots": ROOTS})
    return f"The client works in: {json.dumps(answer.get('roots'))}"


@server.tool
def test_input_required_result_request_state(context: Context) -> Asked:
    """Ask for a confirmation, and keep a note until it comes."""
    if context.state != "asked" or "confirm" not in context.inputs:
        question = form("Please confirm", ok={"type": "boolean"})
        return InputRequired({"confirm": question}, state="asked")
    return "state-ok"


@server.tool
def test_input_required_result_multiple_inputs(context: Context) -> Asked:
    """Ask the user, the model and the client at once."""
    questions = {
        "user_name": form("What is your name?", name=NAME),
        "greeting": prompt_for("Write a greeting."),
        "client_roots": ROOTS,
    }
    if context.state is None or questions.keys() - context.inputs:
        return InputRequired(questions, state="three questions")
    return "all three answered"


@server.tool
def test_input_required_result_multi_round(context: Context) -> Asked:
    """Ask twice, the second question after the first answer."""
    name = (content(context, "step1") or {}).get("name")
    if context.state is None and name is None:
        return InputRequired({"step1": form("Step 1: your name?", name=NAME)}, state={})
    known = context.state or {"name": name}
    if "step2" not in context.inputs:
        return InputRequired({"step2": form("Step 2: your colour?", color=NAME)}, state=known)
    return f"{known['name']} likes {(content(context, 'step2') or {}).get('color')}"


@server.tool
def test_input_required_result_tampered_state(context: Context) -> Asked:
    """Keep a note that nobody can change on the way."""
    if context.state is None:
        question = form("Please confirm", ok={"type": "boolean"})
        return InputRequired({"confirm": question}, state={"amount": 100})
    return f"amount: {context.state['amount']}"


@server.tool
def test_input_required_result_capabilities(context: Context) -> Asked:
    """Ask only for what the client said it can answer."""
    questions = {
        "elicitation": form("What is your name?", name=NAME),
        "sampling": prompt_for("Say something."),
        "roots": ROOTS,
    }
    known = {key: one for key, one in questions.items() if key in context.capabilities}
    if not known or context.inputs:
        return "nothing to ask"
    return InputRequired(known)


@server.tool
def test_missing_capability(context: Context) -> str:
    """Refuse a client that has no model to ask."""
    context.require("sampling")
    return "The client can sample."


@server.tool
def test_streaming_elicitation(context: Context) -> Asked:
    """Ask the user for a confirmation."""
    if "confirm" in context.inputs:
        return "confirmed"
    return InputRequired({"confirm": form("Please confirm", ok={"type": "boolean"})})


@server.tool
def test_sampling(prompt: str, context: Context) -> Asked:
    """Ask the client's model."""
    if "answer" not in context.inputs:
        return InputRequired({"answer": prompt_for(prompt)})
    return f"LLM response: {context.inputs['answer']['content'].get('text')}"


def ask_user(context: Context, question: dict[str, Any]) -> Asked:
    """Ask the user one question and report the answer."""
    if "user" not in context.inputs:
        return InputRequired({"user": question})
    return f"User response: {json.dumps(context.inputs['user'])}"


@server.tool
def test_elicitation(message: str, context: Context) -> Asked:
    """Ask the user for a name and an address."""
    return ask_user(context, form(message, username=NAME, email=NAME))


@server.tool
def test_elicitation_sep1034_defaults(context: Context) -> Asked:
    """Ask the user with a form that is filled in already."""
    question = form(
        "Please check these values",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return ask_user(context, question)


@server.tool
def test_elicitation_sep1330_enums(context: Context) -> Asked:
    """Ask the user to choose, in each of the five ways in which a choice can be written."""
    plain = {"type": "string", "enum": ["option1", "option2", "option3"]}
    titled = [{"const": f"value{n}", "title": f"{name} option"} for n, name in enumerate("ABC", 1)]
    names = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]}
    question = form(
        "Please choose",
        untitledSingle=plain,
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", **names},
        untitledMulti={"type": "array", "items": plain},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return ask_user(context, question)


# ## Resources
#
# Four methods, and the capability that goes with them. `server.page` cuts a list into pages.

RESOURCES = {
    "test://static-text": {
        "name": "A text",
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"name": "An image", "mimeType": "image/png", "blob": IMAGE["data"]},
    "test://watched-resource": {
        "name": "A text to watch",
        "mimeType": "text/plain",
        "text": "Subscribe to me.",
    },
}
TEMPLATE = "test://template/{id}/data"


@server.method("resources/list", capability="resources")
def list_resources(params: dict[str, Any], context: Context) -> dict[str, Any]:
    """What can be read, without its content."""
    uris, more = server.page([*RESOURCES], params)
    keys = ("name", "mimeType")
    listed = [{"uri": uri, **{key: RESOURCES[uri][key] for key in keys}} for uri in uris]
    return {"resources": listed, **more}


@server.method("resources/templates/list", capability="resources")
def list_templates(params: dict[str, Any], context: Context) -> dict[str, Any]:
    """What can be read with something filled in."""
    template = {"uriTemplate": TEMPLATE, "name": "A template", "mimeType": "application/json"}
    return {"resourceTemplates": [template]}


@server.method("resources/read", capability="resources")
def read_resource(params: dict[str, Any], context: Context) -> dict[str, Any]:
    """The content of one resource."""
    uri = expect(params, "uri", str, "params")
    start, end = TEMPLATE.split("{id}")
    if uri in RESOURCES:
        found = {key: one for key, one in RESOURCES[uri].items() if key != "name"}
    elif uri.startswith(start) and uri.endswith(end) and uri[len(start) : -len(end)]:
        ident = uri[len(start) : -len(end)]
        data = {"id": ident, "templateTest": True, "data": f"Data for ID: {ident}"}
        found = {"mimeType": "application/json", "text": json.dumps(data)}
    else:
        code = INVALID_PARAMS if context.modern else -32002  # what older revisions use
        raise ProtocolError(code, f"there is no resource {uri}", {"uri": uri})
    return {"contents": [{"uri": uri, **found}]}


# A newer client watches resources with `subscriptions/listen`, which the package serves once the
# server declares that there is something to watch. An older client has two methods for it.

server.capabilities["resources"]["subscribe"] = True


@server.method("resources/subscribe", era="legacy")
def subscribe(params: dict[str, Any], context: Context) -> None:
    """Take note of an older client that wants to hear of a resource."""
    unsubscribe(params, context)  # once is enough
    if context.peer is server.peer:  # a connection that lasts, so that there is a way to tell
        server.listeners[context] = {"resourceSubscriptions": [params["uri"]]}


@server.method("resources/unsubscribe", era="legacy")
def unsubscribe(params: dict[str, Any], context: Context) -> None:
    """And of one that does not any more."""
    uri = expect(params, "uri", str, "params")
    for other in list(server.listeners):
        mine = other.peer is context.peer and other.method == "resources/subscribe"
        if mine and other.params["uri"] == uri:
            server.listeners.pop(other, None)


# ## Prompts
#
# A prompt is a function from its arguments to messages; the table is all that must be listed.


def user(block: dict[str, Any]) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": block}


def simple(arguments: dict[str, str], context: Context) -> Any:
    return [user(text("This is a simple prompt for testing."))]


def with_arguments(arguments: dict[str, str], context: Context) -> Any:
    words = "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'".format(**arguments)
    return [user(text(words))]


def with_resource(arguments: dict[str, str], context: Context) -> Any:
    resource = embedded(arguments["resourceUri"], "text/plain", "An embedded resource.")
    return [user(resource), user(text("Please process the embedded resource above."))]


def with_image(arguments: dict[str, str], context: Context) -> Any:
    return [user(IMAGE), user(text("Please look at the image above."))]


def with_input(arguments: dict[str, str], context: Context) -> Any:
    filled_in = content(context, "user_context") or {}
    if "context" not in filled_in:
        question = form("What is the prompt about?", context={"type": "string"})
        return InputRequired({"user_context": question})
    return [user(text(f"A prompt about {filled_in['context']}."))]


PROMPTS = {
    "test_simple_prompt": (simple, "Without arguments", []),
    "test_prompt_with_arguments": (with_arguments, "With two arguments", ["arg1", "arg2"]),
    "test_prompt_with_embedded_resource": (with_resource, "With a resource", ["resourceUri"]),
    "test_prompt_with_image": (with_image, "With an image", []),
    "test_input_required_result_prompt": (with_input, "Asks the user first", []),
}


@server.method("prompts/list", capability="prompts")
def list_prompts(params: dict[str, Any], context: Context) -> dict[str, Any]:
    """All prompts and their arguments."""
    names, more = server.page([*PROMPTS], params)
    listed = []
    for name in names:
        _, description, arguments = PROMPTS[name]
        shown = [{"name": one, "description": one, "required": True} for one in arguments]
        listed.append({"name": name, "description": description, "arguments": shown})
    return {"prompts": listed, **more}


@server.method("prompts/get", capability="prompts")
def get_prompt(params: dict[str, Any], context: Context) -> Any:
    """The messages of one prompt."""
    name = expect(params, "name", str, "params")
    arguments = expect(params, "arguments", dict, "params", {})
    if name not in PROMPTS:
        raise ProtocolError(INVALID_PARAMS, f"there is no prompt {name}")
    make, description, required = PROMPTS[name]
    if missing := [one for one in required if not isinstance(arguments.get(one), str)]:
        raise ProtocolError(INVALID_PARAMS, f"{name} needs the arguments {', '.join(missing)}")
    messages = make(arguments, context)
    if isinstance(messages, InputRequired):
        return messages
    return {"description": description, "messages": messages}


# ## Completion

WORDS = ["paris", "park", "party", "test", "testing", "tests"]


@server.method("completion/complete", capability="completions")
def complete(params: dict[str, Any], context: Context) -> dict[str, Any]:
    """Proposals for an argument of a prompt, or for the hole in a template."""
    about = expect(params, "ref", dict, "params")
    argument = expect(params, "argument", dict, "params")
    beginning = expect(argument, "value", str, "params.argument")
    if str(about.get("name")) not in PROMPTS and about.get("uri") != TEMPLATE:
        raise ProtocolError(INVALID_PARAMS, "params.ref: no such prompt or template")
    found = [word for word in WORDS if word.startswith(beginning)]
    return {"completion": {"values": found, "total": len(found), "hasMore": False}}


if __name__ == "__main__":
    run(server)
