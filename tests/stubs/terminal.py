"""A server that a person has started in a terminal."""

import contextlib
import os
import pty
import subprocess

END_OF_INPUT = b"\x04"  # what Ctrl+D types


@contextlib.contextmanager
def on_a_terminal(command):
    """The process, and a function that types bytes on its terminal; the process does not stay."""
    ours, theirs = pty.openpty()
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=theirs, stdout=pipe, stderr=pipe)
    os.close(theirs)
    try:
        yield process, lambda data: os.write(ours, data)
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
