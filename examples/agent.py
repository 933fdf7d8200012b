"""An agent: where the model sits.

    python examples/agent.py                            offline: a scripted model books seats
    python examples/agent.py --servers FILE "a task"    a real one, with OPENAI_API_KEY set

This is a complete host. It connects to servers, shows their tools to a model, runs what the model
asks for if you agree, tells it what came of it, and stops. FILE has the form that editors use,
{"mcpServers": {"name": {"command": …, "args": […], "env": {…}} or {"url": …}}}; without it there
are two cinemas, whose tools have the same names. OPENAI_BASE_URL and OPENAI_MODEL choose another
endpoint that speaks the same dialect: most do, also those on your own machine.

The lesson: *a model is a function* from messages and tools to a message. It never meets a server,
and no server meets it. All that is between them is the host's: names, consent, errors, limits.
What a server says, in descriptions and results, is data: it may try to talk the model into things,
so a person sees each call before it is made.
"""

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp import Client, ProtocolError
from minimcp.cli import printable
from minimcp.http_exchange import Endpoint
from minimcp.protocol import dumps, loads

Message = dict[str, Any]  # as in the chat API that most models are offered by
Model = Callable[[list[Message], list[Message]], Message]  # messages and tools in, a message out
Offers = dict[str, tuple[str, Message]]  # the name that the model sees: server and tool

ROUNDS = 12  # answers of the model in one task
AT_ONCE = 8  # calls in one answer
FULL = 20_000  # characters of a result that the model sees
PATIENCE = 60.0  # seconds for a tool, and for a model
URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
KEY = os.environ.get("OPENAI_API_KEY", "").strip()
NAME = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")

# ## The host


class Host:
    """Several servers, and `confirm(server, tool, arguments)`, asked before every call."""

    def __init__(self, clients: dict[str, Client], confirm: Callable[..., bool]) -> None:
        self.clients, self.confirm = clients, confirm

    def ask(self, task: str, model: Model) -> str:
        """Let a model work on a task; its answer, or why there is none."""
        messages = [{"role": "system", "content": self.briefing()}]
        messages.append({"role": "user", "content": task})
        for _ in range(ROUNDS):
            offers = self.offers()
            answer = model(messages, [described(name, *offers[name]) for name in offers])
            messages.append(answer)
            if not answer.get("tool_calls"):
                return str(answer["content"])
            for call in answer["tool_calls"]:
                told = self.run(offers, call["function"]["name"], call["function"]["arguments"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})
        return f"stopped: no answer after {ROUNDS} rounds"

    def briefing(self) -> str:
        """Our rules, and what the servers want a model to know."""
        said = [f"{key} says: {one.instructions or 'nothing'}" for key, one in self.clients.items()]
        return "\n".join(["When a tool fails, read why, and try another way or say so.", *said])

    def offers(self) -> Offers:
        """All tools, each under one name; a name that several have gets its server in front."""
        listed, offers = [], Offers()
        for home, client in self.clients.items():
            try:
                listed += [(home, tool) for tool in client.list_tools()]
            except (ProtocolError, OSError) as error:
                print(printable(f"{home} is left out: {error}"), file=sys.stderr)
        names = [plain(tool["name"]) for _, tool in listed]
        for name, (home, tool) in zip(names, listed, strict=True):
            name = name if names.count(name) == 1 else plain(f"{home}__{tool['name']}")
            while name in offers:  # still: they differ in a dot, or far behind
                name = f"{name[:60]}_{len(offers)}"
            offers[name] = (home, tool)
        return offers

    def run(self, offers: Offers, name: str, arguments: str) -> str:
        """Make one call, and show it; what goes wrong becomes a text that the model can act on."""
        if name not in offers:
            return f"Error: there is no tool {name!r}; there are {', '.join(offers)}"
        home, tool = offers[name]
        try:
            given = loads(str(arguments or "{}"))
            if not self.confirm(home, tool["name"], given):
                return "Error: the user does not allow this call; ask, or find another way"
            result = self.clients[home].call_tool(tool["name"], given, PATIENCE)
        except (ProtocolError, OSError) as error:
            return f"Error: {error}"
        text = "\n".join(block.get("text") or f"[{block['type']}]" for block in result.content)
        text = f"Error: {text}" if result.is_error else text
        print(printable(f"{home} {tool['name']} {arguments}\n  {text:.300}"), file=sys.stderr)
        return text if len(text) <= FULL else f"{text[:FULL]}… and more"


