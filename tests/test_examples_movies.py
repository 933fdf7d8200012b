"""examples/movies.py: refusals that a model can act on, and handles for what outlives a call."""

import json
import re
import threading
from contextlib import suppress
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support_examples import ERAS, command, load, official, reached, result

from minimcp import Client

TOOLS = ["list_shows", "check_age", "book", "show_booking", "cancel"]


@pytest.fixture
def client():
    with Client(load("movies").server) as client:
        client.list_tools()  # so that results are held to their output schemas
        yield client


def refused(result):
    """The text of a refusal: an error without a structured value."""
    assert (result.is_error, result.structured) == (True, None)
    return result.text


# What is playing


def test_shows_are_listed_with_rating_price_and_free_seats(client):
    shows = client.call_tool("list_shows").structured
    assert shows["jaws-17:30"] == {
        "title": "Jaws",
        "rating": "12",
        "price_cents": 995,
        "free_seats": 40,
    }
    assert sorted(one["rating"] for one in shows.values()) == ["12", "15", "18", "U"]


# Ages


@pytest.mark.parametrize(
    ("show", "age", "answer"),
    [
        ("general-15:00", 0, "The General is rated U: at 0, welcome."),
        ("jaws-17:30", 12, "Jaws is rated 12: at 12, welcome."),
        ("psycho-20:00", 15, "Psycho is rated 15: at 15, welcome."),
        ("exorcist-22:30", 18, "The Exorcist is rated 18: at 18, welcome."),
    ],
)
def test_whoever_is_just_old_enough_is_welcome(client, show, age, answer):
    result = client.call_tool("check_age", {"show": show, "age": age})
    assert (result.text, result.is_error) == (answer, False)


@pytest.mark.parametrize(
    ("show", "age", "open_to"),
    [
        ("jaws-17:30", 11, "general-15:00"),
        ("psycho-20:00", 14, "general-15:00, jaws-17:30"),
        ("exorcist-22:30", 17, "general-15:00, jaws-17:30, psycho-20:00"),
    ],
)
def test_whoever_is_a_year_too_young_is_told_what_they_may_see(client, show, age, open_to):
    text = refused(client.call_tool("check_age", {"show": show, "age": age}))
    assert text.endswith(f"and {age} is too young; everybody may see {open_to}")


@pytest.mark.parametrize("age", [-1, 131, 10**30])
def test_an_impossible_age_is_refused_with_the_range(client, age):
    text = refused(client.call_tool("check_age", {"show": "jaws-17:30", "age": age}))
    assert text == "ages: give one age from 0 to 130 for each person, such as [41, 9]"


def test_an_unknown_show_is_refused_with_those_there_are(client):
    for name, arguments in [("check_age", {"age": 40}), ("book", {"ages": [40]})]:
        text = refused(client.call_tool(name, {"show": "jaws", **arguments}))
        assert text == (
            "there is no show 'jaws'; "
            "there are general-15:00, jaws-17:30, psycho-20:00, exorcist-22:30"
        )


# Booking


def test_a_booking_returns_a_handle_that_later_calls_bring_back(client):
    booked = client.call_tool("book", {"show": "jaws-17:30", "ages": [41, 13, 13]}).structured
    handle = booked["booking"]
    whole = {"booking": handle, "show": "jaws-17:30", "ages": [41, 13, 13], "total_cents": 1991}
    assert booked == whole  # 9.95 + 4.98 + 4.98: half a cent is rounded up for each child
    assert re.fullmatch("[0-9a-f]{16}", handle)
    assert client.call_tool("show_booking", {"booking": handle}).structured == whole


def test_a_handle_outlives_the_connection_that_made_it():
    server = load("movies").server
    with Client(server) as one:
        booked = one.call_tool("book", {"show": "jaws-17:30", "ages": [41]}).structured
    with Client(server, era="legacy") as other:
        assert other.call_tool("show_booking", {"booking": booked["booking"]}).structured == booked


def test_a_handle_that_was_guessed_is_refused(client):
    client.call_tool("book", {"show": "jaws-17:30", "ages": [41]})
    for name in ("show_booking", "cancel"):
        text = refused(client.call_tool(name, {"booking": "1"}))
        assert text == "there is no booking '1'; use the handle that book returned"


def test_handles_never_repeat(client):
    calls = [client.call_tool("book", {"show": "general-15:00", "ages": [41]}) for _ in range(60)]
    assert len({call.structured["booking"] for call in calls}) == 60


@settings(deadline=None)  # the machine may be busy
@given(ages=st.lists(st.integers(0, 130), min_size=1, max_size=60))
def test_the_total_is_right_to_the_cent(ages):
    movies = load("movies")
    with Client(movies.server) as client:
        booked = client.call_tool("book", {"show": "general-15:00", "ages": ages}).structured
    half = (Decimal("6.50") / 2).quantize(Decimal("0.01"), ROUND_HALF_UP)
    total = sum(half if age < 14 else Decimal("6.50") for age in ages)
    assert Decimal(booked["total_cents"]) / 100 == total


