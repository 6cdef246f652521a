"""Tensors in a file: `save` and `load`.

A file is in the safetensors layout, so that other programs read the tensors: eight
bytes with the length of a header, the header in JSON, and the elements of all tensors.
What else was saved (numbers, texts, lists, dicts) and a checksum are in the header.
Nothing is ever unpickled: a file from a stranger can at worst be refused.
"""

import json
import math
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from gradviz.backends.base import backend_of
from gradviz.backends.device import Device
from gradviz.errors import UserError
from gradviz.tensors.creation import from_numpy
from gradviz.tensors.tensor import Tensor

#: Where a file is, or an open one.
Place = str | os.PathLike[str] | BinaryIO

_LENGTH: Final = struct.Struct("<Q")
#: The format's own limit.
_MAX_HEADER: Final = 100_000_000
#: The header says twice that gradviz wrote it: no flipped bit makes it a stranger's.
_OURS: Final = "gradviz"
_FORMAT: Final = {"format": "gradviz"}

_DTYPES: Final = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "I16": np.dtype("<i2"),
    "U16": np.dtype("<u2"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "C64": np.dtype("<c8"),
    "C128": np.dtype("<c16"),
}
_NAMES: Final = {dtype: name for name, dtype in _DTYPES.items()}


class DamagedFileError(UserError):
    """A file is not one that `save` wrote, or not as it was."""


def save(obj: object, f: Place) -> None:
    """Write tensors to a file.

    Args:
        obj: A tensor, number, text, None, or lists, tuples and dicts of them to any
            depth: the ``state_dict`` of a module or an optimizer, say.
        f: A path, or a binary file that is open.

    Raises:
        TypeError: There is something else in `obj`.
    """
    tensors: dict[str, np.ndarray] = {}
    tree = _encode(obj, (), tensors)
    header: dict[str, Any] = {}
    begin = 0
    for name, array in tensors.items():
        end = begin + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    data = [array.tobytes() for array in tensors.values()]
    ours = {"tree": tree, "crc32": _checksum(header, tree, data)}
    metadata = {_OURS: json.dumps(ours), **_FORMAT}
    text = json.dumps({"__metadata__": metadata, **header}).encode()
    text += b" " * (-len(text) % 8)  # the elements begin at a multiple of 8
    contents = b"".join([_LENGTH.pack(len(text)), text, *data])
    if isinstance(f, (str, os.PathLike)):
        Path(f).write_bytes(contents)
    else:
        f.write(contents)


def load(
    f: Place,
    map_location: Device | str | None = None,
    *,
    weights_only: bool = True,
) -> Any:
    """Read what `save` wrote, or the tensors of any other safetensors file.

    Args:
        f: A path, or a binary file that is open.
        map_location: The device that the tensors are to be on; the CPU if not given,
            wherever they were when they were saved.
        weights_only: Only True is possible.

    Raises:
        DamagedFileError: The file is none of these, or is damaged.
        FileNotFoundError: There is no such file.
        ValueError: `weights_only` is false.
    """
    if not weights_only:
        raise ValueError(
            "gradviz.load never unpickles: weights_only=False is not possible"
        )
    if isinstance(f, (str, os.PathLike)):
        where, contents = str(f), Path(f).read_bytes()
    else:
        where, contents = getattr(f, "name", "the file"), f.read()
    try:
        return _decode_file(contents, map_location)
    except _DamageError as damage:
        raise DamagedFileError(
            f"{where} cannot be loaded: {damage}. Was it written by gv.save?"
        ) from None


class _DamageError(Exception):
    """What is wrong with a file."""


# --- writing ----------------------------------------------------------------------


def _encode(
    obj: object, path: tuple[str, ...], tensors: dict[str, np.ndarray]
) -> object:
    """`obj` as JSON, with its tensors put aside.

    None, bools, numbers and texts stand for themselves; everything else is a list with
    its kind at the front.
    """
    match obj:
        case Tensor():
            name = ".".join(path) or "tensor"
            while name in tensors or name == "__metadata__":
                name += "'"
            tensors[name] = _as_bytes(obj)
            return ["tensor", name]
        case None | bool() | int() | float() | str():
            return obj
        case np.generic():
            return obj.item()
        case Mapping():
            return [
                "dict",
                *(
                    [_key(key, path), _encode(value, (*path, str(key)), tensors)]
                    for key, value in obj.items()
                ),
            ]
        case list() | tuple():
            kind = "list" if isinstance(obj, list) else "tuple"
            return [
                kind,
                *(
                    _encode(value, (*path, str(place)), tensors)
                    for place, value in enumerate(obj)
                ),
            ]
        case _:
            raise TypeError(
                f"cannot save {type(obj).__name__}{_at(path)}: expected tensors, "
                f"numbers, texts, and lists and dicts of them; of a module or an "
                f"optimizer save its state_dict()"
            )


