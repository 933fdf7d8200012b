"""Small changes of a solution, as somebody might have written it: each should fail its check."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

OPPOSITES = [(ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot), (ast.And, ast.Or)]
OPPOSITES += [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE)]
SWAPPED = {one: other for pair in OPPOSITES for one, other in (pair, pair[::-1])}
PARTS = ("values", "elts", "args", "keywords")  # lists from which one may be missing


def changes(code: str) -> Iterator[str]:
    """The code, with one thing in it changed or missing; what a message says is left alone."""
    tree, seen = ast.parse(code), {ast.unparse(ast.parse(code))}
    words = [one for node in ast.walk(tree) if isinstance(node, ast.Raise) for one in said(node)]
    for number, node in enumerate(ast.walk(tree)):
        for change in [] if node in words else possible(node):
            changed = copy.deepcopy(tree)
            change(list(ast.walk(changed))[number])
            try:
                text = ast.unparse(ast.fix_missing_locations(changed))
                compile(text, "changed", "exec")
            except (SyntaxError, ValueError, IndexError):
                continue  # nobody could have written that
            if text not in seen:
                seen.add(text)
                yield text


def possible(node: ast.AST) -> Iterator:
    """What can be done to a node."""
    if isinstance(node, ast.Compare):
        yield lambda one: one.ops.__setitem__(0, SWAPPED[type(one.ops[0])]())
    if isinstance(node, ast.BoolOp):
        yield lambda one: setattr(one, "op", SWAPPED[type(one.op)]())
    if isinstance(node, (ast.If, ast.IfExp)):
        for value in (True, False):
            yield lambda one, value=value: setattr(one, "test", ast.Constant(value))
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, str)):
        value = node.value
        other = (
            not value if isinstance(value, bool) else value + ("x" if value == str(value) else 1)
        )
        yield lambda one: setattr(one, "value", other)
    for name in PARTS:
        for at in range(len(listed(node, name))):
            yield lambda one, name=name, at=at: getattr(one, name).pop(at)
    if isinstance(node, ast.Dict):
        for at in range(len(node.keys)):
            yield lambda one, at=at: (one.keys.pop(at), one.values.pop(at))
    for name in ("body", "orelse"):
        for at, statement in enumerate(listed(node, name)):
            if not isinstance(node, ast.Module) and not isinstance(statement, ast.FunctionDef):
                yield lambda one, name=name, at=at: getattr(one, name).__setitem__(at, ast.Pass())


def said(node: ast.Raise) -> Iterator[ast.AST]:
    """The parts of an exception that are for people."""
    texts = [one for one in ast.walk(node) if isinstance(one, ast.JoinedStr)]
    if isinstance(node.exc, ast.Call):
        texts += [one for one in node.exc.args if isinstance(one, ast.Constant)]
        yield from [node.exc] if len(node.exc.args) == 1 else []
    for text in texts:
        number = isinstance(text, ast.Constant) and isinstance(text.value, int)
        yield from [] if number else ast.walk(text)


def listed(node: ast.AST, name: str) -> list[ast.AST]:
    found = getattr(node, name, [])
    return found if isinstance(found, list) else []
