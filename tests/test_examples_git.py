"""examples/git.py: an argument stays an argument, output is bounded, results have a schema."""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from support_examples import ERAS, ROOT, command, load, official, reached
from support_skips import need

from minimcp import Client

DATE = "2026-01-02T03:04:05+01:00"  # of UTC the versions of git write +00:00 or Z
TOOLS = ["status", "log", "show", "diff"]
ENV = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": DATE,
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": DATE,
    "LC_ALL": "C.UTF-8",
}


class Folder:
    """A repository in the making: `run` calls git, `write` and `commit` do what they say."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.run("init", "--quiet", "--initial-branch=main")

    def run(self, *words, input=None, check=True):
        done = subprocess.run(
            ["git", *words], cwd=self.path, env=ENV, input=input, capture_output=True, check=check
        )
        return done.stdout.decode().strip()

    def write(self, name, text):
        path = self.path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def commit(self, message, **files):
        for name, text in files.items():
            self.write(name, text)
        self.run("add", "--all")
        self.run("commit", "--quiet", "--allow-empty", "-m", message)
        return self.run("rev-parse", "HEAD")

    def snapshot(self):
        """Every file in and around the repository, without git's own bookkeeping."""
        around = self.path.parent
        return {
            path.relative_to(around): path.read_bytes()
            for path in around.rglob("*")
            if path.is_file() and ".git" not in path.parts
        }


@pytest.fixture
def folder(tmp_path):
    """Two commits on main; next to the repository a file that nobody may see."""
    (tmp_path / "secret.txt").write_text("the secret")
    made = Folder(tmp_path / "repository")
    made.first = made.commit("first", a="one\n")
    made.second = made.commit("second\n\nWith a body.", a="two\n", b="b\n")
    return made


@pytest.fixture
def client(folder):
    with Client(load("git").make_server(str(folder.path))) as client:
        client.list_tools()  # so that results are held to their output schemas
        yield client


def refused(result):
    assert (result.is_error, result.structured) == (True, None)
    return result.text


def commit(hash, subject):
    return {"hash": hash, "date": DATE, "author": "Ada", "subject": subject}


# What it shows


def test_log_lists_commits_newest_first(client, folder):
    assert client.call_tool("log").structured == {
        "commits": [commit(folder.second, "second"), commit(folder.first, "first")],
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("arguments", "subjects"),
    [
        ({"limit": 1}, ["second"]),
        ({"revision": "HEAD~1"}, ["first"]),
        ({"path": "b"}, ["second"]),
        ({"path": "nowhere"}, []),
    ],
)
def test_log_starts_at_a_revision_and_follows_a_path(client, arguments, subjects):
    commits = client.call_tool("log", arguments).structured["commits"]
    assert [one["subject"] for one in commits] == subjects


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_limit_out_of_range_is_refused_with_advice(client, limit):
    text = refused(client.call_tool("log", {"limit": limit}))
    assert text == "limit: from 1 to 1000; to see older ones, start at a revision"


def test_show_returns_the_whole_message_and_the_patch(client, folder):
    shown = client.call_tool("show").structured
    assert shown == {"text": folder.run("show") + "\n", "truncated": False}
    head, message, patch = shown["text"].split("\n\n")
    assert head.splitlines()[:2] == [f"commit {folder.second}", "Author: Ada <ada@example.org>"]
    assert message == "    second\n    \n    With a body."
    assert patch == folder.run("show", "--format=") + "\n"


def test_show_is_the_same_whatever_format_somebody_has_set_for_it(client, folder):
    plain = client.call_tool("show").structured
    folder.run("config", "format.pretty", "oneline")
    assert client.call_tool("show").structured == plain


def test_diff_compares_two_revisions_or_one_with_the_files(client, folder):
    folder.write("b", "changed\n")
    for arguments, words in [
        ({"old": "HEAD~1", "new": "HEAD"}, ["HEAD~1", "HEAD"]),
        ({"old": "HEAD~1", "new": "HEAD", "path": "a"}, ["HEAD~1", "HEAD", "--", "a"]),
        ({"old": "HEAD~1"}, ["HEAD~1"]),
        ({}, ["HEAD"]),
    ]:
        text = folder.run("diff", *words) + "\n"
        expected = {"text": text, "truncated": False}
        assert client.call_tool("diff", arguments).structured == expected


