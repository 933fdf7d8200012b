"""Weather: a forecast from somebody else's HTTP API (Open-Meteo; it works without a key).

    python examples/weather.py                 over stdio
    python examples/weather.py --http 3000     over Streamable HTTP

    WEATHER_URL    another service of the same kind, such as a stand-in for tests
    WEATHER_KEY    your key, if you have one; it goes to that service and nowhere else

The lesson: *expect the worst of whom you call*. The key comes from the environment and appears
in no message. One deadline holds for the whole answer, not for each byte of it. Redirects are
not followed. Whatever goes wrong becomes a `ToolError` that says what the model should do now.
And the answer is checked, cut down to what was asked for, and rebuilt from numbers and dates:
the words of a stranger never reach the model, who would read them as ours.
"""

import json
import os
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import date
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from socket import SHUT_RDWR, socket
from threading import Timer
from time import monotonic
from typing import Any
from urllib.parse import urlencode, urlsplit

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp import Server, ToolError, run

URL = os.environ.get("WEATHER_URL", "https://api.open-meteo.com/v1/forecast")
KEY = os.environ.get("WEATHER_KEY")
TIMEOUT = 5.0  # seconds, for the whole answer
LIMIT = 200_000  # bytes; a week of weather takes two thousand
FIELDS = {"high": "temperature_2m_max", "low": "temperature_2m_min", "rain": "precipitation_sum"}
POSSIBLE = {"high": (-90, 60), "low": (-90, 60), "rain": (0, 2000)}  # on this planet
LATER = "try once more in a minute, and do not make up a forecast"
OPERATOR = "trying again will not help; tell the user that this server needs its operator"
ADVICE = {
    400: "check latitude, longitude and days",
    401: f"it refuses our key; {OPERATOR}",
    403: f"it refuses our key; {OPERATOR}",
    429: "it was asked too often; wait a minute",
}

server = Server("weather", version="1.0.0", instructions="Ask for places by their coordinates.")


@dataclass
class Day:
    """Highest and lowest temperature in °C, rain in mm."""

    date: str
    high: float
    low: float
    rain: float


@dataclass
class Forecast:
    days: list[Day]


@server.tool(annotations={"readOnlyHint": True, "openWorldHint": True})
def forecast(latitude: float, longitude: float, days: int = 3) -> Forecast:
    """Forecast the weather of a place, today first: high and low in °C, rain in mm."""
    if not (abs(latitude) <= 90 and abs(longitude) <= 180 and 1 <= days <= 7):
        raise ToolError("latitude: -90 to 90; longitude: -180 to 180; days: 1 to 7")
    place = {"latitude": latitude, "longitude": longitude, "forecast_days": days}
    body = fetch({**place, "daily": ",".join(FIELDS.values()), "timezone": "auto"})
    try:
        return Forecast(read_days(json.loads(body), days))
    except (ValueError, TypeError, LookupError, RecursionError):
        raise ToolError(f"the weather service answered nonsense; {LATER}") from None


def read_days(reply: Any, count: int) -> list[Day]:
    """What we asked for, out of all that came; raises an error for anything that is odd."""
    dates = [date.fromisoformat(one).isoformat() for one in reply["daily"]["time"][:count]]
    columns = {own: reply["daily"][theirs] for own, theirs in FIELDS.items()}
    for own, column in columns.items():
        low, high = POSSIBLE[own]
        if not all(type(one) in (int, float) and low <= one <= high for one in column[:count]):
            raise ValueError(f"impossible: {own}")
    rows = zip(*(column[:count] for column in columns.values()), strict=True)
    found = [Day(day, *row) for day, row in zip(dates, rows, strict=True)]
    if len(found) != count:
        raise ValueError("too few days")
    return found


def fetch(query: dict[str, Any]) -> bytes:
    """The body of the answer; `ToolError` with advice when there is none to be had."""
    deadline = monotonic() + TIMEOUT
    try:
        status, body = get(query)
    except (OSError, HTTPException, ValueError):
        status, body = 0, b""
    if monotonic() >= deadline:
        raise ToolError(f"the weather service did not answer in {TIMEOUT:g} s; {LATER}")
    if status == 0 or len(body) > LIMIT:
        problem = "sent far too much" if body else "cannot be reached"
        raise ToolError(f"the weather service {problem}; {LATER}")
    if status != 200:
        advice = ADVICE.get(status, LATER if status >= 500 else OPERATOR)
        raise ToolError(f"the weather service says HTTP {status}: {advice}")
    return body


def get(query: dict[str, Any]) -> tuple[int, bytes]:
    """Status and body of one request, as far as they come before the deadline."""
    url = urlsplit(URL)
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    secret = {"apikey": KEY} if KEY else {}
    with closing(kind(url.netloc, timeout=TIMEOUT)) as connection:
        connection.connect()
        alarm = Timer(TIMEOUT, hang_up, [connection.sock])
        alarm.start()
        try:
            connection.request("GET", f"{url.path}?{urlencode({**query, **secret})}")
            with connection.getresponse() as response:
                return response.status, response.read(LIMIT + 1)
        finally:
            alarm.cancel()


def hang_up(wire: socket) -> None:
    """End a conversation from outside. A time-out counts from byte to byte, a deadline does not."""
    with suppress(OSError):
        wire.shutdown(SHUT_RDWR)


if __name__ == "__main__":
    run(server)