def _key(key: object, path: tuple[str, ...]) -> object:
    if key is None or isinstance(key, (str, int, float)):
        return key
    raise TypeError(
        f"cannot save a dict{_at(path)} with a key of type {type(key).__name__}: "
        f"expected texts or numbers"
    )


def _at(path: tuple[str, ...]) -> str:
    return f" at {'.'.join(path)!r}" if path else ""


def _as_bytes(tensor: Tensor) -> np.ndarray:
    array = backend_of(tensor.device).to_host(tensor.array)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(array.shape)


def _checksum(header: Mapping[str, Any], tree: object, data: list[bytes]) -> int:
    crc = zlib.crc32(json.dumps([header, tree], sort_keys=True).encode())
    for part in data:
        crc = zlib.crc32(part, crc)
    return crc


# --- reading ----------------------------------------------------------------------


def _decode_file(contents: bytes, device: Device | str | None) -> Any:
    header, data = _split(contents)
    metadata = header.pop("__metadata__", {})
    tensors = dict(_tensors(header, data))

    def tensor(name: str) -> Tensor:
        array = tensors.get(name)
        if array is None:
            raise _DamageError(f"it says nothing of the tensor {name!r}")
        made = from_numpy(array.copy())
        return made if device is None else made.to(device)

    if not isinstance(metadata, dict):
        raise _DamageError("its metadata are no dict")
    if (_OURS in metadata) != (_FORMAT.items() <= metadata.items()):
        raise _DamageError("its header is damaged")
    if _OURS not in metadata:
        return {name: tensor(name) for name in tensors}
    ours = _json(metadata[_OURS])
    try:
        tree, crc = ours["tree"], ours["crc32"]
    except (KeyError, TypeError):
        raise _DamageError("its header is damaged") from None
    if crc != _checksum(header, tree, [data]):
        raise _DamageError("its checksum is wrong, so something in it is, too")
    return _decode(tree, tensor)


def _split(contents: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the elements of all tensors."""
    if len(contents) < _LENGTH.size:
        raise _DamageError(f"it has only {len(contents)} bytes")
    (length,) = _LENGTH.unpack_from(contents)
    end = _LENGTH.size + length
    if length > _MAX_HEADER or end > len(contents):
        raise _DamageError(f"it claims a header of {length} bytes")
    header = _json(contents[_LENGTH.size : end])
    if not isinstance(header, dict):
        raise _DamageError("its header is no dict")
    return header, contents[end:]


def _json(text: object) -> Any:
    try:
        return json.loads(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError) as error:
        raise _DamageError(f"its header is damaged ({error})") from None


def _tensors(
    header: Mapping[str, Any], data: bytes
) -> Iterator[tuple[str, np.ndarray]]:
    """Each tensor of a file, checked against what the file holds."""
    expected = 0
    for name, entry in sorted(header.items(), key=lambda one: _begin(*one)):
        try:
            kind, shape = entry["dtype"], entry["shape"]
            begin, end = entry["data_offsets"]
            dtype = _DTYPES.get(kind)
            size = math.prod(shape) * (dtype.itemsize if dtype else 1)
        except (KeyError, TypeError, ValueError):
            raise _DamageError(
                f"what it says of the tensor {name!r} is damaged"
            ) from None
        if dtype is None:
            raise _DamageError(
                f"the tensor {name!r} is of type {kind}, which NumPy does not have"
            )
        if not all(type(one) is int and one >= 0 for one in (*shape, begin, end)):
            raise _DamageError(f"what it says of the tensor {name!r} is damaged")
        if begin != expected or end - begin != size or end > len(data):
            raise _DamageError(f"the tensor {name!r} is not where it should be")
        expected = end
        array = np.frombuffer(data, dtype, math.prod(shape), begin)
        yield name, array.reshape(shape).astype(dtype.newbyteorder("="))
    if expected != len(data):
        raise _DamageError("it is longer than its tensors")


def _begin(name: str, entry: Any) -> tuple[int, int]:
    try:
        begin, end = entry["data_offsets"]
        return int(begin), int(end)
    except (KeyError, TypeError, ValueError):
        raise _DamageError(f"what it says of the tensor {name!r} is damaged") from None


def _decode(tree: Any, tensor: Any) -> Any:
    """What `_encode` made of, given a function that returns tensors by their names."""
    match tree:
        case ["tensor", str(name)]:
            return tensor(name)
        case ["dict", *pairs]:
            return {key: _decode(value, tensor) for key, value in pairs}
        case ["list", *values]:
            return [_decode(value, tensor) for value in values]
        case ["tuple", *values]:
            return tuple(_decode(value, tensor) for value in values)
        case list():
            raise _DamageError("its header is damaged")
        case _:
            return tree