def test_status_tells_changed_new_and_moved_files_whatever_their_names(client, folder):
    """A file that was moved is one that is gone and one that is new."""
    folder.write("a", "three\n")
    folder.run("mv", "b", "ü\n-> x")
    folder.write("--help", "new\n")
    folder.write(os.fsdecode(b"\xff"), "new\n")
    assert client.call_tool("status").structured == {
        "branch": "main",
        "changes": [
            {"state": " M", "path": "a"},
            {"state": "D ", "path": "b"},
            {"state": "A ", "path": "ü\n-> x"},
            {"state": "??", "path": "--help"},
            {"state": "??", "path": "\ufffd"},
        ],
        "truncated": False,
    }


@pytest.mark.parametrize("setting", ["true", "copies"])
def test_no_setting_makes_one_entry_out_of_two_files(client, folder, setting):
    folder.run("config", "status.renames", setting)
    (folder.path / "b").rename(folder.path / "c")
    folder.run("add", "--intent-to-add", "c")
    changes = client.call_tool("status").structured["changes"]
    assert changes == [{"state": " D", "path": "b"}, {"state": " A", "path": "c"}]


def test_a_folder_inside_the_repository_sees_paths_from_there(folder):
    (folder.path / "sub").mkdir()
    (folder.path / "sub" / "a").write_text("a\n")
    folder.commit("third")
    with Client(load("git").make_server(str(folder.path / "sub"))) as client:
        [log] = client.call_tool("log", {"path": "a"}).structured["commits"]
        assert log["subject"] == "third"
        assert client.instructions == f"The git repository {folder.path}"


def test_log_lists_commits_that_changed_no_file_too(client, folder):
    empty = folder.commit("nothing changed")
    [newest] = client.call_tool("log", {"limit": 1}).structured["commits"]
    assert newest == commit(empty, "nothing changed")


def test_a_merge_shows_its_combined_patch(client, folder):
    folder.run("checkout", "--quiet", "-b", "side", "HEAD~1")
    folder.commit("side", a="side\n")
    folder.run("checkout", "--quiet", "main")
    folder.run("merge", "--quiet", "side", check=False)
    merge = folder.commit("merged", a="both\n")
    shown = client.call_tool("show", {"revision": merge}).structured["text"]
    assert shown.startswith(f"commit {merge}\nMerge: ")
    assert "\n\ndiff --cc a\n" in shown


def test_names_and_messages_that_are_no_utf_8_are_shown_with_replacement_characters(client, folder):
    who = b"Ren\xe9 <rene@example.org> 1 +0000"
    tree = folder.run("rev-parse", "HEAD^{tree}").encode()
    raw = b"tree %s\nauthor %s\ncommitter %s\n\ncaf\xe9 \x1f\x01\n" % (tree, who, who)
    odd = folder.run("hash-object", "-t", "commit", "-w", "--stdin", input=raw)
    [log] = client.call_tool("log", {"revision": odd}).structured["commits"]
    assert (log["author"], log["subject"]) == ("Ren\ufffd", "caf\ufffd \x1f\x01")
    shown = client.call_tool("show", {"revision": odd}).structured["text"]
    assert "Author: Ren\ufffd <rene@example.org>\n" in shown
    assert "\n\n    caf\ufffd \x1f\x01\n" in shown


def test_a_repository_without_commits_has_a_status_and_no_log(tmp_path):
    empty = Folder(tmp_path / "empty")
    with Client(load("git").make_server(str(empty.path))) as client:
        status = client.call_tool("status").structured
        assert status == {"branch": "No commits yet on main", "changes": [], "truncated": False}
        for name in ("log", "show", "diff"):
            text = refused(client.call_tool(name))
            assert text == "there is no commit 'HEAD'; log shows what there is"


