import pytest

import gradviz as gv


@pytest.mark.parametrize(
    "make",
    [
        lambda out: gv.zeros(4, out=out),
        lambda out: gv.arange(4, out=out),
        lambda out: gv.full((4,), 3, out=out),
        lambda out: gv.linspace(0, 1, 4, out=out),
        lambda out: gv.rand(4, out=out),
        lambda out: gv.randint(0, 5, (4,), out=out),
        lambda out: gv.randperm(4, out=out),
        lambda out: gv.bernoulli(gv.ones(4, dtype=gv.float64), out=out),
        lambda out: gv.special.erf(gv.ones(4), out=out),
    ],
)
def test_results_are_written_to_out_in_its_dtype(make):
    out = gv.full((4,), -1.0, dtype=gv.float64)

    assert make(out) is out
    assert -1.0 not in out.tolist()
    assert out.dtype == gv.float64


def test_the_result_decides_on_the_shape_of_out():
    assert gv.ones(2, 2, out=gv.zeros(3)).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_another_dtype_is_refused():
    with pytest.raises(RuntimeError, match="dtype Double does not match dtype of out"):
        gv.ones(3, dtype=gv.float64, out=gv.zeros(3))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: gv.ones(3, out=x),
        lambda x: gv.exp(x, out=gv.zeros(3)),
        lambda x: gv.linalg.vector_norm(x, out=gv.zeros(())),
    ],
)
def test_out_is_refused_where_gradients_are_wanted(compute):
    with pytest.raises(RuntimeError, match=r"with out=\.\.\. arguments don't support"):
        compute(gv.zeros(3, requires_grad=True))


def test_several_results_go_to_several_tensors():
    q, r = gv.zeros(2, 2), gv.zeros(2, 2)

    result = gv.linalg.qr(gv.eye(2) * 2, out=(q, r))

    assert result.Q is q
    assert gv.allclose(q @ r, gv.eye(2) * 2)


@pytest.mark.parametrize(
    ("call", "out", "words"),
    [
        (gv.argmax, gv.zeros(0), "to have dtype long int, but got float instead"),
        (
            gv.neg,
            gv.zeros(0, dtype=gv.float64),
            "Found dtype Double but expected Float",
        ),
        (gv.exp, gv.zeros(0, dtype=gv.int64), "Float can't be cast .* type Long"),
    ],
)
def test_an_out_of_a_dtype_that_does_not_fit_is_refused_and_not_changed(
    call, out, words
):
    with pytest.raises(RuntimeError, match=words):
        call(gv.tensor([1.0, 2.0]), out=out)
    assert out.shape == (0,)
    assert out._version == 0


def test_a_sum_is_computed_in_the_dtype_of_its_out():
    out = gv.zeros(0, dtype=gv.int64)
    assert gv.sum(gv.tensor([0.5, 1.75]), 0, out=out).item() == 1
