"""Embeddings: a vector for each of a number of things, or of bags of them."""

from typing import Self

from gradviz.autograd.grad_mode import no_grad
from gradviz.backends.device import Device
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn import init
from gradviz.nn.factory import Factory, parameter
from gradviz.nn.module import Module
from gradviz.nn.parameter import Parameter
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.tensors.tensor import Tensor


class Embedding(Module):
    """Looks up vectors by their numbers.

    Args:
        num_embeddings: Number of vectors.
        embedding_dim: Their length.
        padding_idx: The number of one that is 0 and stays so.
        max_norm: Longer ones are shortened to it when they are looked up.
        norm_type: Order of the norm that measures their length.
        scale_grad_by_freq: True if gradients are divided by the number of times that a
            vector was looked up.
        sparse: Not supported.
        _weight: The vectors, instead of random ones.
        _freeze: True if they stay as they are.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Raises:
        AssertionError: `padding_idx` is not one of them.

    Source: torch/nn/modules/sparse.py.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            self.weight = parameter(num_embeddings, embedding_dim, **factory)
            self.weight.requires_grad = not _freeze
            self.reset_parameters()
        else:
            _check_table(_weight, num_embeddings, embedding_dim)
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """An embedding with these vectors, which are not trained if `freeze`.

        Args:
            embeddings: The vectors, one a row.
            freeze: True if they stay as they are.
            padding_idx: The number of one that stays as it is.
            max_norm: Longer ones are shortened to it when they are looked up.
            norm_type: Order of the norm that measures their length.
            scale_grad_by_freq: True if gradients are divided by the number of times
                that a vector was looked up.
            sparse: Not supported.

        Raises:
            AssertionError: There are not two dimensions.
        """
        _check_rows(embeddings)
        rows, columns = embeddings.shape
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def reset_parameters(self) -> None:
        """Draw new vectors, normally distributed."""
        reset_table(self.weight, self.padding_idx)

    def forward(self, input: Tensor) -> Tensor:
        """Integers of any shape ``(*)`` to ``(*, embedding_dim)``."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """The arguments that are not the default."""
        texts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            texts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            texts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            texts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            texts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        return ", ".join(texts)


class EmbeddingBag(Module):
    """Looks up vectors by their numbers, and returns one for each bag of them.

    Args:
        num_embeddings: Number of vectors.
        embedding_dim: Their length.
        max_norm: Longer ones are shortened to it when they are looked up.
        norm_type: Order of the norm that measures their length.
        scale_grad_by_freq: True if gradients are divided by the number of times that a
            vector was looked up.
        mode: ``sum``, ``mean`` or ``max``.
        sparse: Not supported.
        _weight: The vectors, instead of random ones.
        include_last_offset: True if offsets also have the end of the last bag.
        padding_idx: The number of one that is 0, stays so, and does not count.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Raises:
        AssertionError: `padding_idx` is not one of them.

    Source: torch/nn/modules/sparse.py.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = padding_idx
        if _weight is None:
            self.weight = parameter(num_embeddings, embedding_dim, **factory)
            self.reset_parameters()
        else:
            _check_table(_weight, num_embeddings, embedding_dim)
            self.weight = Parameter(_weight)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Bags of these vectors, which are not trained if `freeze`.

        Args:
            embeddings: The vectors, one a row.
            freeze: True if they stay as they are.
            max_norm: Longer ones are shortened to it when they are looked up.
            norm_type: Order of the norm that measures their length.
            scale_grad_by_freq: True if gradients are divided by the number of times
                that a vector was looked up.
            mode: ``sum``, ``mean`` or ``max``.
            sparse: Not supported.
            include_last_offset: True if offsets also have the end of the last bag.
            padding_idx: The number of one that stays as it is, and does not count.

        Raises:
            AssertionError: There are not two dimensions.
        """
        _check_rows(embeddings)
        rows, columns = embeddings.shape
        new = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        new.weight.requires_grad = not freeze
        return new

    def reset_parameters(self) -> None:
        """Draw new vectors, normally distributed."""
        reset_table(self.weight, self.padding_idx)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """See `gradviz.nn.functional.embedding_bag`."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """The arguments that are not the default."""
        texts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            texts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            texts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            texts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        texts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            texts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(texts)


def _check_rows(table: Tensor) -> None:
    if table.ndim != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")


def _check_table(table: Tensor, rows: int, columns: int) -> None:
    if table.shape != (rows, columns):
        raise AssertionError(
            "Shape of weight does not match num_embeddings and embedding_dim"
        )


def reset_table(weight: Parameter, padding_idx: int | None) -> None:
    """Draw new vectors, normally distributed; that of `padding_idx` is 0."""
    init.normal_(weight)
    if padding_idx is not None:
        with no_grad():
            weight[padding_idx] = 0.0
