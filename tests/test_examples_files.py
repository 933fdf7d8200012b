"""examples/files.py: what is not below the root is refused, whatever leads to it."""

import base64
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from itertools import cycle

import pytest
from support import exchange, initialize, legacy, modern
from support_examples import ERAS, command, load, official, peer, reached, result

from minimcp import Client, ProtocolError

TOOLS = ["list_folder", "read_file"]
SECRET = "the secret"


@pytest.fixture
def around(tmp_path):
    """A root with a few files; around it, what nobody may see."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("ä\n", encoding="utf-8")
    (root / "sub" / "b.txt").write_text("b\n")
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "root-too").mkdir()  # its name begins like the root's
    (tmp_path / "root-too" / "secret.txt").write_text(SECRET)
    return tmp_path


@pytest.fixture
def root(around):
    return around / "root"


@pytest.fixture
def client(root):
    with Client(load("files").make_server(str(root))) as client:
        client.list_tools()  # so that results are held to their output schemas
        yield client


def no(path):
    return f"below the root there is no {path[:200]!r}; use list_folder"


def refused(result):
    assert (result.is_error, result.structured) == (True, None)
    return result.text


def read(client, path, offset=0):
    return client.call_tool("read_file", {"path": path, "offset": offset})


# What it shows


def test_a_folder_is_listed_and_only_names_of_folders_end_in_a_slash(client, around, root):
    (root / "link").symlink_to("a.txt")
    (root / "out").symlink_to(around)  # a folder or not: what is elsewhere is not told
    os.mkfifo(root / "pipe")
    assert client.call_tool("list_folder").structured == {
        "entries": ["a.txt", "link", "out", "pipe", "sub/"],
        "truncated": False,
    }


@pytest.mark.parametrize("path", ["sub", "sub/", "./sub/.", "sub/../sub", "nowhere/../sub/"])
def test_a_folder_below_is_listed_however_the_way_is_written(client, root, path):
    if path.startswith("nowhere"):
        assert refused(client.call_tool("list_folder", {"path": path})) == no(path)
    else:
        listing = client.call_tool("list_folder", {"path": path}).structured
        assert listing == {"entries": ["b.txt"], "truncated": False}


def test_a_text_is_read_with_its_size(client):
    assert read(client, "a.txt").structured == {"text": "ä\n", "size": 3, "next_offset": None}
    assert read(client, "sub/b.txt").structured == {"text": "b\n", "size": 2, "next_offset": None}


def test_a_link_that_stays_below_the_root_is_followed(client, root):
    (root / "file").symlink_to("sub/b.txt")
    (root / "folder").symlink_to("sub")
    (root / "absolute").symlink_to(root / "a.txt")
    assert read(client, "file").structured["text"] == "b\n"
    assert read(client, "folder/b.txt").structured["text"] == "b\n"
    assert read(client, "absolute").structured["text"] == "ä\n"


def test_an_absolute_path_that_leads_below_the_root_is_fine(client, root):
    assert read(client, str(root / "a.txt")).structured["text"] == "ä\n"


def test_a_root_that_is_a_link_itself_is_resolved_once(around, root):
    (around / "entrance").symlink_to("root")
    with Client(load("files").make_server(str(around / "entrance"))) as client:
        (around / "entrance").unlink()
        (around / "entrance").symlink_to("root-too")
        assert read(client, "a.txt").structured["text"] == "ä\n"
        assert refused(read(client, "secret.txt")) == no("secret.txt")


# What it refuses: what is elsewhere

ELSEWHERE = [
    *("..", "../", "../secret.txt", "sub/../../secret.txt", "../root-too/secret.txt"),
    *(
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/environ",
        "/dev/null",
        "./../base/../secret.txt",
    ),
    *("~", "~root", "$HOME", "file:///etc/passwd", "..\\secret.txt", "%2e%2e/secret.txt"),
    *("", "nowhere", "nowhere/../../secret.txt", "a.txt/../../secret.txt", "a.txt\0"),
    *("x" * 300, "x/" * 3000, "\n", "*", "a.tx?", "sub"),
]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_a_path_to_elsewhere_is_refused_in_the_same_words_as_one_to_nowhere(client, path):
    assert refused(read(client, path)) == no(path)


@pytest.mark.parametrize("path", ["..", "/", "/etc", "../root-too", "nowhere", "a.txt", "~", "\0"])
def test_a_folder_elsewhere_is_refused_in_the_same_words_as_one_that_is_none(client, path):
    assert refused(client.call_tool("list_folder", {"path": path})) == no(path)


@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
def test_a_link_that_leads_elsewhere_is_refused(client, around, root, absolute):
    outside = around if absolute else ".."
    (root / "file").symlink_to(f"{outside}/secret.txt")
    (root / "folder").symlink_to(f"{outside}/root-too")
    (root / "chain").symlink_to("file")
    (root / "sub" / "up").symlink_to("../folder")
    (root / "nowhere").symlink_to("/nowhere")
    (root / "loop").symlink_to("loop")
    for path in ("file", "folder/secret.txt", "chain", "sub/up/secret.txt", "nowhere", "loop"):
        assert refused(read(client, path)) == no(path)
    for path in ("folder", "sub/up", "loop"):
        assert refused(client.call_tool("list_folder", {"path": path})) == no(path)


def swap(link, target):
    """Point a link elsewhere in one step, so that it is never missing."""
    new = link.with_name(link.name + "-new")
    new.symlink_to(target)
    os.replace(new, link)


def naive(root, path):
    """How not to do it: what was compared is not what is opened."""
    way = os.path.join(root, path)
    if not os.path.realpath(way).startswith(f"{root}{os.sep}"):
        raise PermissionError(path)
    with open(way) as file:
        return file.read()


@pytest.fixture
def race(monkeypatch):
    """`race(change)`: makes the change when a path has been resolved, before it is opened."""
    resolve = os.path.realpath

    def arm(change):
        def realpath(path, **options):
            found = resolve(path, **options)
            if not changed:
                changed.append(True)
                change()
            return found

        changed = []
        monkeypatch.setattr(os.path, "realpath", realpath)

    return arm


def test_the_race_that_is_run_below_is_lost_by_the_naive_way(around, root, race):
    (root / "way").symlink_to("sub")
    (around / "root-too" / "b.txt").write_text(SECRET)
    race(lambda: swap(root / "way", around / "root-too"))
    assert naive(str(root), "way/b.txt") == SECRET


def test_a_link_that_moves_after_it_was_resolved_changes_nothing(client, around, root, race):
    (root / "way").symlink_to("sub")
    (around / "root-too" / "b.txt").write_text(SECRET)
    race(lambda: swap(root / "way", around / "root-too"))
    assert read(client, "way/b.txt").structured["text"] == "b\n"  # what was resolved
    assert refused(read(client, "way/b.txt")) == no("way/b.txt")


def test_a_folder_that_becomes_a_link_after_it_was_resolved_is_refused(client, around, root, race):
    (around / "root-too" / "b.txt").write_text(SECRET)

    def change():
        (root / "sub").rename(root / "old")
        (root / "sub").symlink_to(around / "root-too")

    race(change)
    assert refused(read(client, "sub/b.txt")) == no("sub/b.txt")


def test_a_file_that_becomes_a_link_after_it_was_resolved_is_refused(client, around, root, race):
    race(lambda: swap(root / "a.txt", around / "secret.txt"))
    assert refused(read(client, "a.txt")) == no("a.txt")


def test_a_folder_to_list_that_becomes_a_link_is_refused(client, around, root, race):
    def change():
        (root / "sub").rename(root / "old")
        (root / "sub").symlink_to(around / "root-too")

    race(change)
    assert refused(client.call_tool("list_folder", {"path": "sub"})) == no("sub")


@pytest.fixture
def late_race(monkeypatch):
    """`late_race(name, change)`: makes the change after the last look at a file of that name."""
    look = os.stat

    def arm(name, change):
        def look_and_change(path, **options):
            found = look(path, **options)
            if os.path.basename(path) == name:
                change()
            return found

        monkeypatch.setattr(os, "stat", look_and_change)

    return arm


def test_a_file_that_becomes_a_link_after_the_last_look_is_refused(client, around, root, late_race):
    late_race("a.txt", lambda: swap(root / "a.txt", around / "secret.txt"))
    assert refused(read(client, "a.txt")) == no("a.txt")


def test_a_folder_that_becomes_a_link_after_the_last_look_is_refused(
    client, around, root, late_race
):
    (around / "root-too" / "b.txt").write_text(SECRET)

    def change():
        (root / "sub").rename(root / "old")
        (root / "sub").symlink_to(around / "root-too")

    late_race("b.txt", change)
    assert refused(read(client, "sub/b.txt")) == no("sub/b.txt")


def test_a_file_that_becomes_a_fifo_after_the_last_look_holds_nobody_up(client, root, late_race):
    def change():
        (root / "a.txt").unlink()
        os.mkfifo(root / "a.txt")

    late_race("a.txt", change)
    assert refused(read(client, "a.txt")) == no("a.txt")


def test_a_root_that_becomes_a_link_after_a_path_was_resolved_stays_the_root(
    client, around, root, race
):
    (around / "root-too" / "a.txt").write_text(SECRET)

    def change():
        root.rename(around / "moved")
        root.symlink_to(around / "root-too")

    race(change)
    assert read(client, "a.txt").structured["text"] == "ä\n"


def test_two_who_list_the_root_at_once_do_not_share_a_place_in_it(root):
    files = load("files")
    below = files.Root(str(root))
    with below.open(".", stat.S_ISDIR) as one, below.open(".", stat.S_ISDIR) as other:
        started = os.scandir(one)
        next(started)
        assert sorted(os.listdir(other)) == ["a.txt", "sub"]
        started.close()


def test_a_root_that_is_moved_away_and_replaced_by_a_link_stays_the_root(client, around, root):
    root.rename(around / "moved")
    root.symlink_to(around / "root-too")
    assert refused(read(client, "secret.txt")) == no("secret.txt")


def test_a_thousand_reads_while_links_are_swapped_never_show_the_secret(client, around, root):
    (around / "root-too" / "b.txt").write_text(SECRET)
    (root / "way").symlink_to("sub")
    done = threading.Event()

    def attack():
        for target in cycle([around / "root-too", "sub"]):
            if done.is_set():
                return
            swap(root / "way", target)

    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        answers = [read(client, "way/b.txt") for _ in range(1000)]
    finally:
        done.set()
        attacker.join(20)
    seen = {answer.text if answer.is_error else answer.structured["text"] for answer in answers}
    assert seen == {"b\n", no("way/b.txt")}  # both sides of the swap were met


# What it refuses: what is no regular file


def test_a_fifo_is_refused_and_nobody_waits_for_it(client, root):
    os.mkfifo(root / "pipe")
    assert refused(read(client, "pipe")) == no("pipe")
    assert refused(client.call_tool("list_folder", {"path": "pipe"})) == no("pipe")


def test_a_socket_is_refused(client, root, monkeypatch):
    monkeypatch.chdir(root)  # its whole path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert refused(read(client, "socket")) == no("socket")


@pytest.mark.parametrize("device", ["null", "zero", "random", "tty"])
def test_a_device_is_refused_unopened(device, monkeypatch):
    files, opened = load("files"), []
    open_it = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest, **more: opened.append(path) or open_it(path, *rest, **more)
    )
    with Client(files.make_server("/dev")) as client:
        assert refused(read(client, device)) == no(device)
    assert device not in opened


def test_a_file_that_may_not_be_read_is_refused_in_the_same_words(client, monkeypatch):
    open_it = os.open

    def deny(path, *rest, **more):
        if path == "a.txt":
            raise PermissionError(path)
        return open_it(path, *rest, **more)

    monkeypatch.setattr(os, "open", deny)  # root, who may run this, is denied nothing
    assert refused(read(client, "a.txt")) == no("a.txt")


def test_no_descriptor_is_left_open(client, root):
    os.mkfifo(root / "pipe")
    (root / "out").symlink_to("/etc")
    before = len(os.listdir("/proc/self/fd"))
    for path in [*ELSEWHERE, "pipe", "out/passwd", "a.txt", "sub/b.txt"] * 3:
        read(client, path)
        client.call_tool("list_folder", {"path": path})
    assert len(os.listdir("/proc/self/fd")) == before


# Size


def test_a_huge_file_is_read_in_parts(client, root):
    files = sys.modules["example_files"]
    with open(root / "huge", "wb") as file:
        file.write(b"x" * files.CHUNK + b"the next part")
        file.truncate(20_000_000_000)  # 20 GB, nearly all of it a hole
    first = read(client, "huge").structured
    assert first == {"text": "x" * files.CHUNK, "size": 20_000_000_000, "next_offset": files.CHUNK}
    text = refused(read(client, "huge", first["next_offset"]))
    assert text == "'huge' is no text (20000000000 bytes); read it as a resource"


def test_the_parts_are_the_whole_and_no_character_is_cut_in_two(client, root):
    whole = "x" + "aä☃𝄞" * 40_000  # 1 and 10 bytes, so that each part ends within a character
    (root / "long.txt").write_text(whole, encoding="utf-8")
    parts, offset = [], 0
    while offset is not None:
        part = read(client, "long.txt", offset).structured
        parts.append(part["text"])
        offset = part["next_offset"]
    assert len(parts) == 5
    assert "".join(parts) == whole


def test_a_file_that_ends_with_a_part_has_no_part_after_it(client, root):
    files = sys.modules["example_files"]
    (root / "even.txt").write_bytes(b"x" * files.CHUNK)
    assert read(client, "even.txt").structured["next_offset"] is None
    last = {"text": "", "size": files.CHUNK, "next_offset": None}
    assert read(client, "even.txt", files.CHUNK).structured == last


@pytest.mark.parametrize("offset", [-1, 4, 2**62, 10**30])
def test_an_offset_outside_the_file_is_refused_with_the_range(client, offset):
    assert refused(read(client, "a.txt", offset)) == "offset: from 0 to 3, the size of 'a.txt'"


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0", b"\xff\xfe", b"caf\xe9", b"a\0b", b"cut \xc3"]
)
def test_binary_content_is_no_text_and_comes_as_a_resource(client, root, data):
    (root / "data.bin").write_bytes(data)
    text = f"'data.bin' is no text ({len(data)} bytes); read it as a resource"
    assert refused(read(client, "data.bin")) == text
    [content] = client.request("resources/read", {"uri": "files:///data.bin"})["contents"]
    found = content.get("text", "").encode() or base64.b64decode(content["blob"])
    assert found == data


def test_a_folder_of_more_entries_than_fit_says_so(client, root):
    for number in range(1001):
        (root / "sub" / f"{number:04}").touch()
    listing = client.call_tool("list_folder", {"path": "sub"}).structured
    assert (len(listing["entries"]), listing["truncated"]) == (1000, True)


# Names


@pytest.mark.parametrize(
    "name",
    [
        *("two\nlines", "a\rb", "tab\t", "--help", "-", " ", "ü", "日本", "\u202etxt", "a'b\"c"),
        *("%2e%2e", "a%2Fb", "a?b#c", "a:b", "*", "{path}", "\\", "..."),
    ],
)
def test_any_name_can_be_listed_and_read_back(client, root, name):
    (root / "sub" / "b.txt").unlink()
    (root / "sub" / name).write_text("found\n")
    [entry] = client.call_tool("list_folder", {"path": "sub"}).structured["entries"]
    assert entry == name
    assert read(client, f"sub/{name}").structured["text"] == "found\n"
    _, listed = client.request("resources/list")["resources"]
    assert listed["name"] == f"sub/{name}"
    found = client.request("resources/read", {"uri": listed["uri"]})
    assert found["contents"][0]["text"] == "found\n"


def test_a_name_that_is_no_text_is_shown_escaped_and_can_be_read_as_a_resource(client, root):
    (root / os.fsdecode(b"caf\xe9")).write_text("found\n")
    entries = client.call_tool("list_folder").structured["entries"]
    assert entries == ["a.txt", "caf\\xe9", "sub/"]
    uri = "files:///caf%E9"
    listed = client.request("resources/list")["resources"]
    described = {"uri": uri, "name": "caf\\xe9", "mimeType": "application/octet-stream"}
    assert described in listed
    assert client.request("resources/read", {"uri": uri})["contents"][0]["text"] == "found\n"


# Resources


def test_resources_are_declared_listed_and_read(client, root):
    (root / "link.txt").symlink_to("a.txt")
    os.mkfifo(root / "pipe")
    (root / "data.bin").write_bytes(b"\xff")
    assert client.capabilities.keys() == {"tools", "resources"}
    assert client.request("resources/list")["resources"] == [
        {"uri": "files:///a.txt", "name": "a.txt", "mimeType": "text/plain"},
        {"uri": "files:///data.bin", "name": "data.bin", "mimeType": "application/octet-stream"},
        {"uri": "files:///sub/b.txt", "name": "sub/b.txt", "mimeType": "text/plain"},
    ]
    assert client.request("resources/read", {"uri": "files:///a.txt"})["contents"] == [
        {"uri": "files:///a.txt", "mimeType": "text/plain", "text": "ä\n"}
    ]
    assert client.request("resources/read", {"uri": "files:///data.bin"})["contents"] == [
        {"uri": "files:///data.bin", "mimeType": "application/octet-stream", "blob": "/w=="}
    ]


def test_a_template_says_how_to_ask_for_a_file_that_was_not_listed(client, root):
    [template] = client.request("resources/templates/list")["resourceTemplates"]
    assert template == {"uriTemplate": "files:///{+path}", "name": "any file"}
    uri = template["uriTemplate"].replace("{+path}", "sub/../a.txt")
    assert client.request("resources/read", {"uri": uri})["contents"][0]["text"] == "ä\n"


def test_many_resources_are_listed_page_by_page_each_once(client, root):
    for number in range(250):
        (root / "sub" / f"{number:03}").touch()
    seen, cursor = [], {}
    for expected in (100, 100, 52):
        page = client.request("resources/list", cursor)
        assert len(page["resources"]) == expected
        seen += [one["uri"] for one in page["resources"]]
        cursor = {"cursor": page.get("nextCursor")}
    assert cursor == {"cursor": None}
    assert len(set(seen)) == len(seen) == 252


def test_a_tree_of_more_files_than_fit_is_listed_up_to_a_limit(client, root, monkeypatch):
    monkeypatch.setattr(sys.modules["example_files"], "MOST", 15)
    here = root
    for number in range(160):
        here = here / "deep"
        here.mkdir()
        (here / str(number)).touch()
    page = client.request("resources/list")
    rest = client.request("resources/list", {"cursor": page["nextCursor"]})
    assert [len(one["resources"]) for one in (page, rest)] == [100, 50]
    assert "nextCursor" not in rest


NO_RESOURCE = [
    *("files:///nowhere", "files:///", "files:///sub", "files:///../secret.txt", "files:///%2e%2e"),
    *(
        "files:////etc/passwd",
        "files:///%2Fetc%2Fpasswd",
        "files:///a.txt%00",
        "file:///etc/passwd",
    ),
    *("files://etc/passwd", "FILES:///a.txt", "a.txt", "", "files:///out", "files:///pipe"),
    *("files:///%252e%252e/secret.txt", "files:///ü", "https://example.org/a.txt"),
]


@pytest.mark.req("S-EXT-04", "S-EXT-05")
@pytest.mark.parametrize("uri", NO_RESOURCE)
def test_an_unknown_resource_is_an_error_that_carries_its_uri_in_the_words_of_the_era(
    around, root, uri
):
    (root / "out").symlink_to("../secret.txt")
    os.mkfifo(root / "pipe")
    server = load("files").make_server(str(root))
    message = f"there is no resource {uri}"
    error = {"code": -32602, "message": message, "data": {"uri": uri}}
    reply = exchange(server, modern("resources/read", {"uri": uri}))
    assert reply == {"jsonrpc": "2.0", "id": 1, "error": error}
    exchange(server, initialize())
    reply = exchange(server, legacy("resources/read", {"uri": uri}))
    assert reply == {"jsonrpc": "2.0", "id": 1, "error": {**error, "code": -32002}}


def test_a_resource_without_a_uri_is_refused(client):
    with pytest.raises(ProtocolError, match=r"params\.uri: expected string, got nothing"):
        client.request("resources/read", {})


def test_a_resource_that_is_too_large_to_send_whole_is_refused_with_advice(client, root):
    files = sys.modules["example_files"]
    uri = "files:///huge"
    with open(root / "huge", "wb") as file:
        file.truncate(files.LIMIT)
    [content] = client.request("resources/read", {"uri": uri})["contents"]
    assert len(base64.b64decode(content["blob"])) == files.LIMIT  # a hole reads as NULs
    with open(root / "huge", "wb") as file:
        file.truncate(files.LIMIT + 1)
    with pytest.raises(ProtocolError) as caught:
        client.request("resources/read", {"uri": uri})
    error = caught.value
    assert (error.code, error.message, error.data) == (
        -32602,
        f"too large; use read_file: {uri}",
        {"uri": uri},
    )


@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list", "resources/read"])
def test_what_a_host_may_keep_is_private_and_soon_stale(root, method):
    server = load("files").make_server(str(root))
    reply = exchange(server, modern(method, {"uri": "files:///a.txt"}))
    hints = {key: reply["result"][key] for key in ("ttlMs", "cacheScope")}
    assert hints == {"ttlMs": 5000, "cacheScope": "private"}
    exchange(server, initialize())
    reply = exchange(server, legacy(method, {"uri": "files:///a.txt"}))
    assert not {"ttlMs", "cacheScope", "resultType"} & reply["result"].keys()


# How it starts


def start(*words):
    done = subprocess.run(
        command("files", *words), stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    assert (done.returncode != 0, done.stdout) == (True, b"")
    return done.stderr.decode().splitlines()


def test_a_root_must_be_given():
    assert start()[-1].endswith("the following arguments are required: --root")


@pytest.mark.parametrize("name", ["nowhere", "file", "nowhere/../root", ""])
def test_a_root_that_is_no_folder_is_refused_in_one_line_with_advice(tmp_path, name):
    (tmp_path / "file").touch(0o755)
    root = tmp_path / name if name else ""
    [line] = start("--root", root)
    assert line == f"--root {root}: this is no folder that can be read; name another"


# Over both transports, with the official client


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("asked", ERAS)
def test_the_official_client_reads_files_and_is_refused(asked, transport, root):
    calls = [
        ["list_folder", {}],
        ["read_file", {"path": "a.txt"}],
        ["read_file", {"path": "../secret.txt"}],
    ]
    with reached(command("files", "--root", root), transport) as target:
        report = official(asked, calls, target)
    listing, text, refusal = report.pop("results")
    assert report == {"protocol_version": ERAS[asked], "tools": TOOLS}
    assert listing["structured"] == {"entries": ["a.txt", "sub/"], "truncated": False}
    assert json.loads(text["text"]) == {"text": "ä\n", "size": 3, "next_offset": None}
    assert refusal == result(no("../secret.txt"), is_error=True)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("asked", ERAS)
def test_the_official_client_lists_and_reads_resources(asked, transport, root):
    uris = ["files:///a.txt", "files:///../secret.txt"]
    with reached(command("files", "--root", root), transport) as target:
        report = peer("resources.py", asked, json.dumps(uris), target)
    code = {"modern": -32602, "legacy": -32002}[asked]
    assert report == {
        "protocol_version": ERAS[asked],
        "resources": ["files:///a.txt", "files:///sub/b.txt"],
        "templates": ["files:///{+path}"],
        "read": [
            [{"uri": "files:///a.txt", "mimeType": "text/plain", "text": "ä\n"}],
            {"code": code, "message": f"there is no resource {uris[1]}", "data": {"uri": uris[1]}},
        ],
    }