def test_a_child_pays_half_rounded_up_to_a_whole_cent():
    movies = load("movies")
    for show in movies.SHOWS.values():
        exact = Decimal(show.price_cents) / 2
        assert movies.price(show, 13) == exact.quantize(Decimal(1), ROUND_HALF_UP)
        assert movies.price(show, 14) == show.price_cents


def test_one_person_who_is_too_young_keeps_the_whole_party_out(client):
    text = refused(client.call_tool("book", {"show": "psycho-20:00", "ages": [41, 9]}))
    assert text == "Psycho is rated 15, and 9 is too young; everybody may see general-15:00"
    assert client.call_tool("list_shows").structured["psycho-20:00"]["free_seats"] == 2


def test_a_sold_out_show_is_refused_with_shows_that_have_room(client):
    text = refused(client.call_tool("book", {"show": "psycho-20:00", "ages": [41, 42, 43]}))
    room = "there is room in general-15:00, jaws-17:30, exorcist-22:30"
    assert text == f"psycho-20:00: free seats: 2, wanted: 3; {room}"
    text = refused(client.call_tool("book", {"show": "jaws-17:30", "ages": [41] * 61}))
    assert text == "jaws-17:30: free seats: 40, wanted: 61; there is room in no other show"


def test_nobody_is_no_party(client):
    text = refused(client.call_tool("book", {"show": "jaws-17:30", "ages": []}))
    assert text == "ages: give one age from 0 to 130 for each person, such as [41, 9]"


def test_an_age_that_is_no_integer_is_named_with_its_place(client):
    for age, got in [(True, "boolean"), ("9", 'string "9"'), (9.5, "number 9.5")]:
        text = refused(client.call_tool("book", {"show": "jaws-17:30", "ages": [41, age]}))
        problem = f"arguments.ages[1]: expected integer, got {got}"
        assert text.splitlines()[1].startswith(problem)


def test_the_last_seats_are_sold_once_to_callers_who_come_at_the_same_time():
    movies = load("movies")
    meeting = threading.Barrier(2)

    class Meeting(movies.Show):
        """A show at which whoever looks for seats waits a moment for somebody else to look too."""

        def __getattribute__(self, name):
            value = super().__getattribute__(name)
            if name == "free_seats":
                with suppress(threading.BrokenBarrierError):
                    meeting.wait(0.2)
            return value

    movies.SHOWS["psycho-20:00"] = Meeting("Psycho", "15", 1095, 2)
    answers = []

    def buy():
        answers.append(client.call_tool("book", {"show": "psycho-20:00", "ages": [41, 42]}))

    with Client(movies.server) as client:
        threads = [threading.Thread(target=buy) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert sorted(answer.is_error for answer in answers) == [False, True]
    assert [len(booking.ages) for booking in movies.BOOKINGS.values()] == [2]


def test_cancelling_gives_the_seats_back_once(client):
    booked = client.call_tool("book", {"show": "psycho-20:00", "ages": [41, 42]}).structured
    handle = {"booking": booked["booking"]}
    assert client.call_tool("cancel", handle).text == "cancelled; 21.90 euros will be returned"
    assert refused(client.call_tool("cancel", handle)).startswith("there is no booking")
    assert client.call_tool("list_shows").structured["psycho-20:00"]["free_seats"] == 2


# Over both transports, with the official client


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("asked", ERAS)
def test_the_official_client_books_and_is_refused(asked, transport):
    calls = [
        ["check_age", {"show": "psycho-20:00", "age": 14}],
        ["check_age", {"show": "psycho-20:00", "age": 15}],
        ["show_booking", {"booking": "1"}],
        ["list_shows", {}],
        ["book", {"show": "jaws-17:30", "ages": [41, 13]}],
    ]
    with reached(command("movies"), transport) as target:
        report = official(asked, calls, target)
    *refusals, shows, booked = report.pop("results")
    assert report == {"protocol_version": ERAS[asked], "tools": TOOLS}
    too_young = "Psycho is rated 15, and 14 is too young; everybody may see"
    assert refusals == [
        result(f"{too_young} general-15:00, jaws-17:30", is_error=True),
        result("Psycho is rated 15: at 15, welcome."),
        result("there is no booking '1'; use the handle that book returned", is_error=True),
    ]
    assert json.loads(shows["text"]) == shows["structured"]
    assert booked["structured"]["total_cents"] == 995 + 498


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_our_client_books_over_both_transports(transport):
    with reached(command("movies"), transport) as target, Client(target) as client:
        assert [tool["name"] for tool in client.list_tools()] == TOOLS
        booked = client.call_tool("book", {"show": "jaws-17:30", "ages": [41]})
        assert (booked.is_error, booked.structured["total_cents"]) == (False, 995)
