"""Golden files: a record of a backward as text that people read and git merges.

::

    gradviz golden backward 1
    # comments
    pass
    Net.fc2/AddmmBackward0 float32[2,2] saved=32 -> ~.bias Net/ReluBackward0
    Net.fc2.bias float32[2]
    end

A node is a line: its address, the dtype and shape of each input, then ``on=DEVICE``
unless that is the CPU, ``saved=BYTES`` unless it saved nothing, ``hooks=``, ``waits=``,
``end=`` and ``line=`` if there are any, and after an arrow who gets its gradients; a
``~`` there is the module of the line itself.
Nothing in a line counts nodes, so two branches that change different parts of a model
merge. The last line tells that nothing is cut off.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gradviz.errors import UserError
from gradviz.testing.golden.backward_record import (
    NOWHERE,
    GoldenNode,
    GoldenPass,
)

VERSION: Final = 1

#: Advice to write a golden file anew.
ACCEPT: Final = "pytest --gradviz-update, or GRADVIZ_UPDATE=1 in the environment"

_TITLE: Final = "gradviz golden backward"
_COMMENTS: Final = (
    "# A node a line, in the order in which they run: its inputs, saved bytes, hooks;",
    "# after -> who gets its gradients, ~ is its own module. Names are not compared.",
    f"# Written anew by {ACCEPT}.",
)
_ARROW: Final = "->"
_END: Final = "end"

#: Stands for the module of the line, where a gradient stays in it.
_SAME: Final = "~"

#: Marks that git leaves at the start of a line where branches collide.
_CONFLICT: Final = re.compile(r"(<{7}|={7}|>{7}|\|{7})( |$)")
_PASS: Final = re.compile(r"pass(?: x([1-9][0-9]{0,5}))?((?: \S+)*)")
_EDGE: Final = re.compile(r"(.*?)(?::([0-9]{1,9}))?")
_FIELD: Final = re.compile(r"(on|saved|hooks|waits|end|line)=(.+)")
_MAX_SHOWN: Final = 60


class GoldenFileError(UserError):
    """A file is no golden record, or not one that can be read."""


def golden_text(record: Sequence[GoldenPass]) -> str:
    """Return the text of a golden file; passes that repeat are written once."""
    lines = [f"{_TITLE} {VERSION}", *_COMMENTS]
    for one, same in itertools.groupby(record):
        number = sum(1 for _ in same)
        times = [f"x{number}"] if number > 1 else []
        lines.append(" ".join(["pass", *times, *one.marks]))
        lines += map(_line, one.nodes)
    return "\n".join([*lines, _END, ""])


def parse_golden(text: str, name: str) -> tuple[GoldenPass, ...]:
    """Return the record in a golden file.

    Args:
        text: The file.
        name: Name of the file in errors.

    Raises:
        GoldenFileError: It is empty, damaged, of a newer version, has merge conflicts,
            or is no golden file.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        if _CONFLICT.match(line):
            raise GoldenFileError(
                f"{name}, line {number}, has a merge conflict ({_shown(line)}): "
                f"resolve it, or write the file anew with {ACCEPT}"
            )
    _check_title(lines, name)
    if lines[-1] != _END:
        raise _damaged(name, len(lines), "the line 'end' is missing behind it")
    found: list[GoldenPass] = []
    numbered = [
        (number, line)
        for number, line in enumerate(lines[1:-1], start=2)
        if line.strip() and not line.startswith("#")
    ]
    if not numbered or not _PASS.fullmatch(numbered[0][1]):
        raise _damaged(name, *(numbered or [(1, "")])[0][:1], "expected 'pass'")
    for (number, header), body in _sections(numbered):
        parsed = _PASS.fullmatch(header)
        assert parsed is not None
        nodes = tuple(_parsed(line, at, name) for at, line in body)
        if not nodes:
            raise _damaged(name, number, "the pass has no nodes")
        _check_edges(nodes, [at for at, _ in body], name)
        one = GoldenPass(tuple(parsed[2].split()), nodes)
        found += [one] * int(parsed[1] or 1)
    return tuple(found)


def node_line(one: GoldenNode) -> str:
    """Return a node's line without its edges."""
    return " ".join(_words(one))


def edge(text: str) -> tuple[str, int]:
    """Return the address of a gradient's receiver, and its input."""
    parsed = _EDGE.fullmatch(text)
    assert parsed is not None
    return parsed[1], int(parsed[2] or 0)