def plain(name: str) -> str:
    """A name as models take them: without dots, and at most 64 characters long."""
    return re.sub("[^A-Za-z0-9_-]", "_", name)[:64]


def described(name: str, home: str, tool: Message) -> Message:
    """A tool as models are told of it."""
    text = f"{tool.get('description', '')} (server: {home})"
    return {"name": name, "description": text, "parameters": tool["inputSchema"]}


# ## Two models


def scripted(messages: list[Message], tools: list[Message]) -> Message:
    """A model without a mind: it knows one task, looks at the last message, and mends its ways."""
    last = messages[-1]["content"]
    if messages[-1]["role"] == "user":
        return calling("east__list_shows")
    if show := re.search('everybody may see ([^ ,]+)|"(jaws[^"]*)":{', last):
        return calling("east__book", show=show[1] or show[2], ages=[41, 9])
    if last.startswith("Error"):
        return {"role": "assistant", "content": f"I could not book anything. {last}"}
    text = f"Jaws is not for children of 9, so I booked this: {last}"
    return {"role": "assistant", "content": text}


def calling(name: str, **arguments: Any) -> Message:
    """A message of a model that calls one tool."""
    return {"role": "assistant", "content": None, "tool_calls": [wish("1", name, dumps(arguments))]}


def wish(ident: str, name: str, arguments: str, **_: Any) -> Message:
    """One call, as a model asks for it; the arguments are a text that holds JSON."""
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}


def remote(messages: list[Message], tools: list[Message]) -> Message:
    """A model behind an endpoint of OpenAI's chat API; `ConnectionError` if it is no help."""
    offered = [{"type": "function", "function": tool} for tool in tools]
    body = dumps({"model": NAME, "messages": messages, "tools": offered}).encode()
    head = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    post = "POST", head, body, monotonic() + PATIENCE, None
    try:
        with closing(Endpoint(f"{URL}/chat/completions")) as end, end.exchange(*post) as reply:
            text = reply.read(10_000_000).decode()
        if reply.status != 200:  # nor is a redirect followed: it would take the key elsewhere
            raise ValueError(f"HTTP {reply.status}: {text[:500]}")
        found = loads(text)["choices"][0]["message"]
        calls = [wish(one["id"], **one["function"]) for one in found.get("tool_calls") or []]
    except Exception as error:
        raise ConnectionError(f"the model's endpoint is no help: {error!r}") from None
    return {"role": "assistant", "content": found.get("content"), "tool_calls": calls[:AT_ONCE]}


# ## The command line

TASK = "Book seats for tonight, for me (41) and my daughter (9). We would love to see Jaws."
CINEMA = {"command": sys.executable, "args": [str(Path(__file__).with_name("movies.py"))]}


def connect(command: str = "", args: Any = (), env: Any = None, url: str = "", **o: Any) -> Client:
    """A client for a server as the file describes it."""
    if not command and not url:
        raise ValueError(f"no 'command' and no 'url' but {[*o]}; one level too many?")
    return Client(url or [command, *args], env=env)


def confirmed(home: str, name: str, arguments: Message) -> bool:
    """Ask the person at the terminal, in letters that it does not obey; nobody there means no."""
    print(printable(f"{home}: {name} {dumps(arguments)} [y/N] "), end="", flush=True)
    return sys.stdin.readline().strip() == "y"


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("task", nargs="?", default=TASK)
    parser.add_argument("--servers", type=Path, metavar="FILE")
    options = parser.parse_args()
    model = remote if KEY else scripted
    servers = {"east": CINEMA, "west": CINEMA}
    try:
        if options.servers:
            servers = loads(options.servers.read_text(encoding="utf-8"))["mcpServers"]
        with ExitStack() as stack:
            clients = {key: stack.enter_context(connect(**one)) for key, one in servers.items()}
            print(printable(Host(clients, confirmed).ask(options.task, model)))
    except (Exception, KeyboardInterrupt) as error:  # one line is enough
        sys.exit(printable(f"{type(error).__name__}: {error}"))
