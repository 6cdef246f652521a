import pytest

import gradviz as gv

#: Calls of all functions that make tensors, to which options are added.
CALLS = {
    "arange": lambda **options: gv.arange(3.0, **options),
    "as_tensor": lambda **options: gv.as_tensor([1.0], **options),
    "asarray": lambda **options: gv.asarray([1.0], **options),
    "empty": lambda **options: gv.empty(2, 3, **options),
    "empty_like": lambda **options: gv.empty_like(gv.ones(2), **options),
    "eye": lambda **options: gv.eye(2, **options),
    "full": lambda **options: gv.full((2, 3), 1.0, **options),
    "full_like": lambda **options: gv.full_like(gv.ones(2), 1.0, **options),
    "linspace": lambda **options: gv.linspace(0, 1, 3, **options),
    "logspace": lambda **options: gv.logspace(0, 1, 3, **options),
    "new_empty": lambda **options: gv.ones(2).new_empty(2, **options),
    "new_full": lambda **options: gv.ones(2).new_full((2,), 1.0, **options),
    "new_ones": lambda **options: gv.ones(2).new_ones(2, **options),
    "new_tensor": lambda **options: gv.ones(2).new_tensor([1.0], **options),
    "new_zeros": lambda **options: gv.ones(2).new_zeros(2, **options),
    "normal": lambda **options: gv.normal(0.0, 1.0, (2,), **options),
    "ones": lambda **options: gv.ones(2, 3, **options),
    "ones_like": lambda **options: gv.ones_like(gv.ones(2), **options),
    "rand": lambda **options: gv.rand(2, 3, **options),
    "rand_like": lambda **options: gv.rand_like(gv.ones(2), **options),
    "randint": lambda **options: gv.randint(3, (2,), **options),
    "randint_like": lambda **options: gv.randint_like(gv.ones(2), 3, **options),
    "randn": lambda **options: gv.randn(2, 3, **options),
    "randn_like": lambda **options: gv.randn_like(gv.ones(2), **options),
    "randperm": lambda **options: gv.randperm(3, **options),
    "scalar_tensor": lambda **options: gv.scalar_tensor(1.0, **options),
    "tensor": lambda **options: gv.tensor([1.0], **options),
    "tril_indices": lambda **options: gv.tril_indices(2, 2, **options),
    "triu_indices": lambda **options: gv.triu_indices(2, 2, **options),
    "zeros": lambda **options: gv.zeros(2, 3, **options),
    "zeros_like": lambda **options: gv.zeros_like(gv.ones(2), **options),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_option_is_an_error_and_draws_nothing(name):
    before = gv.get_rng_state()

    with pytest.raises(
        TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'nonsense'"
    ):
        CALLS[name](nonsense=1)

    assert gv.get_rng_state() == before


@pytest.mark.parametrize("name", CALLS)
def test_a_dtype_and_a_device_can_be_given(name):
    made = CALLS[name](dtype=gv.float64, device="cpu")

    assert made.dtype == gv.float64


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"requires_grad": 1}, "bool, not int"),
        ({"pin_memory": "yes"}, "bool, not str"),
        ({"layout": 1}, "gradviz.layout, not int"),
        ({"device": 1.5}, "gradviz.device, not float"),
        ({"generator": 1}, "gradviz.Generator, not int"),
    ],
)
def test_an_option_of_another_type_is_an_error(options, expected):
    (name,) = options
    with pytest.raises(TypeError, match=rf"'{name}' must be {expected}"):
        gv.rand(2, **options)


@pytest.mark.parametrize(
    "function", [gv.zeros, gv.ones, gv.empty, gv.rand, gv.randn, gv.ones(1).new_zeros]
)
def test_a_shape_is_given_by_name_too(function):
    assert function(size=(2, 3)).shape == (2, 3)
    assert function((2, 3)).shape == function(2, 3).shape == (2, 3)
    assert function(()).shape == ()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (gv.zeros, 'zeros() missing 1 required positional arguments: "size"'),
        (lambda: gv.rand(2, size=(2,)), "rand() got multiple values for argument 'si"),
        (lambda: gv.ones(2.0), "'size' (position 1) must be tuple of ints, not float"),
        (lambda: gv.full(2, 1.0), "'size' (position 1) must be tuple of ints, not int"),
        (gv.arange, "arange() received an invalid combination of arguments"),
        (lambda: gv.arange(1, 2, 3, 4), "got (int, int, int, int), but expected"),
        (lambda: gv.arange(1, 2, start=0), "got (int, int, start=int), but expected"),
        (lambda: gv.randint(3), "randint() received an invalid combination of argu"),
        (lambda: gv.randint(1, 3, (2,), 4), "randint() received an invalid combinat"),
        (lambda: gv.normal(0.0, 1.0), "normal() received an invalid combination of"),
        (lambda: gv.asarray(obj=[1.0], nonsense=1), "unexpected keyword argument"),
    ],
)
def test_missing_and_extra_arguments_raise_errors(call, message):
    with pytest.raises(TypeError) as caught:
        call()

    assert message in str(caught.value)


def test_a_negative_length_is_an_error_that_draws_nothing():
    before = gv.get_rng_state()

    with pytest.raises(RuntimeError, match=r"negative dimension -1: \[2, -1\]"):
        gv.rand(2, -1)

    assert gv.get_rng_state() == before


def test_bounds_have_names():
    assert gv.arange(end=3).tolist() == gv.arange(0, end=3).tolist() == [0, 1, 2]
    assert gv.arange(start=1, end=5, step=2).tolist() == [1, 3]
    assert gv.randint(low=3, high=4, size=(2,)).tolist() == [3, 3]
    assert gv.randint(high=1, size=(2,)).tolist() == [0, 0]
    assert gv.randint(3, high=4, size=(2,)).tolist() == [3, 3]


def test_asarray_says_whether_memory_is_shared():
    x = gv.ones(2, requires_grad=True)
    y = x * 2

    assert gv.asarray(y, copy=True).data_ptr() != y.data_ptr()
    assert not gv.asarray(y).requires_grad
    assert gv.asarray(y, requires_grad=True).is_leaf
    with pytest.raises(ValueError, match="can't alias"):
        gv.asarray([1.0], copy=False)


def test_out_may_say_the_device_that_it_is_on():
    out = gv.ones(2)

    assert gv.zeros(2, out=out, device="cpu") is out
    with pytest.raises(RuntimeError, match="does not match device of out"):
        gv.zeros(2, out=out, device="sim:0")


def test_the_old_constructor_takes_a_device_and_nothing_else_by_name():
    assert gv.Tensor(2, 3, device="cpu").shape == (2, 3)
    with pytest.raises(TypeError, match=r"new\(\) received an invalid combination"):
        gv.Tensor(2, nonsense=1)
    with pytest.raises(TypeError, match="nonsense"):
        gv.FloatTensor(2, nonsense=1)