# What an argument cannot do

NASTY = [
    *("--help", "-h", "-c", "--", "-", "--all", "--version", "--exec-path", "-p"),
    *("--upload-pack=touch pwned", "--output=pwned", "-opwned", "--ext-diff", "--textconv"),
    *(
        "-O/etc/passwd",
        "--no-index",
        "--end-of-options",
        "--git-dir=/",
        "-C/",
        "--exec=touch pwned",
    ),
    *("$(touch pwned)", "`touch pwned`", "; touch pwned", "| touch pwned", "&& touch pwned"),
    *("HEAD; touch pwned", "HEAD --output=pwned", "HEAD\n--output=pwned", 'HEAD"', "HEAD'"),
    *("^HEAD", "HEAD..HEAD~1", "HEAD...main", "HEAD^@", "HEAD^!", ":/", ":0:a", "HEAD:a", "@{"),
    *(
        "",
        " ",
        "*",
        "..",
        "/etc/passwd",
        "../secret.txt",
        "a" * 5000,
        "a" * 200_000,
        "HEAD\0",
        "\u202e",
    ),
]


@pytest.mark.parametrize("revision", NASTY)
def test_a_revision_that_is_none_is_refused_and_does_nothing(client, folder, revision):
    before = folder.snapshot()
    for name, arguments in [
        ("log", {"revision": revision}),
        ("show", {"revision": revision}),
        ("diff", {"old": revision}),
        ("diff", {"new": revision}),
    ]:
        text = refused(client.call_tool(name, arguments))
        assert text == f"there is no commit {revision[:200]!r}; log shows what there is"
    assert folder.snapshot() == before


@pytest.mark.parametrize(
    "branch", ["--help", "-c", "--output=pwned", "--upload-pack=x", "--end-of-options", "-"]
)
def test_a_branch_that_is_named_like_an_option_is_a_branch(client, folder, branch):
    before = folder.snapshot()
    folder.run("update-ref", f"refs/heads/{branch}", folder.first)
    first = commit(folder.first, "first")
    assert client.call_tool("log", {"revision": branch}).structured["commits"] == [first]
    shown = client.call_tool("show", {"revision": branch}).structured["text"]
    assert shown.startswith(f"commit {folder.first}\n")
    text = folder.run("diff", folder.first, folder.second) + "\n"
    both = client.call_tool("diff", {"old": branch, "new": "main"}).structured
    assert both == {"text": text, "truncated": False}
    assert folder.snapshot() == before


@pytest.mark.parametrize(
    "path",
    [
        *("--output=pwned", "--no-index", "--help", "-p", "--", "*", "?", ":!a", ":^a", ":/"),
        *(":(top)a", ":(exclude)a", ":(glob)**", "$(touch pwned)", "; touch pwned", "a\nb"),
    ],
)
def test_a_path_is_taken_literally_so_what_is_no_name_matches_nothing(client, folder, path):
    before = folder.snapshot()
    log = client.call_tool("log", {"path": path})
    diff = client.call_tool("diff", {"old": "HEAD~1", "new": "HEAD", "path": path})
    assert log.structured == {"commits": [], "truncated": False}
    assert diff.structured == {"text": "", "truncated": False}
    assert folder.snapshot() == before


def test_a_file_that_is_named_like_an_option_or_a_pattern_is_found(client, folder):
    for name in ("--output=pwned", ":(top)x", "*"):
        made = folder.commit(f"add {name}", **{name: "text\n"})
        log = client.call_tool("log", {"path": name}).structured["commits"]
        assert [one["hash"] for one in log] == [made]


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "..", "/", "sub/../../secret.txt", "b/../../x"]
)
def test_a_path_outside_is_refused(client, path):
    for name, arguments in [("log", {}), ("diff", {}), ("diff", {"new": "HEAD"})]:
        text = refused(client.call_tool(name, {"path": path, **arguments}))
        assert "is outside repository" in text
        assert "the secret" not in text


