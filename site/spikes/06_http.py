"""JSON, a stream, or both over HTTP?

A POST may be answered with one JSON object or with a stream of events. The hypothesis: an app that
decides when the answer is there serves at least half as many calls as a bare ASGI app, and more
than the same app does when it always makes a stream.
"""

import statistics
from contextlib import ExitStack
from functools import partial

import lab

QUESTION = "JSON, a stream, or both over HTTP?"
CONTROL = "the tool is an `async def`, which costs a thread and an event loop for each call"
ADRS = ["0008"]
PACKAGES = ["minimcp-reference", "uvicorn", "mcp"]
ROUNDS, QUICK = 7, 1
RATE = "calls a second, 16 connections"
LATENCY = "the median of the time that one of them takes, ms"
SLOWEST = "the time of the slowest of a hundred, ms"
FLOOR, OURS, ALWAYS = "bare ASGI app", "minimcp: JSON until it speaks", "minimcp: always a stream"

# ## Who answers

BARE = """
import json
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    message = json.loads((await receive())["body"])
    given = message["params"]["arguments"]
    block = {"type": "text", "text": str(given["a"] + given["b"])}
    reply = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [block]}}
    body = json.dumps(reply).encode()
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})
"""
APP = f"{lab.OURS}\nimport minimcp.http\napp = minimcp.http.app(server)\n"
STREAM = """
async def serve(self, body, receive, send):
    self.app.crew.put(lambda: self.answer(body))
    await self.stream(send)
minimcp.http.Post.serve = serve
"""
SPEAKING = """
from minimcp import Context, Server
import minimcp.http
server = Server("spike")
@server.tool
def add(a: int, b: int, context: Context) -> int:
    context.progress(1, 2)
    return a + b
app = minimcp.http.app(server)
"""
SDK = lab.SDK + "\napp = server.streamable_http_app(stateless_http=True, json_response={})\n"
WAYS = {
    FLOOR: BARE,
    OURS: APP,
    ALWAYS: APP + STREAM,
    "minimcp: a tool that speaks": SPEAKING,
    "official SDK, JSON": SDK.format(True),
    "official SDK, stream": SDK.format(False),
}
UVICORN = "\nimport uvicorn\nuvicorn.run(app, port={}, log_level='critical', lifespan='auto')"

# ## Experiments


def measure(rounds: int, control: bool = False) -> lab.Groups:
    """All servers run; in turn each gets its share of calls, and the others are idle."""
    ways = dict(WAYS)
    if control:
        ways = {FLOOR: BARE, OURS: APP.replace("def add", "async def add"), ALWAYS: APP + STREAM}
    many, ports = 1_000 if rounds == ROUNDS else 300, {name: lab.free_port() for name in ways}
    with ExitStack() as stack:
        for name, source in ways.items():
            stack.enter_context(lab.serving(source + UVICORN.format(ports[name]), ports[name]))
        works = {name: partial(answered, port, many) for name, port in ports.items()}
        for work in works.values():
            work()
        found = lab.rounds_of(works, rounds)
    groups: lab.Groups = {}
    for at, title in enumerate((RATE, LATENCY, SLOWEST)):
        columns = {name: [one[at] for one in values] for name, values in found.items()}
        base = columns[FLOOR]
        groups[title] = {n: lab.stat(c) | {"ratio": lab.times(c, base)} for n, c in columns.items()}
    return groups


def answered(port: int, many: int) -> tuple[float, float, float]:
    """Calls a second, the median of their milliseconds and the 99th percentile; all say 42."""
    message = lab.call(1).replace(b'"_meta": {', b'"_meta": {"progressToken": 1, ')
    wrong: list[bytes] = []
    took: list[float] = []

    def seen(response: bytes) -> None:
        if b"42" not in response.partition(b"\r\n\r\n")[2]:
            wrong.append(response)

    data = lab.post(message, f"127.0.0.1:{port}")
    seconds = lab.timed(lambda: took.extend(lab.flood(port, data, many, seen)))
    if wrong:
        raise RuntimeError(wrong[0].decode())
    return (
        many / seconds,
        statistics.median(took) * 1000,
        statistics.quantiles(took, n=100)[98] * 1000,
    )


def verdict(groups: lab.Groups) -> tuple[bool, str]:
    """Half of the bare app's rate, and more than a stream."""
    rates = {name: one["ratio"] for name, one in groups[RATE].items()}
    said = "Of the calls that a bare ASGI app answers, JSON until the tool speaks has "
    said += f"{rates[OURS]:.0%}, always a stream {rates[ALWAYS]:.0%}"
    theirs = [rates[name] for name in rates if name.startswith("official")]
    said += f", the official SDK {theirs[0]:.0%} and {theirs[1]:.0%}." if theirs else "."
    return rates[OURS] >= 0.5 and rates[OURS] > rates[ALWAYS], said
