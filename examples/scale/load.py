"""Calls from many threads, while workers come and go; and what a client may ask again.

    python examples/scale/load.py http://127.0.0.1:3000/mcp 2000

The lesson: *ask again what may be repeated, and nothing else*. A connection that was refused took
nothing along: any request may go again. A request that was sent and got no answer may have run;
then only the tool knows whether twice is once (`idempotentHint`, `readOnlyHint`), and for all
others the caller gets an error, finds out, and decides.
"""

import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))  # so that it runs from a clone, not installed
from minimcp import Client
from minimcp.client import ToolResult

WIDE = 16  # threads
TRIES, PAUSE = 40, 0.05  # how often, and after how many seconds


def repeatable(tool: dict[str, Any]) -> bool:
    """Whether a tool says that to call it twice is as good as once."""
    hints = tool.get("annotations", {})
    return hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True


def call(client: Client, name: str, arguments: Any, seen: "Counter[str]") -> ToolResult:
    """A call that is made again, if that is allowed and needed; `ConnectionError` if not."""
    may = repeatable(client.tools.get(name, {}))
    for _ in range(TRIES):
        try:
            return client.call_tool(name, arguments)
        except ConnectionError as error:
            seen["broken off"] += 1
            if not may and "ConnectionRefusedError" not in str(error):
                raise
        seen["asked again"] += 1
        time.sleep(PAUSE)
    raise ConnectionError(f"{name}: not once in {TRIES} times")


def load(url: str, many: int, progress: Any = lambda done: None) -> dict[str, Any]:
    """Half prices, half orders: how many were answered, and the numbers of the lost orders."""
    seen: Counter[str] = Counter()
    answered, lost = [], []
    with Client(url, era="modern") as client, ThreadPoolExecutor(WIDE) as pool:
        client.list_tools()

        def one(number: int) -> None:
            progress(number)
            try:
                if number % 2:
                    assert call(client, "price", {"item": "tea"}, seen).structured == 2.5
                    seen["prices"] += 1
                else:
                    told = call(client, "order", {"number": number}, seen).text
                    assert told.startswith(f"order {number},")
                    answered.append(number)
            except ConnectionError:
                lost.extend([] if number % 2 else [number])

        list(pool.map(one, range(many)))
    return {**seen, "orders": answered, "orders that may have run": lost}


if __name__ == "__main__":
    found = load(sys.argv[1], int(sys.argv[2]))
    for what, figure in found.items():
        print(f"{what}: {len(figure) if isinstance(figure, list) else figure}")