@pytest.mark.parametrize("path", ["", "a\0b", "a" * 200_000])
def test_a_path_that_can_be_none_is_refused(client, path):
    assert refused(client.call_tool("log", {"path": path}))


def test_two_files_elsewhere_cannot_be_compared(client, folder):
    """With two paths, `git diff` quietly compares any two files; here they must be commits."""
    secret = str(folder.path.parent / "secret.txt")
    text = refused(client.call_tool("diff", {"old": os.devnull, "new": secret}))
    assert text == f"there is no commit {os.devnull!r}; log shows what there is"


def test_a_link_in_the_repository_is_not_followed(client, folder):
    (folder.path / "link").symlink_to("../secret.txt")
    folder.run("add", "link")
    text = client.call_tool("diff").structured["text"]
    assert "+../secret.txt" in text
    assert "the secret" not in text


# What a repository cannot make it do


@pytest.mark.parametrize(
    ("setting", "control"),
    [
        ("diff.external", ["diff"]),
        ("diff.mine.textconv", ["diff"]),
        ("diff.mine.command", ["diff"]),
        ("core.fsmonitor", ["status"]),
    ],
)
def test_programs_that_the_repository_names_are_not_run(client, folder, setting, control):
    marker = folder.path.parent / "marker"
    program = folder.path.parent / "program.sh"
    program.write_text(f"#!/bin/sh\necho run >> '{marker}'\ncat \"$1\" 2>/dev/null\n")
    program.chmod(0o755)
    folder.write(".gitattributes", "* diff=mine\n")
    folder.run("config", setting, str(program))
    folder.write("a", "changed\n")
    folder.run(*control, check=False)
    assert marker.exists()  # the trap works: plain git steps into it
    marker.unlink()
    for name, arguments in [("status", {}), ("diff", {}), ("show", {}), ("log", {"path": "a"})]:
        assert not client.call_tool(name, arguments).is_error
    assert not marker.exists()


def test_a_signed_commit_does_not_run_what_the_repository_calls_gpg(client, folder):
    marker = folder.path.parent / "marker"
    program = folder.path.parent / "program.sh"
    program.write_text(f"#!/bin/sh\necho run >> '{marker}'\n")
    program.chmod(0o755)
    raw = subprocess.check_output(["git", "cat-file", "commit", "HEAD"], cwd=folder.path)
    head, body = raw.split(b"\n\n", 1)
    head += b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    signed = folder.run("hash-object", "-t", "commit", "-w", "--stdin", input=head + b"\n\n" + body)
    folder.run("config", "gpg.program", str(program))
    folder.run("config", "log.showSignature", "true")
    folder.run("log", signed)
    assert marker.exists()  # the trap works
    marker.unlink()
    for name in ("log", "show"):
        assert not client.call_tool(name, {"revision": signed}).is_error
    assert not marker.exists()


def test_looking_changes_nothing_in_the_repository(client, folder):
    hook = folder.path / ".git" / "hooks" / "post-index-change"
    marker = folder.path.parent / "marker"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    hook.chmod(0o755)
    os.utime(folder.path / "a", (1, 1))  # so that plain git would refresh its index
    index = (folder.path / ".git" / "index").read_bytes()
    assert client.call_tool("status").structured["changes"] == []
    assert not marker.exists()
    assert (folder.path / ".git" / "index").read_bytes() == index
    folder.run("status")
    assert marker.exists()  # the trap works


def test_a_partial_clone_is_not_completed_over_the_network(folder):
    """`git show` of a blob that is not here runs what the remote's `uploadpack` says."""
    folder.run("config", "uploadpack.allowFilter", "true")
    partial = folder.path.parent / "partial"
    words = ["clone", "--quiet", "--no-checkout", "--filter=blob:none"]
    folder.run(*words, folder.path.as_uri(), str(partial))
    marker = folder.path.parent / "marker"
    program = f"touch '{marker}'; git-upload-pack"
    folder.run("-C", str(partial), "config", "remote.origin.uploadpack", program)
    with Client(load("git").make_server(str(partial))) as client:
        assert refused(client.call_tool("show")).startswith("git show failed: ")
    assert not marker.exists()
    folder.run("-C", str(partial), "show")
    assert marker.exists()  # the trap works


