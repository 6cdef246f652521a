"""Traces in which every text is hostile, and their benign twins."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import gradviz as gv
from gradviz.trace.format.frames import (
    Budget,
    FrameType,
    encode_frame,
    pack,
    scan,
    unpack,
)
from tests.hostile.texts import HOSTILE, benign

#: What means something, and is no name: without them a trace is another one.
_KEPT: Final = {"AccumulateGrad", "cpu"}


class _Broken(gv.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("broken")


def record_all(path: Path) -> Path:
    """A trace that has all that views look at, if little of it.

    A pass that fails, and one over two devices with streams, modules, parameters.
    """
    model = gv.nn.Sequential(gv.nn.Linear(3, 4), gv.nn.Tanh(), gv.nn.Linear(4, 1))
    optimizer = gv.optim.SGD(model.parameters(), lr=0.1)
    with gv.record(path, stacks="full") as recording:
        recording.step()
        recording.mark("a mark")
        with contextlib.suppress(ValueError):
            _Broken.apply(model(gv.ones(2, 3))).sum().backward()
        there = model(gv.ones(2, 3)).to("sim:0")
        (there * there).to("cpu").sum().backward()
        optimizer.step()
    return path


def retold(data: bytes, tell: Callable[[str], str]) -> bytes:
    """The trace with other texts."""
    frames = []
    for frame in scan(data):
        payload: bytes = bytes(frame.payload)
        if frame.type == FrameType.HEADER:
            header = json.loads(payload)
            for name in ("gradviz", "python", "platform", "host"):
                header[name] = tell(header[name])
            header["argv"] = [tell(one) for one in header["argv"]]
            header["packages"] = {
                tell(k): tell(v) for k, v in header["packages"].items()
            }
            payload = _json(header)
        elif frame.type == FrameType.DEFINITIONS:
            raw, stamp = unpack(frame.payload, Budget(1 << 30))
            payload = pack(_json(_redefined(json.loads(raw), tell)), stamp)
        frames.append(encode_frame(FrameType(frame.type), payload))
    return b"".join(frames)


def twins(data: bytes) -> tuple[bytes, bytes]:
    """A trace whose texts are hostile, by turns, and its benign twin.

    A number begins each of them: what is sorted by name is in one order in both.
    """

    def numbered(number: int) -> str:
        text = f"{number:03} {HOSTILE[number % len(HOSTILE)]}"
        # A file has "?" for half a character: the twin is to be as wide as that.
        return text.encode("utf-8", "replace").decode()

    hostile = _in_turns(numbered)
    return retold(data, hostile), retold(data, lambda text: benign(hostile(text)))


def _in_turns(tell: Callable[[int], str]) -> Callable[[str], str]:
    """Gives each text another one, by the number of texts there were before."""
    told: dict[str, str] = {}

    def new(text: str) -> str:
        if text in _KEPT or text == "":
            return text
        return told.setdefault(text, tell(len(told)))

    return new


def _bare(number: int) -> str:
    """A hostile text as it is, while there is one that was not told before."""
    round_, place = divmod(number, len(HOSTILE))
    return f"{HOSTILE[place]}{round_ or ''}"


def tell_anew(folder: Path) -> dict[str, Path]:
    """A recording, and the same with other texts.

    They are numbered ones (``hostile``) and their ``benign`` twins, the hostile ones as
    they are (``bare``), and ``empty`` ones. These are in files of one name, for a
    picture may show it.
    """
    recorded = record_all(folder / "recorded.gvt")
    data = recorded.read_bytes()
    hostile, benign = twins(data)
    told = {
        "hostile": hostile,
        "benign": benign,
        "bare": retold(data, _in_turns(_bare)),
        "empty": retold(data, lambda _: ""),
    }
    paths = {"recorded": recorded}
    for name, contents in told.items():
        paths[name] = folder / name / "x.gvt"
        paths[name].parent.mkdir()
        paths[name].write_bytes(contents)
    return paths


def _redefined(definitions: dict[str, Any], tell: Callable[[str], str]) -> object:
    for name in ("strings", "threads"):
        definitions[name] = [[i, tell(text)] for i, text in definitions.get(name, ())]
    definitions["queues"] = [
        [id_, tell(name), device] for id_, name, device in definitions.get("queues", ())
    ]
    return definitions


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
