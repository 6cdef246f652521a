"""Numbers of classes as vectors."""

import numpy as np

from gradviz.backends.arrays.wrapped_array import check_elements
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, raw, variable


def one_hot(input: Value, num_classes: int = -1) -> Value:
    """For each class number a vector of zeros, with a 1 in its place.

    Args:
        input: Class numbers: int64.
        num_classes: Number of classes; -1: one more than the largest number.

    Returns:
        int64, with one dimension more than `input`.

    Raises:
        RuntimeError: A number is negative, too large, or no integer.

    Source: aten/src/ATen/native/Onehot.cpp, one_hot.
    """
    classes = raw(input)
    if classes.dtype != np.int64:
        raise RuntimeError(
            "one_hot is only applicable to index tensor of type LongTensor."
        )
    if not classes.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if num_classes == -1:
        check_elements("one_hot: check", _check_classes, classes, None)
        num_classes = int(np.max(classes)) + 1
    elif num_classes < 1:
        _check_classes(classes, None)
        raise RuntimeError("num_classes should be positive")
    elif classes.size:
        check_elements("one_hot: check", _check_classes, classes, num_classes)
    numbers = np.cumsum(np.ones_like(classes, shape=num_classes)) - 1
    return variable((np.expand_dims(classes, -1) == numbers).astype(np.int64))


def _check_classes(classes: np.ndarray, num_classes: int | None) -> None:
    if classes.size and np.min(classes) < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes is not None and np.max(classes) >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")


PUBLIC = [*names("F.f", one_hot)]