def test_variables_of_git_do_not_lead_to_another_repository(folder, tmp_path):
    other = Folder(tmp_path / "other")
    other.commit("elsewhere")
    env = {"GIT_DIR": str(other.path / ".git"), "GIT_WORK_TREE": str(other.path)}
    with Client(command("git", "--repo", folder.path), env=env) as client:
        log = client.call_tool("log", {"limit": 1}).structured
        assert [one["subject"] for one in log["commits"]] == ["second"]


# What size and time cannot do


def test_a_huge_patch_is_cut_and_says_so(client, folder):
    git = sys.modules["example_git"]
    folder.commit("huge", big="0123456789abcdef\n" * 500_000)  # 8.5 MB
    for name, arguments in [("show", {}), ("diff", {"old": "HEAD~1", "new": "HEAD"})]:
        found = client.call_tool(name, arguments).structured
        assert found["truncated"] is True
        assert len(found["text"]) == git.LIMIT


def test_a_status_of_more_files_than_fit_is_cut_between_two_of_them(client, folder):
    names = [f"{number:05}-{'x' * 200}" for number in range(1000)]
    for name in names:
        folder.write(name, "")
    status = client.call_tool("status").structured
    assert status["truncated"] is True
    found = [change["path"] for change in status["changes"]]
    assert found == names[: len(found)]
    assert 400 < len(found) < 500


