import errno
import io
import json
import os
import pickle
import struct
import zlib

import numpy as np
import pytest

import gradviz as gv
from gradviz import nn
from gradviz.errors import UserError
from gradviz.nn.files import DamagedFileError

EVERYTHING = {
    "tensor": gv.tensor([[1.5, -2.0]]),
    "numbers": [1, 2.5, True, None, float("inf"), 10**30],
    "tuple": (gv.tensor(3), "text"),
    3: {"deep": [{"down": gv.zeros(0, 2)}]},
    "empty": {},
}


DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)


def saved(obj):
    file = io.BytesIO()
    gv.save(obj, file)
    return file.getvalue()


def loaded(contents):
    return gv.load(io.BytesIO(contents))


def plain(obj):
    """An object with its tensors as something that can be compared."""
    match obj:
        case gv.Tensor():
            return ("tensor", obj.dtype.name, tuple(obj.shape), obj.tolist())
        case dict():
            return {key: plain(value) for key, value in obj.items()}
        case list() | tuple():
            return type(obj)(map(plain, obj))
        case _:
            return obj


def test_everything_comes_back_as_it_was():
    assert plain(loaded(saved(EVERYTHING))) == plain(EVERYTHING)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_back(dtype):
    x = gv.tensor(np.array([0, 1, 3]).astype(dtype))

    assert plain(loaded(saved(x))) == plain(x)


def test_a_view_is_saved_as_what_it_shows():
    x = gv.arange(6).reshape(2, 3).t()

    assert loaded(saved(x)).tolist() == x.tolist()


def test_a_training_goes_on_where_it_was(tmp_path):
    def make():
        model = nn.Linear(2, 1)
        return model, gv.optim.Adam(model.parameters(), lr=0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(gv.ones(3, 2)).square().sum().backward()
        optimizer.step()

    model, optimizer = make()
    step(model, optimizer)
    path = tmp_path / "checkpoint.pt"
    gv.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    other, other_optimizer = make()

    checkpoint = gv.load(path, map_location="cpu", weights_only=True)
    other.load_state_dict(checkpoint["model"])
    other_optimizer.load_state_dict(checkpoint["optimizer"])
    step(model, optimizer)
    step(other, other_optimizer)

    assert other.weight.tolist() == model.weight.tolist()


def test_tensors_can_go_to_another_device():
    file = io.BytesIO(saved([gv.ones(2, device="sim:0")]))

    (x,) = gv.load(file, map_location="sim:1")

    assert str(x.device) == "sim:1"


def test_a_state_is_readable_by_whoever_reads_safetensors():
    contents = saved({"a.weight": gv.tensor([1.0, 2.0]), "b": gv.tensor([3])})
    (length,) = struct.unpack_from("<Q", contents)
    header = json.loads(contents[8 : 8 + length])

    assert header["a.weight"] == {
        "dtype": "F32",
        "shape": [2],
        "data_offsets": [0, 8],
    }
    assert (8 + length) % 8 == 0
    assert contents[8 + length :] == np.array([1, 2], "<f4").tobytes() + struct.pack(
        "<q", 3
    )


def test_a_file_of_another_program_is_a_dict_of_tensors():
    header = json.dumps(
        {"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    ).encode()

    contents = struct.pack("<Q", len(header)) + header + struct.pack("<f", 2.5)

    assert plain(loaded(contents)) == {"x": ("tensor", "float32", (1,), [2.5])}


@pytest.mark.parametrize("index", range(0, 400, 7))
def test_a_flipped_bit_is_noticed_or_harmless(index):
    good = saved({"weight": gv.tensor([1.0, 2.0]), "step": 3})
    damaged = bytearray(good)
    damaged[index % len(good)] ^= 1 << index % 8

    try:
        result = loaded(bytes(damaged))
    except DamagedFileError:
        return
    assert plain(result) == plain(loaded(good))


@pytest.mark.parametrize("length", [0, 1, 8, 9, 60, -1])
def test_a_cut_file_is_noticed(length):
    with pytest.raises(DamagedFileError, match="cannot be loaded"):
        loaded(saved(EVERYTHING)[:length])


def entry(dtype, shape, begin, end):
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}}


@pytest.mark.parametrize(
    ("header", "data", "words"),
    [
        ([], b"", "its header is not a dict"),
        ({"x": 3}, b"", "is damaged"),
        (entry("F32", [-1], 0, 0), b"", "is damaged"),
        (entry("F32", ["1"], 0, 4), b"1234", "is damaged"),
        (entry("F32", [1], 0, 8), b"12345678", "not where it should be"),
        (entry("F32", [9**9], 0, 4), b"1234", "not where it should be"),
        (entry("U8", [], 1, 2), b"12", "not where it should be"),
        (entry("BF16", [1], 0, 2), b"12", "of type 'BF16', which NumPy does not have"),
        ({}, b"1", "longer than its tensors"),
        ({"__metadata__": {"gradviz": "{}", "format": "gradviz"}}, b"", "damaged"),
        ({"__metadata__": {"format": "gradviz"}}, b"", "damaged"),
        ({"__metadata__": 3}, b"", "its metadata are damaged"),
    ],
    ids=str,
)
def test_a_header_that_lies_is_refused(header, data, words):
    text = json.dumps(header).encode()

    with pytest.raises(DamagedFileError, match=words):
        loaded(struct.pack("<Q", len(text)) + text + data)


def with_tree(tree):
    """A file of `save`'s, but for what its tree says."""
    metadata = {"gradviz": json.dumps({"tree": tree, "crc32": crc([{}, tree])})}
    metadata["format"] = "gradviz"
    text = json.dumps({"__metadata__": metadata}).encode()
    return struct.pack("<Q", len(text)) + text


def crc(value):
    return zlib.crc32(json.dumps(value, sort_keys=True).encode())


def nested(depth):
    tree = ["list"]
    for _ in range(depth):
        tree = ["list", tree]
    return tree


HUGE = 10**900
TREES = [
    ["dict", 3],
    ["dict", [1]],
    ["dict", [["list"], 1]],
    ["dict", [{}, 1]],
    ["dict", "ab"],
    ["tensor", 3],
    ["tensor", "x"],
    ["tensor"],
    ["frozenset", 1],
    [],
    {},
    {"a": 1},
    nested(500),
]
ENTRIES = [
    {"dtype": [], "shape": [], "data_offsets": [0, 0]},
    {"dtype": "F32", "shape": [], "data_offsets": [1e400, 4]},
    {"dtype": "F32", "shape": [], "data_offsets": ["0", "4"]},
    {"dtype": "F32", "shape": [], "data_offsets": [0, 4, 8]},
    {"dtype": "F32", "shape": [], "data_offsets": 4},
    {"dtype": "F32", "shape": [HUGE], "data_offsets": [0, HUGE]},
    {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]},
    {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]},
    {"dtype": "F32", "shape": [1] * 65, "data_offsets": [0, 4]},
    {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]},
    {"dtype": "F32", "shape": {"0": 1}, "data_offsets": [0, 4]},
    {"dtype": "F32", "shape": None, "data_offsets": None},
    {},
    None,
]


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: str(tree)[:30])
def test_a_tree_that_is_none_is_refused(tree):
    with pytest.raises(DamagedFileError, match="cannot be loaded"):
        loaded(with_tree(tree))


