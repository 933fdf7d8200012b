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

import json
import os
import re
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp import Client, ProtocolError
from minimcp.cli import printable
from minimcp.protocol import dumps, loads

Message = dict[str, Any]  # as in the chat API that most models are offered by
Model = Callable[[list[Message], list[Message]], Message]  # messages and tools in, a message out
Offers = dict[str, tuple[str, Message]]  # the name that the model sees: server and tool

ROUNDS = 12  # answers of the model in one task
AT_ONCE = 8  # calls in one answer
FULL = 20_000  # characters of a result that the model sees
PATIENCE = 60.0  # seconds for a tool, and for a model

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
                return str(answer.get("content"))
            for call in answer["tool_calls"]:
                told = self.run(offers, **call["function"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})
        return f"stopped: no answer after {ROUNDS} rounds"

    def briefing(self) -> str:
        """The first message: our rules, and what the servers want a model to know."""
        said = {home: client.instructions for home, client in self.clients.items()}
        notes = [f"The server {home} says: {text}" for home, text in said.items() if text]
        return "\n".join(["When a tool fails, read why, and try another way or say so.", *notes])

    def offers(self) -> Offers:
        """All tools, each under one name; a name that several have gets its server in front."""
        listed = [(home, tool) for home in self.clients for tool in self.listed(home)]
        shared = Counter(plain(tool["name"]) for _, tool in listed)
        offers: Offers = {}
        for home, tool in listed:
            name = plain(tool["name"])
            name = name if shared[name] == 1 else plain(f"{home}__{name}")
            while name in offers:  # still: they differ in a dot, or far behind
                name = f"{name[:60]}_{len(offers)}"
            offers[name] = (home, tool)
        return offers

    def listed(self, home: str) -> list[Message]:
        try:
            return self.clients[home].list_tools()
        except (ProtocolError, ConnectionError, TimeoutError) as error:
            print(printable(f"{home} is left out: {error}"), file=sys.stderr)
            return []

    def run(self, offers: Offers, name: str, arguments: str) -> str:
        """Make one call, and show it; what goes wrong becomes a text that the model can act on."""
        if name not in offers:
            return f"Error: there is no tool {name!r}; there are {', '.join(offers)}"
        home, tool = offers[name]
        try:
            given = loads(arguments or "{}")
            if not self.confirm(home, tool["name"], given):
                return "Error: the user does not allow this call; ask, or find another way"
            result = self.clients[home].call_tool(tool["name"], given, PATIENCE)
        except (ProtocolError, ConnectionError, TimeoutError) as error:
            return f"Error: {error}"
        text = "\n".join(block.get("text") or f"[{block['type']}]" for block in result.content)
        text = text if len(text) <= FULL else f"{text[:FULL]}… and more"
        text = f"Error: {text}" if result.is_error else text
        print(printable(f"{home} {tool['name']} {arguments}\n  {text:.300}"), file=sys.stderr)
        return text


def plain(name: str) -> str:
    """A name as models take them: without dots, and at most 64 characters long."""
    return re.sub("[^A-Za-z0-9_-]", "_", name)[:64]


def described(name: str, home: str, tool: Message) -> Message:
    """A tool as models are told of it."""
    text = f"{tool.get('description', '')} (server: {home})"
    return {"name": name, "description": text, "parameters": tool["inputSchema"]}


# ## Two models


def saying(text: str | None, *calls: tuple[str, str, str]) -> Message:
    """A message of a model: some text, or calls, each an id, a name and the arguments as JSON."""
    made = [
        {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}
        for ident, name, arguments in calls
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def scripted(*steps: Callable[[str], Message]) -> Model:
    """A model without a mind: each step turns the last message into the next one."""
    rest = iter(steps)
    return lambda messages, tools: next(rest)(messages[-1]["content"])


def remote(base: str, key: str, name: str) -> Model:
    """A model behind an endpoint of OpenAI's chat API; `ConnectionError` if it is no help."""
    url, agent = base.rstrip("/") + "/chat/completions", build_opener(StayHere)
    head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def model(messages: list[Message], tools: list[Message]) -> Message:
        body: Message = {"model": name, "messages": messages}
        if tools:
            body["tools"] = [{"type": "function", "function": tool} for tool in tools]
        try:
            request = Request(url, dumps(body).encode(), head)  # noqa: S310
            with agent.open(request, timeout=PATIENCE) as response:
                found = loads(response.read(10_000_000).decode())["choices"][0]["message"]
            made = [(one["id"], one["function"]) for one in found.get("tool_calls") or []]
            calls = [(ident, one["name"], one["arguments"]) for ident, one in made[:AT_ONCE]]
        except HTTPError as error:
            told = error.read(500).decode(errors="replace")
            raise ConnectionError(f"the model's endpoint says {error.code}: {told}") from None
        except Exception as error:
            raise ConnectionError(f"the model's endpoint is no help: {error!r}") from None
        return saying(found.get("content"), *calls)

    return model


class StayHere(HTTPRedirectHandler):
    """Follow no redirect: it would take the key to somebody else."""

    def redirect_request(self, *arguments: Any) -> None:
        return None


# ## The command line

TASK = "Book seats for tonight, for me (41) and my daughter (9). We would love to see Jaws."
CINEMA = {"command": sys.executable, "args": [str(Path(__file__).with_name("movies.py"))]}


def booking() -> Model:
    """What a model might do with this task; it reads the refusal, and mends its ways."""

    def book(show: str) -> Message:
        return saying(None, ("1", "east__book", json.dumps({"show": show, "ages": [41, 9]})))

    def mend(refusal: str) -> Message:
        found = re.search("everybody may see ([^ ,]+)", refusal)
        return book(found[1]) if found else saying(f"I could not book anything. {refusal}")

    return scripted(
        lambda task: saying(None, ("1", "east__list_shows", "{}")),
        lambda shows: book("jaws-17:30"),
        mend,
        lambda booked: saying(f"Jaws is not for children of 9, so I booked this: {booked}"),
    )


def confirmed(home: str, name: str, arguments: Message) -> bool:
    """Ask the person at the terminal, in letters that it does not obey; nobody there means no."""
    try:
        return input(printable(f"{home}: {name} {json.dumps(arguments)} [y/N] ")) == "y"
    except EOFError:
        return False


def main() -> None:
    """Work on one task."""
    parser, get = ArgumentParser(), os.environ.get
    parser.add_argument("task", nargs="?", default=TASK)
    parser.add_argument("--servers", metavar="FILE")
    parser.add_argument("--yes", action="store_true", help="allow every call")
    options = parser.parse_args()
    servers = {"east": CINEMA, "west": CINEMA}
    if options.servers:
        servers = json.loads(Path(options.servers).read_text())["mcpServers"]
    model = booking()
    if key := get("OPENAI_API_KEY"):
        base = get("OPENAI_BASE_URL", "https://api.openai.com/v1")
        model = remote(base, key, get("OPENAI_MODEL", "gpt-4o-mini"))
    with ExitStack() as stack:
        clients = {}
        for name, one in servers.items():
            target = one.get("url") or [one["command"], *one.get("args", [])]
            clients[name] = stack.enter_context(Client(target, env=one.get("env")))
        host = Host(clients, (lambda *call: True) if options.yes else confirmed)
        print(printable(host.ask(options.task, model)))


if __name__ == "__main__":
    main()
