"""Sums of products, by an equation: ``einsum("ij,jk->ik", a, b)``.

Note [Einsum]
~~~~~~~~~~~~~
All operands get the same dimensions, in one order: first those of the result, then
those that are summed; one that an operand lacks has length 1 there. Then operands are
combined from left to right. A dimension that no later operand has is summed in passing:
the two are seen as batches of matrices, and the sum as their product.
Source: aten/src/ATen/native/Linear.cpp, einsum and sumproduct_pair.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple

from gradviz.ops.algebra.products import bmm
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import mul
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.diagonals import diagonal
from gradviz.ops.shapes.permutation import movedim, permute
from gradviz.ops.shapes.shape import reshape, view
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.variable import Value, Variable, raw

#: Stand-in for the ellipsis in a list of subscripts.
ELLIPSIS: Final = "..."


class Equation(NamedTuple):
    """Subscripts: letters, and at most one `ELLIPSIS` for each operand.

    Attributes:
        operands: Of each operand.
        output: Of the result.
    """

    operands: list[list[str]]
    output: list[str]


def einsum(*args: Variable | str | Sequence[Any]) -> Value:
    """The sum of products of elements that an equation describes.

    Args:
        *args: An equation and operands, as in ``einsum("ij,jk->ik", a, b)``; or
            operands, each followed by a list of the numbers of its subscripts, and
            perhaps such a list for the result.

    Raises:
        ValueError: There is no equation, or no operand.
        RuntimeError: The equation is malformed, or does not fit the operands.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or "
            "at least one operand and its subscripts list"
        )
    if not isinstance(args[0], str):
        return einsum(*_from_lists(args))
    text, operands = args[0], list(args[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    left, arrow, right = text.partition("->")
    _check_letters(text, left + arrow)
    subscripts = _parse_operands(left, len(operands))
    _check_ranks(subscripts, [raw(operand).ndim for operand in operands])
    output = _parse_output(right) if arrow else _implied_output(subscripts)
    equation = Equation(subscripts, output)
    _check_output(equation)
    return _evaluated(equation, operands)


def _evaluated(equation: Equation, operands: Sequence[Value]) -> Value:
    """See Note [Einsum]."""
    width = max(
        [
            raw(operand).ndim - len(labels) + 1
            for labels, operand in zip(equation.operands, operands, strict=True)
            if ELLIPSIS in labels
        ],
        default=0,
    )
    order = _ordered(equation, width)
    num_kept = len(_spelled(equation.output, width))
    aligned = [
        _aligned(operand, labels, order, width, number)
        for number, (labels, operand) in enumerate(
            zip(equation.operands, operands, strict=True)
        )
    ]
    _check_sizes(equation, operands, width)
    return _combined(aligned, num_kept)


def _combined(operands: list[Value], num_kept: int) -> Value:
    """Operands with the same dimensions, multiplied, and summed but for the first."""
    ndim = raw(operands[0]).ndim
    summed = range(num_kept, ndim)
    if len(operands) == 1:
        return sum_of(operands[0], tuple(summed)) if summed else operands[0]
    counts = {
        dim: sum(raw(operand).shape[dim] != 1 for operand in operands) for dim in summed
    }
    result = operands[0]
    for operand in operands[1:]:
        only_left, only_right, both = _summable(result, operand, counts)
        if only_left:
            result = sum_of(result, only_left, keepdim=True)
        if only_right:
            operand = sum_of(operand, only_right, keepdim=True)  # noqa: PLW2901 - the same, less
        result = _paired(result, operand, both) if both else mul(result, operand)
    return view(result, raw(result).shape[:num_kept]) if summed else result


def _summable(
    left: Value, right: Value, counts: dict[int, int]
) -> tuple[Shape, Shape, Shape]:
    """Dimensions that no later operand has: of one of the two, or of both.

    `counts` says how many operands have each, and is brought up to date.
    """
    only_left: list[int] = []
    only_right: list[int] = []
    both: list[int] = []
    for dim, count in counts.items():
        in_left = raw(left).shape[dim] != 1
        in_right = raw(right).shape[dim] != 1
        if in_left and in_right:
            counts[dim] = count - 1
            if count == 2:
                both.append(dim)
                counts[dim] = 0
        elif count == 1 and (in_left or in_right):
            (only_left if in_left else only_right).append(dim)
            counts[dim] = 0
    return tuple(only_left), tuple(only_right), tuple(both)


def _paired(left: Value, right: Value, summed: Shape) -> Value:
    """Two operands as batches of matrices, multiplied; `summed` gets length 1."""
    shapes = raw(left).shape, raw(right).shape
    batch: list[int] = []
    rows: list[int] = []
    columns: list[int] = []
    for dim in range(len(shapes[0])):
        if dim in summed:
            continue
        in_left, in_right = shapes[0][dim] != 1, shapes[1][dim] != 1
        (columns if not in_left else batch if in_right else rows).append(dim)
    if rows and columns and columns[-1] < rows[0]:
        # So that the product need not be permuted afterwards.
        return _paired(right, left, summed)
    size = prod(shapes[0][dim] for dim in summed)
    count = prod(shapes[0][dim] for dim in batch)
    left = reshape(
        permute(left, [*batch, *rows, *summed, *columns]),
        (count, prod(shapes[0][dim] for dim in rows), size),
    )
    right = reshape(
        permute(right, [*batch, *summed, *columns, *rows]),
        (count, size, prod(shapes[1][dim] for dim in columns)),
    )
    order = [*batch, *rows, *summed, *columns]
    lengths = [
        *(shapes[0][dim] for dim in batch),
        *(shapes[0][dim] for dim in rows),
        *(1 for _ in summed),
        *(shapes[1][dim] for dim in columns),
    ]
    product = view(bmm(left, right), lengths)
    return permute(product, [order.index(dim) for dim in range(len(order))])


def _aligned(
    operand: Value, labels: list[str], order: list[str], width: int, number: int
) -> Value:
    """An operand with all dimensions, in the common order."""
    known = _spelled_for(labels, raw(operand).ndim, width)
    for label in dict.fromkeys(known):
        while known.count(label) > 1:
            first = known.index(label)
            second = known.index(label, first + 1)
            _check_repeated(label, raw(operand).shape, first, second, number)
            operand = movedim(diagonal(operand, 0, first, second), -1, first)
            del known[second]
    for label in order:
        if label not in known:
            operand = unsqueeze(operand, raw(operand).ndim)
            known.append(label)
    return permute(operand, [known.index(label) for label in order])


def _ordered(equation: Equation, width: int) -> list[str]:
    """All dimensions: those of the result, then others by letter."""
    output = _spelled(equation.output, width)
    others = {
        label
        for labels in equation.operands
        for label in _spelled(labels, width)
        if label not in output
    }
    return [*output, *sorted(others, key=_rank)]


def _spelled(labels: Sequence[str], width: int) -> list[str]:
    """Labels with one for each dimension of the ellipsis: ``.0``, ``.1``, ..."""
    return [
        one
        for label in labels
        for one in ([f".{i}" for i in range(width)] if label == ELLIPSIS else [label])
    ]


def _spelled_for(labels: Sequence[str], ndim: int, width: int) -> list[str]:
    """Return `_spelled` for an operand with an ellipsis of fewer dimensions."""
    if ELLIPSIS not in labels:
        return list(labels)
    covered = ndim - len(labels) + 1
    return [
        one
        for label in labels
        for one in (
            [f".{i}" for i in range(width - covered, width)]
            if label == ELLIPSIS
            else [label]
        )
    ]


def _rank(label: str) -> tuple[int, str]:
    """Return a label's alphabetical rank: the ellipsis, capitals, the rest."""
    return (0 if label.startswith(".") else 1, label)


# --- reading an equation ------------------------------------------------------------


def _parse_operands(text: str, count: int) -> list[list[str]]:
    subscripts: list[list[str]] = [[]]
    position = 0
    while position < len(text):
        letter = text[position]
        if letter == ",":
            subscripts.append([])
            if len(subscripts) > count:
                raise RuntimeError(
                    "einsum(): fewer operands were provided than specified in the "
                    "equation"
                )
        elif letter == ".":
            number = len(subscripts) - 1
            if ELLIPSIS in subscripts[-1]:
                raise RuntimeError(
                    f"einsum(): found '.' for operand {number} for which an ellipsis "
                    f"was already found"
                )
            if text[position : position + 3] != ELLIPSIS:
                raise RuntimeError(
                    f"einsum(): found '.' for operand {number} that is not part of "
                    f"any ellipsis"
                )
            subscripts[-1].append(ELLIPSIS)
            position += 2
        elif letter != " ":
            _check_letter(letter, position)
            subscripts[-1].append(letter)
        position += 1
    if len(subscripts) < count:
        raise RuntimeError(
            "einsum(): more operands were provided than specified in the equation"
        )
    return subscripts


def _parse_output(text: str) -> list[str]:
    output: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        if letter == ".":
            if ELLIPSIS in output:
                raise RuntimeError(
                    "einsum(): found '.' for output but an ellipsis (...) was already "
                    "found"
                )
            if text[position : position + 3] != ELLIPSIS:
                raise RuntimeError(
                    "einsum(): found '.' for output that is not part of any ellipsis "
                    "(...)"
                )
            output.append(ELLIPSIS)
            position += 2
        elif letter != " ":
            _check_letter(letter, position)
            output.append(letter)
        position += 1
    return output


def _implied_output(subscripts: list[list[str]]) -> list[str]:
    """The ellipsis, then letters that are there once, in alphabetical order."""
    letters = [label for labels in subscripts for label in labels]
    once = sorted(
        label for label in letters if label != ELLIPSIS and letters.count(label) == 1
    )
    return [ELLIPSIS, *once] if ELLIPSIS in letters else once


def _from_lists(args: Sequence[Value]) -> tuple[Value, ...]:
    """An equation and its operands, from operands with lists of numbers."""
    operands, lists = args[: len(args) // 2 * 2 : 2], args[1::2]
    text = ",".join(map(_letters, lists))
    if len(args) % 2:
        text += "->" + _letters(args[-1])
    return (text, *operands)


def _letters(numbers: Sequence[Value]) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    parts = []
    for number in numbers:
        if number is Ellipsis:
            parts.append(ELLIPSIS)
        elif 0 <= number < len(letters):
            parts.append(letters[number])
        else:
            raise ValueError(
                "einsum(): subscript in subscript list is not within the valid range "
                "[0, 52)"
            )
    return "".join(parts)


# --- what is refused ----------------------------------------------------------------


def _check_letters(text: str, before: str) -> None:
    for position, letter in enumerate(text[len(before) :], len(before)):
        if letter not in ". ":
            _check_letter(letter, position)


def _check_letter(letter: str, position: int) -> None:
    if not (letter.isascii() and letter.isalpha()):
        raise RuntimeError(
            f"einsum(): invalid subscript given at index {position} in the equation "
            f"string, subscripts must be in [a-zA-Z]"
        )


def _check_ranks(subscripts: list[list[str]], ndims: Sequence[int]) -> None:
    for number, (labels, ndim) in enumerate(zip(subscripts, ndims, strict=True)):
        has_ellipsis = ELLIPSIS in labels
        count = len(labels) - has_ellipsis
        if has_ellipsis and count > ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({count}) is more "
                f"than the number of dimensions ({ndim}) for operand {number}"
            )
        if not has_ellipsis and count != ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({count}) does "
                f"not match the number of dimensions ({ndim}) for operand {number} and "
                f"no ellipsis was given"
            )


def _check_repeated(
    label: str, shape: Shape, first: int, second: int, number: int
) -> None:
    if shape[first] != shape[second]:
        raise RuntimeError(
            f"einsum(): subscript {label} is repeated for operand {number} but the "
            f"sizes don't match, {shape[second]} != {shape[first]}"
        )


def _check_sizes(equation: Equation, operands: Sequence[Value], width: int) -> None:
    sizes: dict[str, int] = {}
    for number, (labels, operand) in enumerate(
        zip(equation.operands, operands, strict=True)
    ):
        shape = raw(operand).shape
        for label, size in zip(
            _spelled_for(labels, len(shape), width), shape, strict=True
        ):
            known = sizes.setdefault(label, size)
            if size not in (1, known) and known != 1:
                raise RuntimeError(_size_mismatch(label, number, size, known))
            sizes[label] = max(size, known) if 0 not in (size, known) else 0


def _size_mismatch(label: str, number: int, size: int, known: int) -> str:
    if label.startswith("."):
        return (
            f"einsum(): dimension {label[1:]} covered by ellipsis in operand {number}"
            f"has size {size} which does not broadcast with previously seen ellipsis "
            f"with size {known} for the respective dimension"
        )
    return (
        f"einsum(): subscript {label} has size {size} for operand {number} which does "
        f"not broadcast with previously seen size {known}"
    )


def _check_output(equation: Equation) -> None:
    inputs = {label for labels in equation.operands for label in labels}
    for label in equation.output:
        if label == ELLIPSIS:
            continue
        if equation.output.count(label) > 1:
            raise RuntimeError(
                f"einsum(): output subscript {label} appears more than once in the "
                f"output"
            )
        if label not in inputs:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation "
                f"for any input operand"
            )


PUBLIC = [*names("gv.f", einsum)]
