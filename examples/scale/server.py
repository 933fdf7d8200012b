"""What the workers serve: a tool that may be repeated, and one that may not.

    python examples/scale/server.py --http 8001     one worker

Both say so, in their annotations; a client that lost an answer can look there. An order is noted
in the file ORDERS, so that one can count afterwards.
"""

import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # so that it runs from a clone, not installed
from minimcp import Server, run

server = Server("shop", version="1.0.0")
PRICES = {"tea": 2.5, "cake": 4.0}


@server.tool(annotations={"readOnlyHint": True, "idempotentHint": True})
def price(item: str) -> float:
    """What something costs."""
    return PRICES[item]


@server.tool(annotations={"readOnlyHint": False, "idempotentHint": False})
def order(number: int) -> str:
    """Order something; twice is two orders."""
    note = os.open(os.environ.get("ORDERS", "orders.txt"), os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(note, f"{number}\n".encode())
    os.close(note)
    time.sleep(0.005)  # the kitchen
    return f"order {number}, taken by process {os.getpid()}"


if __name__ == "__main__":
    run(server)
