import numpy as np
import pytest

import gradviz as gv

SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((2, 2, 3), (3,)),
    ((2, 2, 3), (3, 4)),
    ((3,), (2, 3, 4)),
    ((2, 3), (2, 3, 4)),
    ((2, 2, 3), (2, 3, 4)),
    ((4, 1, 2, 3), (2, 3, 4)),
    ((2, 0), (0, 3)),
]


@pytest.mark.parametrize("needs_grad", [False, True])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_a_product_is_numpys_for_any_numbers_of_dimensions(left, right, needs_grad):
    random = np.random.default_rng(0)
    a, b = random.standard_normal(left), random.standard_normal(right)
    x, y = (gv.tensor(one, requires_grad=needs_grad) for one in (a, b))

    np.testing.assert_allclose((x @ y).detach().numpy(), a @ b)


def test_matrices_that_do_not_fit_are_named():
    with pytest.raises(RuntimeError) as caught:
        gv.ones(2, 3) @ gv.ones(4, 5)
    assert (
        str(caught.value) == "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"
    )


def test_matrices_of_different_dtypes_do_not_multiply():
    with pytest.raises(RuntimeError, match="same dtype, but got: float != double"):
        gv.ones(2, 2) @ gv.ones(2, 2, dtype=gv.float64)


def test_an_op_says_how_many_dimensions_it_expects():
    with pytest.raises(RuntimeError, match="self must be a matrix"):
        gv.mm(gv.ones(2), gv.ones(2, 2))
    with pytest.raises(RuntimeError, match="they are 0D and 1D"):
        gv.tensor(1.0) @ gv.ones(2)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 3)])
def test_a_linear_layer_is_a_product_and_a_sum(shape):
    random = np.random.default_rng(0)
    x, w, b = (random.standard_normal(size) for size in (shape, (5, 3), (5,)))

    result = gv.linear(gv.tensor(x), gv.tensor(w), gv.tensor(b))

    np.testing.assert_allclose(result.numpy(), x @ w.T + b)


FACTORS = gv.tensor([[4.0, 1.0, -0.5], [0.5, -3.0, 1.0]], dtype=gv.float64)


@pytest.mark.parametrize("full_matrices", [False, True])
def test_singular_vectors_and_values_make_up_the_matrix(full_matrices):
    u, s, vh = gv.linalg.svd(FACTORS, full_matrices)

    product = u @ gv.diag(s) @ vh[:2]
    np.testing.assert_allclose(product.numpy(), FACTORS.numpy())
    assert vh.shape == ((3, 3) if full_matrices else (2, 3))


def test_eigenvectors_are_orthonormal_and_belong_to_eigenvalues():
    matrix = FACTORS @ FACTORS.T
    result = gv.linalg.eigh(matrix)

    left = (matrix @ result.eigenvectors).numpy()
    right = (result.eigenvectors * result.eigenvalues).numpy()
    np.testing.assert_allclose(left, right)


def test_the_gradient_of_a_singular_matrixs_determinant_is_its_cofactors():
    matrix = gv.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)

    gv.linalg.det(matrix).backward()

    np.testing.assert_allclose(matrix.grad.numpy(), [[4, -2], [-2, 1]], rtol=1e-5)


def test_a_singular_matrix_is_named_with_its_place_in_the_batch():
    batch = gv.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]])

    with pytest.raises(gv.linalg.LinAlgError) as caught:
        gv.linalg.inv(batch)

    assert str(caught.value) == (
        "linalg.inv: (Batch element 1): The diagonal element 2 is zero, the inversion "
        "could not be completed because the input matrix is singular."
    )


def test_a_triangle_with_a_zero_on_its_diagonal_divides_by_it():
    result = gv.linalg.solve_triangular(
        gv.tensor([[1.0, 1.0], [0.0, 0.0]]), gv.tensor([[1.0], [2.0]]), upper=True
    )

    assert result.tolist() == [[-np.inf], [np.inf]]


def test_factors_of_a_qr_without_q_have_no_gradient():
    matrix = gv.ones(3, 2, requires_grad=True)

    with pytest.raises(RuntimeError, match="which is not computed when mode='r'"):
        gv.linalg.qr(matrix, mode="r").R.sum().backward()


def test_equations_may_be_written_as_lists():
    x, y = gv.ones(2, 3), gv.ones(3, 4)

    assert gv.einsum(x, [0, 1], y, [1, 2], [0, 2]).tolist() == [[3] * 4] * 2
    assert gv.einsum(x, [Ellipsis, 1]).shape == (2, 3)


def test_a_chain_of_products_takes_the_cheapest_order():
    narrow = gv.ones(30, 1, requires_grad=True)

    result = gv.linalg.multi_dot([narrow, gv.ones(1, 30), gv.ones(30, 1)])

    product = result.grad_fn.next_functions[0][0]
    assert [node and node.name() for node, _ in product.next_functions] == [
        "AccumulateGrad",
        None,
    ]


@pytest.mark.parametrize("device", ["cpu", "sim:0"])
def test_a_backward_at_a_singular_matrix_gives_no_numbers_and_no_error(device):
    x = gv.tensor([[1.0, 2.0], [2.0, 4.0]], device=device, requires_grad=True)

    gv.linalg.slogdet(x).logabsdet.backward()

    assert not gv.isfinite(x.grad).any().item()


@pytest.mark.parametrize("device", ["cpu", "sim:0"])
def test_inv_ex_says_which_pivot_is_zero(device):
    x = gv.tensor([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 2.0]]], device=device)

    assert gv.linalg.inv_ex(x).info.tolist() == [2, 0]
    assert gv.linalg.inv_ex(x[1]).inverse.tolist() == [[0.5, 0.0], [0.0, 0.5]]
    with pytest.raises(gv.linalg.LinAlgError, match="diagonal element 2 is zero"):
        gv.linalg.inv_ex(x, check_errors=True)


def test_the_inverse_by_a_singular_factor_names_the_pivot():
    with pytest.raises(gv.linalg.LinAlgError) as caught:
        gv.cholesky_inverse(gv.tensor([[1.0, 0.0], [2.0, 0.0]]))
    assert (
        str(caught.value) == "cholesky_inverse: The diagonal element 2 is zero, the "
        "inversion could not be completed because the input matrix is singular."
    )
