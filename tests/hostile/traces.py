"""Traces in which every text is hostile, and their benign twins."""

import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import gradviz as gv
from gradviz.trace.frames import Budget, FrameType, encode_frame, pack, scan, unpack
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


def twins(data: bytes, texts: Sequence[str] = HOSTILE) -> tuple[bytes, bytes]:
    """A trace with these texts in turns, each with a number, and its benign twin."""
    told: dict[str, str] = {}

    def hostile(text: str) -> str:
        if text in _KEPT or text == "":
            return text
        return told.setdefault(text, f"{texts[len(told) % len(texts)]}{len(told)}")

    return retold(data, hostile), retold(data, lambda text: benign(hostile(text)))


def tell_thrice(folder: Path) -> dict[str, Path]:
    """A recording, and the same with texts that are hostile, benign and empty.

    These three are in files of the same name, for a picture may show it.
    """
    recorded = record_all(folder / "recorded.gvt")
    data = recorded.read_bytes()
    hostile, benign = twins(data)
    empty = retold(data, lambda _: "")
    paths = {"recorded": recorded}
    for name, told in (("hostile", hostile), ("benign", benign), ("empty", empty)):
        paths[name] = folder / name / "x.gvt"
        paths[name].parent.mkdir()
        paths[name].write_bytes(told)
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
