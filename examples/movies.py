"""Movies: see what is playing, check an age, book tickets.

    python examples/movies.py                 over stdio
    python examples/movies.py --http 3000     over Streamable HTTP

The lesson: *a refusal is an answer*. Too young, sold out, no such show: the tool raises
`ToolError`, the model reads why and what it can do instead, and tries again or tells its user.
And state that outlives a call gets a *handle*: `book` returns one, later calls bring it back.
No session is needed, and a handle that nobody can guess is also the permission to use it.
"""

import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Annotated, Literal

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp import Server, ToolError, run

server = Server("movies", version="1.0.0", instructions="One cinema, one evening, prices in euros.")


@dataclass
class Show:
    """A film at a time; money is counted in whole cents, which cannot go wrong by a fraction."""

    title: str
    rating: Literal["U", "12", "15", "18"]
    price_cents: int
    free_seats: int


SHOWS = {
    "general-15:00": Show("The General", "U", 650, 60),
    "jaws-17:30": Show("Jaws", "12", 995, 40),
    "psycho-20:00": Show("Psycho", "15", 1095, 2),
    "exorcist-22:30": Show("The Exorcist", "18", 1095, 25),
}
YOUNGEST = {"U": 0, "12": 12, "15": 15, "18": 18}
CHILD = 14  # below, half the price
ShowId = Annotated[str, "a show from list_shows, such as 'jaws-17:30'"]
Ages = Annotated[list[int], "the age of each person, such as [41, 9]"]


@dataclass
class Booking:
    """What `book` returns; `booking` is the handle."""

    booking: str
    show: str
    ages: list[int]
    total_cents: int


BOOKINGS: dict[str, Booking] = {}
LOCK = Lock()  # calls run side by side, and two of them may want the last seat


@server.tool(annotations={"readOnlyHint": True})
def list_shows() -> dict[str, Show]:
    """List what is playing tonight: title, rating, price, free seats."""
    return SHOWS


@server.tool(annotations={"readOnlyHint": True})
def check_age(show: ShowId, age: int) -> str:
    """Check whether somebody of this age may see a show."""
    found = find(show)
    admit(found, [age])
    return f"{found.title} is rated {found.rating}: at {age}, welcome."


@server.tool
def book(show: ShowId, ages: Ages) -> Booking:
    """Book one seat for each person. Children under 14 pay half, rounded up to a whole cent."""
    found = find(show)
    admit(found, ages)
    total = sum(price(found, age) for age in ages)
    with LOCK:
        if len(ages) > found.free_seats:
            roomy = [key for key, one in SHOWS.items() if one.free_seats >= len(ages)]
            text = f"{show}: free seats: {found.free_seats}, wanted: {len(ages)}"
            raise ToolError(f"{text}; there is room in {', '.join(roomy) or 'no other show'}")
        found.free_seats -= len(ages)
        booking = Booking(secrets.token_hex(8), show, ages, total)
        BOOKINGS[booking.booking] = booking
    return booking


@server.tool(annotations={"readOnlyHint": True})
def show_booking(booking: str) -> Booking:
    """Show a booking again, by the handle that book returned."""
    if booking not in BOOKINGS:
        raise ToolError(f"there is no booking {booking!r}; use the handle that book returned")
    return BOOKINGS[booking]


@server.tool(annotations={"destructiveHint": True})
def cancel(booking: str) -> str:
    """Cancel a booking and give its seats back."""
    with LOCK:
        old = show_booking(booking)
        del BOOKINGS[booking]
        SHOWS[old.show].free_seats += len(old.ages)
    return f"cancelled; {old.total_cents / 100:.2f} euros will be returned"


# ## The rules of the house


def find(show: str) -> Show:
    """The show of this name, or a refusal that lists those there are."""
    if show not in SHOWS:
        raise ToolError(f"there is no show {show!r}; there are {', '.join(SHOWS)}")
    return SHOWS[show]


def admit(show: Show, ages: list[int]) -> None:
    """Refuse who is too young, and say what they can see instead."""
    if not ages or not all(0 <= age <= 130 for age in ages):
        raise ToolError("ages: give one age from 0 to 130 for each person, such as [41, 9]")
    if min(ages) < YOUNGEST[show.rating]:
        open_to = [key for key, one in SHOWS.items() if YOUNGEST[one.rating] <= min(ages)]
        reason = f"{show.title} is rated {show.rating}, and {min(ages)} is too young"
        raise ToolError(f"{reason}; everybody may see {', '.join(open_to)}")


def price(show: Show, age: int) -> int:
    """Cents for one person."""
    return (show.price_cents + 1) // 2 if age < CHILD else show.price_cents


if __name__ == "__main__":
    run(server)
