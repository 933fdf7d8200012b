"""LOG, as far as a tool and its context go: only what was asked for, only if it was declared."""

import json

import pytest
from support import assert_error, exchange, initialize, legacy, modern

from minimcp import Context, Server
from minimcp.context import Peer

LEVEL = "io.modelcontextprotocol/logLevel"
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


def talkative(declared=True):
    server = Server("demo", version="1.0.0")

    @server.tool
    def talk(context: Context) -> str:
        for level in LEVELS:
            context.log(level, {"said": level})
        return "done"

    if declared:

        @server.method("logging/setLevel", capability="logging", era="legacy")
        def set_level(params, context):
            context.peer.log_level = params["level"]

    return server


def heard(server, level=None):
    """The params of the log messages of one modern call."""
    lines = []
    meta = {} if level is None else {LEVEL: level}
    reply = exchange(server, modern("tools/call", {"name": "talk"}, meta=meta), Peer(lines.append))
    assert reply["result"]["content"] == [{"type": "text", "text": "done"}]
    notes = [json.loads(line) for line in lines]
    assert {note["method"] for note in notes} <= {"notifications/message"}
    return [note["params"] for note in notes]


@pytest.mark.req("S-LOG-01")
def test_nothing_is_logged_to_a_client_that_did_not_ask():
    assert heard(talkative()) == []


@pytest.mark.req("S-LOG-02", "S-LOG-06")
@pytest.mark.parametrize("level", LEVELS)
def test_messages_at_or_above_the_level_are_sent(level):
    expected = [{"level": one, "data": {"said": one}} for one in LEVELS[LEVELS.index(level) :]]
    assert heard(talkative(), level) == expected


@pytest.mark.req("S-LOG-02")
def test_the_level_of_one_request_is_not_that_of_the_next():
    server = talkative()
    assert len(heard(server, "error")) == 4
    assert heard(server) == []


@pytest.mark.req("S-LOG-02")
def test_a_message_after_the_answer_goes_nowhere():
    server, lines, contexts = talkative(), [], []

    @server.tool
    def keep(context: Context) -> str:
        contexts.append(context)
        context.log("error", "in time")
        return "done"

    peer = Peer(lines.append)
    exchange(server, initialize(), peer)
    exchange(server, modern("tools/call", {"name": "keep"}, meta={LEVEL: "debug"}), peer)
    exchange(server, legacy("tools/call", {"name": "keep"}), peer)
    for context in contexts:
        context.log("error", "late")
    assert [json.loads(line)["params"]["data"] for line in lines] == ["in time"] * 2


@pytest.mark.req("S-LOG-06")
@pytest.mark.parametrize("data", [None, "text", 0, [1, {"a": None}]])
def test_a_message_is_any_json_and_may_name_its_logger(data):
    server, lines = talkative(), []

    @server.tool
    def say(context: Context) -> str:
        context.log("info", data, "db")
        return "done"

    call = modern("tools/call", {"name": "say"}, meta={LEVEL: "debug"})
    exchange(server, call, Peer(lines.append))
    params = {"level": "info", "logger": "db", "data": data}
    expected = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
    assert [json.loads(line) for line in lines] == [expected]


@pytest.mark.req("S-LOG-04", "S-ERR-05")
@pytest.mark.parametrize("level", ["loud", "", "INFO", 5, None, [], {}, True])
def test_an_unknown_level_is_refused_by_name(level):
    reply = exchange(talkative(), modern("tools/call", {"name": "talk"}, meta={LEVEL: level}))
    assert_error(reply, -32602, "level")


@pytest.mark.req("S-LOG-05")
def test_a_server_that_does_not_declare_logging_does_not_log():
    server = talkative(declared=False)
    assert "logging" not in exchange(server, modern("server/discover"))["result"]["capabilities"]
    assert heard(server, "debug") == []
    declared = exchange(talkative(), modern("server/discover"))["result"]["capabilities"]
    assert declared["logging"] == {}
    assert exchange(talkative(), initialize())["result"]["capabilities"]["logging"] == {}


@pytest.mark.req("S-LOG-08", "S-RES-09")
def test_a_legacy_client_sets_the_level_once_for_all():
    server, lines = talkative(), []
    peer = Peer(lines.append)
    exchange(server, initialize(), peer)
    call = legacy("tools/call", {"name": "talk"})
    exchange(server, call, peer)  # before that, the server chooses
    lines.clear()
    assert exchange(server, legacy("logging/setLevel", {"level": "alert"}), peer)["result"] == {}
    exchange(server, call, peer)
    assert [json.loads(line)["params"]["level"] for line in lines] == ["alert", "emergency"]


@pytest.mark.parametrize("declared", [True, False])
def test_a_level_that_does_not_exist_is_a_mistake_whether_anybody_listens_or_not(declared):
    server = talkative(declared)

    @server.tool
    def wrong(context: Context) -> str:
        context.log("warn", "x")
        return "never"

    reply = exchange(server, modern("tools/call", {"name": "wrong"}))
    assert reply["result"]["isError"] is True
    assert "'warn': one of debug, info, notice, warning" in reply["result"]["content"][0]["text"]