def _line(one: GoldenNode) -> str:
    edges = [_ARROW, *(_relative(text, one) for text in one.edges)]
    return " ".join([*_words(one), *(edges if one.edges else [])])


def _relative(text: str, producer: GoldenNode) -> str:
    """Return an edge, without the module if it stays in it."""
    module, slash, _ = producer.address.partition("/")
    is_inside = slash and module and text.startswith((f"{module}/", f"{module}."))
    return f"{_SAME}{text[len(module) :]}" if is_inside else text


def _absolute(text: str, producer: str) -> str:
    module = producer.partition("/")[0]
    return f"{module}{text[1:]}" if text.startswith(_SAME) else text


def _words(one: GoldenNode) -> Iterator[str]:
    yield one.address
    yield from one.inputs
    fields = (
        ("on", "" if one.device == "cpu" else one.device),
        ("saved", "" if one.saved == "0" else one.saved),
        ("hooks", ";".join(one.hooks)),
        ("waits", ";".join(one.waits)),
        ("end", one.end),
        ("line", one.line),
    )
    yield from (f"{name}={value}" for name, value in fields if value)


def _check_title(lines: Sequence[str], name: str) -> None:
    if not any(line.strip() for line in lines):
        raise GoldenFileError(f"{name} is empty: write it anew with {ACCEPT}")
    title, _, version = lines[0].rpartition(" ")
    if title != _TITLE or not version.isdecimal():
        raise GoldenFileError(
            f"{name} is no golden record of a backward: it begins with "
            f"{_shown(lines[0])}, expected '{_TITLE} {VERSION}'"
        )
    if int(version) != VERSION:
        raise GoldenFileError(
            f"{name} is of version {int(version)}, and this gradviz reads {VERSION}: "
            f"use the gradviz that wrote it, or write it anew with {ACCEPT}"
        )


def _sections(
    numbered: Iterable[tuple[int, str]],
) -> Iterator[tuple[tuple[int, str], list[tuple[int, str]]]]:
    """Yield each header with the lines below it."""
    header: tuple[int, str] | None = None
    body: list[tuple[int, str]] = []
    for number, line in numbered:
        if _PASS.fullmatch(line):
            if header is not None:
                yield header, body
            header, body = (number, line), []
        else:
            body.append((number, line))
    if header is not None:
        yield header, body


def _parsed(line: str, number: int, name: str) -> GoldenNode:
    about, arrow, edges = line.partition(f" {_ARROW} ")
    address, *words = about.split(" ")
    fields: dict[str, str] = {}
    inputs = []
    for word in words:
        parsed = _FIELD.fullmatch(word)
        if parsed is None and not fields and re.fullmatch(r"any|\S+\[[\d,]*\]", word):
            inputs.append(word)
        elif parsed is not None and parsed[1] not in fields:
            fields[parsed[1]] = parsed[2]
        else:
            raise _damaged(name, number, f"{_shown(word)} is not expected there")
    if not address or (arrow and not all(edges.split(" "))):
        raise _damaged(name, number, "an address is missing")
    return GoldenNode(
        address=address,
        inputs=tuple(inputs),
        device=fields.get("on", "cpu"),
        saved=fields.get("saved", "0"),
        hooks=tuple(fields["hooks"].split(";")) if "hooks" in fields else (),
        waits=tuple(fields["waits"].split(";")) if "waits" in fields else (),
        end=fields.get("end", ""),
        line=fields.get("line", ""),
        edges=tuple(_absolute(one, address) for one in edges.split(" ") if arrow),
    )


def _check_edges(
    nodes: Sequence[GoldenNode], numbers: Sequence[int], name: str
) -> None:
    """Check that addresses are unique, and that edges lead to nodes.

    Raises:
        GoldenFileError: They are not, as after a merge that took half of a change.
    """
    known: set[str] = set()
    for one, number in zip(nodes, numbers, strict=True):
        if one.address in known:
            raise _damaged(name, number, f"{_shown(one.address)} is there twice")
        known.add(one.address)
    for one, number in zip(nodes, numbers, strict=True):
        for text in one.edges:
            if text != NOWHERE and edge(text)[0] not in known:
                raise _damaged(name, number, f"no line is called {_shown(text)}")


def _damaged(name: str, number: int, why: str) -> GoldenFileError:
    return GoldenFileError(
        f"{name}, line {number}, is damaged: {why}; write the file anew with {ACCEPT}"
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")
