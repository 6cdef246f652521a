"""Every op of the table against PyTorch: values, gradients, graphs, errors."""

import warnings

import numpy as np
import pytest

import gradviz as gv
from tests.ops.cases.case import tensors_in
from tests.ops.cases.each_op import each_op, try_all
from tests.ops.cases.elementwise import EDGES
from tests.ops.cases.table import CASES, REFUSED

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.parity,
    # PyTorch warns of complex numbers made real, and of what it will remove.
    pytest.mark.filterwarnings("ignore:::torch"),
    pytest.mark.filterwarnings("ignore:Casting complex values to real:UserWarning"),
]

#: How exact each dtype is, as a multiple of `Case.rtol`.
COARSENESS = {"float16": 2e9, "float32": 2e6, "complex64": 2e6}

EVERY = [(case, dtype) for case in CASES if not case.differs for dtype in case.dtypes]


def tensors(world, case, arrays):
    """Tensors for the array arguments of a case, the same numbers in both worlds."""
    return [
        make(world, array).requires_grad_(wanted and array.dtype.kind in "fc")
        for array, wanted in zip(arrays, case.differentiated(), strict=True)
    ]


def make(world, array):
    """A tensor of its own memory."""
    return (torch.from_numpy if world is torch else gv.as_tensor)(array.copy())


def numbers(x):
    """The elements of a tensor of either world."""
    x = x.detach()
    if isinstance(x, torch.Tensor):
        x = torch.zeros(x.shape, dtype=x.dtype) if x._is_zerotensor() else x
        x = x.resolve_conj().resolve_neg()
    return x.numpy()


def weights(world, result, seed):
    """A gradient for a result, the same in both worlds."""
    random = np.random.default_rng(seed)
    shape = tuple(result.shape)
    array = random.uniform(-1, 1, shape)
    dtype = numbers(result).dtype
    if dtype.kind == "c":
        array = array + 1j * random.uniform(-1, 1, shape)
    return make(world, np.asarray(array).astype(dtype))


def graph(node):
    """The names of a node and of all before it, nested."""
    if node is None:
        return None
    name = node.name() if callable(node.name) else node.name
    return (
        name.rpartition("::")[2],
        *(graph(before) for before, _ in node.next_functions),
    )


def gradients(world, results, inputs, seed, *, create_graph):
    """Those of the results that need one, with respect to the inputs that do."""
    results = [one for one in results if one.requires_grad]
    if not results or not inputs:
        return []
    found = world.autograd.grad(
        results,
        inputs,
        [weights(world, one, seed + i) for i, one in enumerate(results)],
        create_graph=create_graph,
        allow_unused=True,
    )
    return list(found)


def assert_same(ours, theirs, rtol):
    """Two tensors agree; None agrees with zeros."""
    if ours is None or theirs is None:
        present = theirs if ours is None else ours
        assert present is None or np.all(np.abs(numbers(present)) < 1e-12)
        return
    a, b = numbers(ours), numbers(theirs)
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    rtol *= COARSENESS.get(b.dtype.name, 1)
    if a.dtype.kind in "fc":
        wide = np.result_type(a, np.float64)
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1)
        np.testing.assert_allclose(
            a.astype(wide), b.astype(wide), rtol=rtol, atol=rtol * min(scale, 1e4)
        )
    else:
        np.testing.assert_array_equal(a, b)


@each_op(EVERY, every=3)
def test_an_op_does_what_it_does_in_pytorch(tries):
    try_all(tries, check)


def check(case, dtype):
    arrays = case.arrays(dtype)
    inputs = {world: tensors(world, case, arrays) for world in (gv, torch)}
    rtol = case.rtol

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = tensors_in(case.call(torch, inputs[torch]))
    results = tensors_in(case.call(gv, inputs[gv]))

    assert len(results) == len(expected)
    for ours, theirs in zip(results, expected, strict=True):
        assert_same(ours, theirs, rtol)
        assert ours.requires_grad == theirs.requires_grad
        if case.graph:
            assert graph(ours.grad_fn) == graph(theirs.grad_fn)
        elif theirs.grad_fn:
            assert graph(ours.grad_fn)[0] == graph(theirs.grad_fn)[0]

    second = case.second and dtype in ("float64", "complex128")
    firsts = {}
    for world, outputs in ((gv, results), (torch, expected)):
        wanted = [one for one in inputs[world] if one.requires_grad]
        firsts[world] = gradients(world, outputs, wanted, 10, create_graph=second)
    for ours, theirs in zip(firsts[gv], firsts[torch], strict=True):
        wanted = theirs
        if is_edges(arrays) and theirs is not None:
            wanted = with_elements_alone(case, arrays[0], ours, theirs)
        assert_same(ours, wanted, 10 * rtol)

    if second:
        seconds = {}
        for world, first in firsts.items():
            outputs = [one for one in first if one is not None]
            wanted = [one for one in inputs[world] if one.requires_grad]
            seconds[world] = gradients(
                world, outputs, wanted, 20, create_graph=False
            ) or [None] * len(wanted)
        for ours, theirs in zip(seconds[gv], seconds[torch], strict=True):
            assert_same(ours, theirs, 100 * rtol)


def is_edges(arrays):
    """Tell if the argument is the numbers at which functions bend, jump or end."""
    return len(arrays) == 1 and np.array_equal(arrays[0], EDGES, equal_nan=True)


def with_elements_alone(case, array, ours, theirs):
    """PyTorch's gradient, or that of an element alone where ours is that.

    Some of its kernels treat NaN and -0.0 otherwise where they take several elements at
    once than where they take one; which do depends on the processor.
    """
    weight, found = weights(torch, theirs, 10), theirs.clone()
    for place, mine in enumerate(numbers(ours)):
        (x,) = tensors(torch, case, [array[place : place + 1]])
        (y,) = tensors_in(case.call(torch, [x]))
        (alone,) = torch.autograd.grad(y, x, weight[place : place + 1])
        if np.array_equal(numbers(alone), [mine], equal_nan=True):
            found[place] = alone[0]
    return found


@each_op((one,) for one in REFUSED if one.same)
def test_a_wrong_call_is_refused_in_the_same_words(tries):
    try_all(tries, check_refusal)


def check_refusal(refused):
    with pytest.raises(refused.error) as theirs:
        refused.call(torch, torch.from_numpy)
    with pytest.raises(refused.error) as ours:
        refused.call(gv, gv.as_tensor)

    assert type(ours.value) is type(theirs.value)
    assert str(ours.value) == str(theirs.value)