@pytest.fixture
def fake(folder, monkeypatch):
    """`fake(script)`: the tools, with a git that does what the script says."""

    def make(script, timeout=10.0):
        programs = folder.path.parent / "bin"
        programs.mkdir()
        (programs / "script.py").write_text(script, encoding="utf-8")
        words = shlex.join([sys.executable, str(programs / "script.py")])  # there may be blanks
        (programs / "git").write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        (programs / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        git = load("git")
        monkeypatch.setattr(git, "TIMEOUT", timeout)
        return git.Repository(str(folder.path)), git

    return make


def test_a_git_that_hangs_is_ended_at_the_deadline(fake):
    repository, git = fake("import time; time.sleep(600)", timeout=0.3)
    started = time.monotonic()
    with pytest.raises(git.ToolError, match=r"git status took longer than 0.3 s; ask for less"):
        repository.status()
    assert time.monotonic() - started < 20


def test_a_git_that_never_stops_talking_is_cut_and_ended(fake):
    repository, git = fake("while True: print('x' * 1000)")
    output, truncated = repository.git("status")
    assert (len(output), truncated) == (git.LIMIT, True)


def test_a_git_that_complains_at_length_is_quoted_briefly(fake):
    repository, git = fake("import sys; sys.stderr.write('no! ' * 100_000); sys.exit(3)")
    with pytest.raises(git.ToolError) as caught:
        repository.status()
    assert str(caught.value) == "git status failed: " + ("no! " * 250).strip()


def test_every_word_reaches_git_as_it_is(fake):
    repository, _ = fake("import sys, json; print(json.dumps(sys.argv[1:]))")
    words = ["log", "$HOME", "a b", '"', "'", "\\", "*", "a\nb", "ü"]
    output, _ = repository.git(*words)
    assert json.loads(output)[-len(words) :] == words


@pytest.fixture(scope="module")
def long_history(tmp_path_factory):
    """5,000 commits, written by `git fast-import` in a moment."""
    made = Folder(tmp_path_factory.mktemp("history") / "repository")
    parts = []
    for number in range(5000):
        text, content = f"commit {number}", f"{number}\n"
        parts.append(
            f"commit refs/heads/main\ncommitter Ada <ada@example.org> {number} +0000\n"
            f"data {len(text)}\n{text}\nM 100644 inline n{number % 50}\n"
            f"data {len(content)}\n{content}\n"
        )
    made.run("fast-import", "--quiet", input="".join(parts).encode())
    made.run("reset", "--quiet", "--hard")
    return SimpleNamespace(path=made.path)


def test_thousands_of_commits_are_listed_a_part_at_a_time(long_history):
    with Client(load("git").make_server(str(long_history.path))) as client:
        client.list_tools()
        seen, revision = [], "HEAD"
        while True:
            log = client.call_tool("log", {"revision": revision, "limit": 500}).structured
            assert log["truncated"] is False
            seen += [one["subject"] for one in log["commits"]]
            if seen[-1] == "commit 0":
                break
            revision = log["commits"][-1]["hash"] + "~1"
        assert seen == [f"commit {number}" for number in reversed(range(5000))]
        assert refused(client.call_tool("log", {"revision": "HEAD~5000"}))
        oldest = client.call_tool("show", {"revision": "HEAD~4999"}).structured
        assert ("\n    commit 0\n" in oldest["text"], oldest["truncated"]) == (True, False)


def test_more_commits_than_fit_are_cut_between_two_of_them(long_history, monkeypatch):
    git = load("git")
    monkeypatch.setattr(git, "LIMIT", 10_000)
    with Client(git.make_server(str(long_history.path))) as client:
        client.list_tools()
        log = client.call_tool("log", {"limit": 1000}).structured
    subjects = [one["subject"] for one in log["commits"]]
    assert log["truncated"] is True
    assert subjects == [f"commit {4999 - number}" for number in range(len(subjects))]
    assert 50 < len(subjects) < 150


def test_it_works_on_this_repository():
    need((ROOT / ".git").exists(), "this is no clone: there is no .git")
    with Client(command("git", "--repo", ROOT)) as client:
        client.list_tools()
        [newest] = client.call_tool("log", {"limit": 1}).structured["commits"]
        shown = client.call_tool("show", {"revision": newest["hash"]}).structured
        assert shown["text"].startswith(f"commit {newest['hash']}\n")
        assert not client.call_tool("status").is_error


# How it starts


def start(*words, **more):
    return subprocess.run(
        command("git", *words), stdin=subprocess.DEVNULL, capture_output=True, timeout=60, **more
    )


def test_a_folder_that_is_no_repository_is_named_at_the_start(tmp_path):
    done = start("--repo", tmp_path, env={**ENV, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    assert done.returncode == 1
    assert done.stderr.decode().startswith(f"{tmp_path}: git rev-parse failed: fatal: not a git")


def test_a_folder_that_is_not_there_is_named_at_the_start(tmp_path):
    done = start("--repo", tmp_path / "nowhere")
    assert done.returncode == 1
    assert f"{tmp_path / 'nowhere'}: " in done.stderr.decode()


def test_a_missing_git_is_named_at_the_start(folder, tmp_path):
    (tmp_path / "nothing").mkdir()
    done = start("--repo", folder.path, env={**ENV, "PATH": str(tmp_path / "nothing")})
    assert done.returncode == 1
    assert "'git'" in done.stderr.decode()


def test_the_current_folder_is_the_default(folder):
    done = start(cwd=folder.path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# Over both transports, with the official client


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("asked", ERAS)
def test_the_official_client_reads_a_log_and_is_refused(asked, transport, folder):
    folder.run("update-ref", "refs/heads/--help", folder.first)
    calls = [
        ["log", {"revision": "--help"}],
        ["show", {}],
        ["diff", {"old": "--output=pwned"}],
        ["status", {}],
    ]
    with reached(command("git", "--repo", folder.path), transport) as target:
        report = official(asked, calls, target)
    log, show, diff, status = report.pop("results")
    assert report == {"protocol_version": ERAS[asked], "tools": TOOLS}
    assert log["structured"] == {"commits": [commit(folder.first, "first")], "truncated": False}
    assert show["structured"]["text"].startswith(f"commit {folder.second}\n")
    assert diff == {
        "text": "there is no commit '--output=pwned'; log shows what there is",
        "structured": None,
        "is_error": True,
    }
    assert status["structured"] == {"branch": "main", "changes": [], "truncated": False}
    assert not Path(folder.path, "pwned").exists()
