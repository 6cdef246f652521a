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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, TypeVar

import msgspec
import numpy as np

from gradviz.backends.base import backend_of
from gradviz.backends.device import Device
from gradviz.errors import UserError
from gradviz.tensors.creation.from_data import from_numpy
from gradviz.tensors.tensor import Tensor
from gradviz.trace.format.atomic_file import write_whole

#: Path of a file, or an open one.
FileLike = str | os.PathLike[str] | BinaryIO

_Number = TypeVar("_Number", int, float)
_Value = TypeVar("_Value")

_LENGTH: Final = struct.Struct("<Q")
#: The format's own limit.
_MAX_HEADER: Final = 100_000_000
#: NumPy knows no more.
_MAX_DIMENSIONS: Final = 64
#: Maximum nesting of lists and dicts.
_MAX_DEPTH: Final = 200
#: Of a number, its sign included. Reading longer ones takes ever longer for each digit.
_MAX_DIGITS: Final = 1_000
_MAX_INT: Final = 10 ** (_MAX_DIGITS - 1)
#: Maximum length of a name in an error.
_MAX_SHOWN: Final = 100
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
#: First bytes of files of torch.save: archives, and pickles before there were any.
_PICKLES: Final = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_NAMES: Final = {dtype: name for name, dtype in _DTYPES.items()}


class DamagedFileError(UserError):
    """A file is not one that `save` wrote, or not as it was."""


def save(obj: object, f: FileLike) -> None:
    """Write tensors to a file.

    A file is there as a whole or not at all: whatever fails, the one that was there
    before stays. A symbolic link is replaced, not followed.

    Args:
        obj: A tensor, number, text, None, or lists, tuples and dicts of them to any
            depth: the ``state_dict`` of a module or an optimizer, say.
        f: A path, or a binary file that is open.

    Raises:
        TypeError: There is something else in `obj`.
        ValueError: It is nested too deeply, or holds itself.
        OSError: The file could not be written.
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
    contents = [_LENGTH.pack(len(text)), text, *data]
    if isinstance(f, (str, os.PathLike)):
        write_whole(Path(f), contents)
    else:
        f.write(b"".join(contents))


def load(
    f: FileLike,
    map_location: Device | str | None = None,
    *,
    weights_only: bool = True,
) -> Any:
    """Read a file of `save`, or the tensors of any other safetensors file.

    Args:
        f: A path, or a binary file that is open.
        map_location: The device that the tensors are to be on; the CPU if not given,
            wherever they were when they were saved.
        weights_only: Only True is possible.

    Raises:
        DamagedFileError: The file is none of these, or is damaged. Of one that
            PyTorch wrote it says how its weights get here.
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
    if not isinstance(contents, bytes):
        raise TypeError(f"{where} is not a binary file: open it with mode 'rb'")
    try:
        return _decode_file(contents, map_location)
    except _DamageError as damage:
        # Only now: a file that can be read may begin with any bytes.
        if contents.startswith(_PICKLES):
            raise DamagedFileError(
                f"{where} cannot be loaded: torch.save wrote it, or another pickle or "
                f"archive, and gradviz never unpickles. Where torch is installed, say "
                f"state = torch.load(path, weights_only=True) and "
                f"module.load_state_dict({{name: value.numpy() for name, value in "
                f"state.items()}}), or write safetensors.torch.save_file(state, "
                f"new_path), which gv.load reads"
            ) from None
        raise DamagedFileError(
            f"{where} cannot be loaded: {damage}. Was it written by gv.save?"
        ) from None


class _DamageError(Exception):
    """A defect of a file."""


# --- writing ----------------------------------------------------------------------


def _encode(
    obj: object, path: tuple[str, ...], tensors: dict[str, np.ndarray]
) -> object:
    """`obj` as JSON, with its tensors put aside.

    None, bools, numbers and texts stand for themselves; everything else is a list with
    its kind at the front.
    """
    if len(path) > _MAX_DEPTH:
        raise ValueError(
            f"cannot save what is nested more than {_MAX_DEPTH} deep, or holds itself"
        )
    match obj:
        case Tensor():
            name = ".".join(path) or "tensor"
            while name in tensors or name == "__metadata__":
                name += "'"
            tensors[name] = _as_bytes(obj)
            return ["tensor", name]
        case int() if abs(obj) >= _MAX_INT:
            raise ValueError(
                f"cannot save a number of more than {_MAX_DIGITS - 1} digits{_at(path)}"
            )
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
        return _encode(key, (*path, "a key"), {})
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

_Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _TensorEntry(msgspec.Struct):
    """A header's entry for a tensor."""

    dtype: str
    shape: Annotated[list[_Size], msgspec.Meta(max_length=_MAX_DIMENSIONS)]
    data_offsets: tuple[_Size, _Size]


class _Ours(msgspec.Struct):
    """Fields that `save` adds to the header."""

    tree: Any
    crc32: int


def _decode_file(contents: bytes, device: Device | str | None) -> Any:
    header, data = _split(contents)
    metadata = _as(dict[str, str], header.pop("__metadata__", {}), "its metadata are")
    tensors = dict(_tensors(header, data))

    def tensor(name: str) -> Tensor:
        array = tensors.get(name)
        if array is None:
            raise _DamageError(f"it says nothing of the tensor {_cut(name)}")
        made = from_numpy(array.copy())
        return made if device is None else made.to(device)

    if (_OURS in metadata) != (_FORMAT.items() <= metadata.items()):
        raise _DamageError("its header is damaged")
    if _OURS not in metadata:
        return {name: tensor(name) for name in tensors}
    ours = _as(_Ours, _json(metadata[_OURS]), "its header is")
    _check_depth(ours.tree)
    if ours.crc32 != _checksum(header, ours.tree, [data]):
        raise _DamageError("its checksum is wrong, so something in it is, too")
    return _decode(ours.tree, tensor)


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
        raise _DamageError("its header is not a dict")
    return header, contents[end:]


def _json(text: bytes | str) -> Any:
    """JSON, with numbers that are read in no time, however long they are."""
    try:
        return json.loads(
            text, parse_int=_number_reader(int), parse_float=_number_reader(float)
        )
    except (ValueError, RecursionError) as error:
        raise _DamageError(f"its header is damaged ({error})") from None


def _number_reader(kind: Callable[[str], _Number]) -> Callable[[str], _Number]:
    def read(digits: str) -> _Number:
        if len(digits) > _MAX_DIGITS:
            raise ValueError(f"a number of {len(digits)} digits")
        return kind(digits)

    return read


def _as(kind: type[_Value], value: object, what: str) -> _Value:
    """Return `value` if it has the expected type; `what` names it in errors."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _DamageError(f"{what} damaged ({error})") from None


def _tensors(
    header: Mapping[str, Any], data: bytes
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each tensor of a file, checked against the file's size."""
    entries = {
        name: _as(_TensorEntry, entry, f"what it says of the tensor {_cut(name)} is")
        for name, entry in header.items()
    }
    expected = 0
    for name, entry in sorted(entries.items(), key=lambda one: one[1].data_offsets):
        if (dtype := _DTYPES.get(entry.dtype)) is None:
            raise _DamageError(
                f"the tensor {_cut(name)} is of type {_cut(entry.dtype)}, which NumPy "
                f"does not have"
            )
        begin, end = entry.data_offsets
        count = math.prod(entry.shape)
        if (
            begin != expected
            or end - begin != count * dtype.itemsize
            or end > len(data)
        ):
            raise _DamageError(f"the tensor {_cut(name)} is not where it should be")
        expected = end
        try:
            array = np.frombuffer(data, dtype, count, begin).reshape(entry.shape)
        except ValueError as error:  # no elements, but of dimensions beyond all measure
            raise _DamageError(f"the tensor {_cut(name)} cannot be ({error})") from None
        yield name, array.astype(dtype.newbyteorder("="))
    if expected != len(data):
        raise _DamageError("it is longer than its tensors")


def _cut(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "...")


def _check_depth(tree: object) -> None:
    """Refuse deeper nesting than `save` writes."""
    level = [tree]
    for _ in range(2 * (_MAX_DEPTH + 2)):  # a dict is a list of pairs
        level = [
            one
            for outer in level
            if isinstance(outer, (list, dict))
            for one in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise _DamageError("its header is nested too deeply")


def _decode(tree: Any, tensor: Callable[[str], Tensor]) -> Any:
    """Invert `_encode`, given a function that returns tensors by their names."""
    match tree:
        case ["tensor", str(name)]:
            return tensor(name)
        case ["dict", *pairs]:
            return dict(_pair(pair, tensor) for pair in pairs)
        case ["list", *values]:
            return [_decode(value, tensor) for value in values]
        case ["tuple", *values]:
            return tuple(_decode(value, tensor) for value in values)
        case list() | dict():
            raise _DamageError("its header is damaged")
        case _:
            return tree


def _pair(pair: Any, tensor: Callable[[str], Tensor]) -> tuple[Any, Any]:
    match pair:
        case [None | str() | int() | float() as key, value]:
            return key, _decode(value, tensor)
        case _:
            raise _DamageError("its header is damaged")
