"""Three tools, and a tour of them: what `python -m minimcp.client` shows.

`python -m minimcp.demo` serves them, over stdio or with `--http`.
"""

from .cli import run
from .client import Client
from .server import Server

server = Server("minimcp-demo", version="1.0.0")


@server.tool(name="calc.add")
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool(name="text.word_count")
def word_count(text: str) -> dict[str, int]:
    """Count the words and the characters of a text."""
    return {"words": len(text.split()), "characters": len(text)}


@server.tool(name="text.summarize_naive")
def summarize_naive(text: str, sentences: int = 1) -> str:
    """Keep the first sentences of a text."""
    return ".".join(text.split(".")[:sentences]) + "."


TEXT = "A host contains a client. A client talks to one server. The model is somewhere else."


def tour(client: Client) -> None:
    """Call each tool once, and one of them wrongly."""
    print("calc.add(2, 40) ->", client.call_tool("calc.add", {"a": 2, "b": 40}).text)
    for name in ("text.word_count", "text.summarize_naive"):
        print(f"{name}({TEXT[:25]!r}…) ->", client.call_tool(name, {"text": TEXT}).text)
    wrong = client.call_tool("calc.add", {"a": "two", "b": 40})
    print("calc.add('two', 40) -> is_error, and the model reads:")
    print("  " + wrong.text.replace("\n", "\n  "))


if __name__ == "__main__":
    run(server)