@pytest.mark.parametrize("one", ENTRIES, ids=lambda one: str(one)[:60])
def test_a_tensor_that_cannot_be_is_refused(one):
    text = json.dumps({"x": one}).encode()

    with pytest.raises(DamagedFileError, match="cannot be loaded"):
        loaded(struct.pack("<Q", len(text)) + text + b"1234")


@pytest.mark.parametrize("number", [b"1" * 4_000_000, b"1." + b"1" * 4_000_000])
def test_a_number_without_end_is_refused_before_it_is_read(number):
    text = b'{"x": ' + number + b"}"

    with pytest.raises(DamagedFileError, match=r"a number of 400000\d digits"):
        loaded(struct.pack("<Q", len(text)) + text)


def test_an_error_does_not_repeat_a_long_name():
    text = json.dumps({"x" * 100_000: None}).encode()

    with pytest.raises(DamagedFileError) as caught:
        loaded(struct.pack("<Q", len(text)) + text)
    assert len(str(caught.value)) < 400


def test_nested_values_are_loaded_up_to_a_depth_and_refused_beyond_it():
    def nest(depth):
        inner = []
        for _ in range(depth):
            inner = {"in": inner}
        return inner

    assert loaded(saved(nest(200))) == nest(200)
    with pytest.raises(ValueError, match="nested more than 200 deep, or holds itself"):
        saved(nest(201))
    circle = []
    circle.append(circle)
    with pytest.raises(ValueError, match="or holds itself"):
        saved(circle)


def test_a_number_that_load_would_refuse_is_not_saved():
    assert loaded(saved(-(10**998))) == -(10**998)
    for obj in (10**1000, {10**1000: 1}):
        with pytest.raises(ValueError, match="a number of more than 999 digits"):
            saved(obj)


def test_a_file_of_texts_is_no_binary_file():
    with pytest.raises(TypeError, match="open it with mode 'rb'"):
        gv.load(io.StringIO("text"))


def test_a_save_that_fails_leaves_the_checkpoint_that_was_there(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    gv.save({"w": gv.ones(2)}, path)
    before = path.read_bytes()

    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        gv.save({"w": gv.zeros(2)}, path)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_header_that_nests_for_ever_is_refused():
    text = b"[" * 100_000

    with pytest.raises(DamagedFileError):
        loaded(struct.pack("<Q", len(text)) + text)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    class Harm:
        def __reduce__(self):
            return (tmp_path.joinpath("harm").touch, ())

    with pytest.raises(UserError, match="cannot be loaded"):
        loaded(pickle.dumps(Harm()))
    assert not tmp_path.joinpath("harm").exists()


def test_unpickling_cannot_be_asked_for():
    with pytest.raises(ValueError, match="never unpickles"):
        gv.load(io.BytesIO(saved({})), weights_only=False)


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (nn.Linear(1, 1), "cannot save Linear: expected .* save its state_dict"),
        ({"a": [object()]}, "cannot save object at 'a.0'"),
        ({"a": {(1, 2): 3}}, "a dict at 'a' with a key of type tuple"),
    ],
)
def test_an_object_that_cannot_be_saved_is_named(obj, words):
    with pytest.raises(TypeError, match=words):
        saved(obj)


def test_a_file_that_is_not_there_is_python_s_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        gv.load(tmp_path / "nothing")


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"\x80\x02\x8a\nl\xfc"])
def test_a_file_of_torch_save_is_told_how_its_weights_get_here(tmp_path, start):
    path = tmp_path / "weights.pt"
    path.write_bytes(start + bytes(100))

    with pytest.raises(DamagedFileError, match=r"value.numpy\(\) for name, value"):
        gv.load(path)


def test_a_header_whose_length_looks_like_a_pickle_is_read():
    for width in range(700):  # until the length is 640, 80 02 in the file
        file = io.BytesIO()
        gv.save({"x" * width: gv.ones(1)}, file)
        if file.getvalue().startswith(b"\x80\x02"):
            break
    else:
        pytest.fail("no header has that length")

    file.seek(0)
    assert next(iter(gv.load(file).values())).tolist() == [1]
