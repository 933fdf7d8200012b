"""site/connect.md: every snippet has the form that its host reads, and the command in it runs.

The snippets speak of a clone in /home/you/minimcp or in C:\\Users\\you\\minimcp. To run a command,
that folder is replaced by this one, and the Python in it by ours.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath, PureWindowsPath

import node_tools
import pytest
from support_docs import blocks, problems
from support_examples import ERAS, ROOT, command, official, reached

from minimcp import Client

PAGE = ROOT / "site" / "connect.md"
TEXT = PAGE.read_text(encoding="utf-8")
POSIX, WINDOWS = PurePosixPath("/home/you/minimcp"), PureWindowsPath(r"C:\Users\you\minimcp")
TOOLS = {
    "movies": ["list_shows", "check_age", "book", "show_booking", "cancel"],
    "git": ["status", "log", "show", "diff"],
    "weather": ["forecast"],
    "files": ["list_folder", "read_file"],
}


def sections():
    """The page by its second headings, each with its blocks."""
    parts = re.split(r"^## (.+)\n", TEXT, flags=re.M)
    return dict(zip(parts[1::2], map(blocks, parts[2::2]), strict=True))


def snippets(section):
    return [json.loads(block.body) for block in sections()[section] if block.language == "json"]


# The form


def here(**more):
    """How the server is started from a clone on a POSIX system."""
    return {**more, "command": f"{POSIX}/.venv/bin/python", "args": [f"{POSIX}/examples/movies.py"]}


def windows(**more):
    return {
        **more,
        "command": str(WINDOWS / ".venv" / "Scripts" / "python.exe"),
        "args": [str(WINDOWS / "examples" / "movies.py")],
    }


URL = "http://127.0.0.1:3000/mcp"
FOLDER = "${workspaceFolder}"
IN_WORKSPACE = {
    "type": "stdio",
    "command": f"{FOLDER}/.venv/bin/python",
    "args": [f"{FOLDER}/examples/git.py", "--repo", FOLDER],
}
FORMS = {  # which word is on top, and what stands below the name of the server
    "Claude Desktop": [("mcpServers", here()), ("mcpServers", windows())],
    "Claude Code": [("mcpServers", here(type="stdio")), ("mcpServers", windows(type="stdio"))],
    "VS Code": [
        ("servers", here(type="stdio")),
        ("servers", windows(type="stdio")),
        ("servers", IN_WORKSPACE),
    ],
    "Cursor": [("mcpServers", here()), ("mcpServers", windows())],
    "JetBrains": [("mcpServers", here()), ("mcpServers", windows())],
    "Visual Studio": [("servers", windows(type="stdio"))],
    "Over HTTP": [
        ("servers", {"type": "http", "url": URL}),
        ("mcpServers", {"url": URL}),
        ("mcpServers", {"type": "http", "url": URL}),
    ],
}


@pytest.mark.parametrize("host", FORMS)
def test_each_host_gets_the_word_and_the_members_that_it_reads(host):
    expected = [
        {top: {"git" if one is IN_WORKSPACE else "movies": one}} for top, one in FORMS[host]
    ]
    assert snippets(host) == expected


def test_every_snippet_is_in_a_section_that_is_checked():
    unchecked = "Secrets, arguments, folders"
    assert {name for name in sections() if snippets(name)} == {*FORMS, unchecked}


def test_a_key_stands_in_the_environment_and_is_asked_for_where_that_is_possible():
    plain, asked = snippets("Secrets, arguments, folders")
    assert plain["mcpServers"]["weather"]["env"] == {"WEATHER_KEY": "your key"}
    [prompt] = asked["inputs"]
    assert (prompt["type"], prompt["password"]) == ("promptString", True)
    assert asked["servers"]["weather"]["env"] == {"WEATHER_KEY": f"${{input:{prompt['id']}}}"}


# The commands


def local(word):
    """A word of a snippet as it would be if this clone were the one on the page."""
    word = word.replace(FOLDER, str(POSIX))
    if word.startswith(str(WINDOWS)):
        word = str(POSIX / PureWindowsPath(word).relative_to(WINDOWS).as_posix())
    if word in (f"{POSIX}/.venv/bin/python", f"{POSIX}/.venv/Scripts/python.exe"):
        return sys.executable
    return word.replace(str(POSIX), str(ROOT))


def servers():
    """Every server in a snippet, once: its name and its entry."""
    found = {}
    for name in sections():
        for snippet in snippets(name):
            for server, entry in (snippet.get("mcpServers") or snippet["servers"]).items():
                found[json.dumps([server, entry])] = (server, entry)
    return list(found.values())


@pytest.mark.parametrize(
    ("name", "entry"),
    [one for one in servers() if "command" in one[1]],
    ids=lambda one: str(one)[:60],
)
def test_the_command_of_a_snippet_runs_and_the_official_client_finds_its_tools(
    name, entry, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # a host has a working directory of its own
    target = [local(entry["command"]), *map(local, entry["args"])]
    assert all(Path(word).exists() for word in target if word.startswith("/"))
    report = official("legacy", [], target)
    assert report == {"protocol_version": ERAS["legacy"], "tools": TOOLS[name], "results": []}


@pytest.mark.parametrize("asked", ERAS)
def test_the_address_of_a_snippet_is_the_one_that_the_server_listens_at(asked):
    [(_, start)] = [words for words in shown("Over HTTP") if "--http" in words[1]]
    assert start[-2:] == ["--http", "3000"]
    assert {entry["url"] for _, entry in servers() if "url" in entry} == {URL}
    with reached(list(map(local, start[:-2])), "http") as target:
        assert re.sub(r":\d+/", ":3000/", target) == URL
        report = official(asked, [], target)
    assert report == {"protocol_version": ERAS[asked], "tools": TOOLS["movies"], "results": []}


def shown(section):
    """The commands of a section that the page itself does not run: why not, and the words."""
    return [
        (block.why, shlex.split(block.body.replace("\\\n", " "))[1:])
        for block in sections()[section]
        if block.why
    ]


def test_every_command_that_the_page_does_not_run_is_run_here():
    """By the tests above and below; this one notices when one more is written."""
    words = [words for name in sections() for _, words in shown(name)]
    assert [" ".join(one).split(str(POSIX))[0] for one in words] == [
        "claude mcp add movies -- ",
        "npx @modelcontextprotocol/inspector ",
        "npx @modelcontextprotocol/inspector --cli --method tools/list -- ",
        "npx @modelcontextprotocol/inspector --cli --config .mcp.json --server movies"
        " --method tools/list",
        "",
        f"claude mcp add --transport http movies {URL}",
    ]


def test_what_claude_code_is_told_is_the_command_of_the_snippets():
    [(_, words)] = shown("Claude Code")
    command = words[words.index("--") + 1 :]
    assert command == [here()["command"], *here()["args"]]


def test_what_the_inspector_is_told_is_the_command_of_the_snippets():
    for words in (words for _, words in shown("The Inspector") if "--config" not in words):
        assert words[-2:] == [here()["command"], *here()["args"]]


@pytest.mark.parametrize("number", [1, 2])
def test_the_inspector_lists_the_tools_with_the_words_of_the_page(number, tmp_path):
    node_tools.ready()
    [desktop, _] = snippets("Claude Code")
    [entry] = desktop["mcpServers"].values()
    entry["command"], entry["args"] = local(entry["command"]), [local(one) for one in entry["args"]]
    (tmp_path / ".mcp.json").write_text(json.dumps(desktop))
    npx, package, *words = shown("The Inspector")[number][1]
    assert npx == "npx"
    with tempfile.TemporaryDirectory() as home:  # it keeps a catalog of servers there
        done = subprocess.run(
            node_tools.command(package, *map(local, words)),
            cwd=tmp_path,
            env=node_tools.environment(HOME=home),
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    assert [tool["name"] for tool in json.loads(done.stdout)["tools"]] == TOOLS["movies"]


# The rest of the page


def test_what_the_page_runs_itself_comes_out_as_it_says():
    assert problems(TEXT, "site/connect.md") == []


def test_the_log_that_the_page_recommends_is_written(tmp_path):
    log = tmp_path / "movies.log"
    with Client(command("movies", "--log", log)) as client:
        client.list_tools()
    assert "tools/list" in log.read_text(encoding="utf-8")


def test_links_to_elsewhere_are_few_and_plain():
    links = re.findall(r"\]\((https:[^)]*)\)", TEXT)
    assert len(links) == len(set(links)) == 7
