"""Buckets of DistributedDataParallel, read from the models that ran.

Only attributes and logged figures are read. Nothing here communicates with other ranks,
allocates gradients or registers a hook, so the program cannot notice.
"""

import sys
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from gradviz.pytorch.torch_names import PyTorch

#: A wrapped module, and a parameter whose gradient is reduced; of PyTorch's.
_Replica: TypeAlias = Any
_Reduced: TypeAlias = Any

#: Indices of parameters, bucket by bucket, in the order in which they are reduced.
_Indices: TypeAlias = list[list[int]]

#: Between buckets in the reducer's log.
_SEPARATOR: Final = ", "


class ProcessGroup(NamedTuple):
    """A process group, and the place of this process in it; -1 where unknown."""

    name: str
    rank: int
    world_size: int


class BucketPlan(NamedTuple):
    """The buckets that the gradients of a data-parallel model fill.

    Attributes:
        model: The name of the model.
        group: The process group over which gradients are summed.
        buckets: The parameters of each bucket, in the order of the bucket.
        sends_gradients: True if a bucket is reduced as it is. A communication hook may
            send something smaller.
        reduces_usage: True if one more all-reduce follows the last bucket, to find
            parameters that no rank used.
    """

    model: str
    group: ProcessGroup
    buckets: Sequence[Sequence[_Reduced]]
    sends_gradients: bool
    reduces_usage: bool


class DataParallelModels:
    """Models wrapped in DistributedDataParallel that have run. Any thread.

    It takes no lock: tables are changed by single calls into C.

    Args:
        names: Of PyTorch.
    """

    def __init__(self, names: PyTorch) -> None:
        self._torch: Final = names.torch
        self._wrapper: Final = names.torch.nn.parallel.DistributedDataParallel
        self._models: weakref.WeakSet[_Replica] = weakref.WeakSet()
        #: Buckets are rebuilt once, after the first pass; then they stay.
        self._rebuilt: weakref.WeakKeyDictionary[_Replica, _Indices] = (
            weakref.WeakKeyDictionary()
        )

    def note(self, module: _Replica) -> None:
        """Note a module that runs, if it is data parallel."""
        if isinstance(module, self._wrapper):
            self._models.add(module)

    def default_group(self) -> ProcessGroup:
        """Return the place of this process among all ranks."""
        distributed = self._torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return ProcessGroup("", -1, -1)
        return ProcessGroup("", distributed.get_rank(), distributed.get_world_size())

    def plans(self, name_of: Callable[[_Replica], str]) -> list[BucketPlan]:
        """Return the buckets of models, as far as they are known.

        Args:
            name_of: Returns the name of a model.
        """
        found = (self._read(one, name_of(one)) for one in list(self._models))
        return [one for one in found if one is not None]

    def _read(self, model: _Replica, name: str) -> BucketPlan | None:
        try:
            parameters = _parameters(model)
            indices = self._indices(model, parameters)
            group = model.process_group
            return BucketPlan(
                name,
                ProcessGroup(group.group_name, group.rank(), group.size()),
                [[parameters[index] for index in bucket] for bucket in indices],
                not model._comm_hooks,
                bool(model.find_unused_parameters and not model.static_graph),
            )
        except Exception:  # noqa: BLE001 - of a version with other names
            return None

    def _indices(self, model: _Replica, parameters: Sequence[_Reduced]) -> _Indices:
        indices = self._rebuilt.get(model)
        if indices is not None:
            return indices
        logged = model._get_ddp_logging_data()
        if logged["num_parameter_tensors"] != len(parameters):
            raise ValueError("some parameters have changed since it was wrapped")
        if logged.get("has_rebuilt_buckets"):
            text = logged["rebuilt_per_bucket_param_indices"]
            indices = [
                list(map(int, one.split())) for one in text.split(_SEPARATOR) if one
            ]
            self._rebuilt[model] = indices
            return indices
        first, rebuilt = self._size_limits(model)
        if model._has_rebuilt_buckets:  # in this step: it is logged in the next one
            text = logged["prev_iteration_grad_ready_order_indices"]
            order = list(map(int, text.split(_SEPARATOR)))
            return _assigned(parameters, rebuilt, order)
        indices = _assigned(parameters, first)[::-1]
        sizes = [sum(_size(parameters[one]) for one in bucket) for bucket in indices]
        logged_sizes = list(map(int, logged["bucket_sizes"].split(_SEPARATOR)))
        if sorted(sizes) != sorted(logged_sizes):
            raise ValueError("its first buckets are not of these sizes")
        return indices

    def _size_limits(self, model: _Replica) -> tuple[list[int], list[int]]:
        """Return how large the first buckets may be, and those built after a pass.

        Source: torch/nn/parallel/distributed.py, _ddp_init_helper.
        """
        cap = model.bucket_bytes_cap
        config = getattr(model, "_bucket_config", None)
        if config is not None:  # since 2.13
            first, rebuilt = config.compute_bucket_size_limits(
                static_graph=model.static_graph,
                find_unused_parameters=model.find_unused_parameters,
            )
            return first, rebuilt or [config.first_bucket_bytes_cap, cap]
        is_default = getattr(model, "bucket_bytes_cap_default", True)
        small = self._torch.distributed._DEFAULT_FIRST_BUCKET_BYTES
        rebuilt = [small if is_default else cap, cap]
        if model.static_graph or not model.find_unused_parameters:
            return [sys.maxsize], rebuilt
        return rebuilt, rebuilt


def _assigned(
    parameters: Sequence[_Reduced], limits: Sequence[int], order: Iterable[int] = ()
) -> _Indices:
    """Return the buckets that a reducer makes of parameters.

    Args:
        parameters: All of them.
        limits: Numbers of bytes that fill the first bucket, the next, and all after
            these.
        order: The order in which their gradients were ready; empty for the first
            buckets, which PyTorch sorts by their parameters.

    Source: torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size.
    Differs: parameters with sparse gradients are not told apart.
    """
    full: _Indices = []
    begun: dict[object, list[int]] = {}
    sizes: dict[object, int] = defaultdict(int)
    num_full: dict[object, int] = defaultdict(int)
    for index in order or range(len(parameters)):
        one = parameters[index]
        kind = one.dtype, one.device
        begun.setdefault(kind, []).append(index)
        sizes[kind] += _size(one)
        if sizes[kind] >= limits[min(num_full[kind], len(limits) - 1)]:
            full.append(begun.pop(kind))
            sizes[kind] = 0
            num_full[kind] += 1
    if not order:
        return sorted([*full, *begun.values()], key=min)
    if len(begun) > 1:
        raise ValueError("the order of its last buckets is not defined")
    return [*full, *begun.values()]


def _parameters(model: _Replica) -> list[_Reduced]:
    """Return the parameters of which a reducer was made, in its order.

    Source: torch/nn/parallel/distributed.py, _build_params_for_reducer.
    """
    found: dict[int, _Reduced] = {}
    for path, module in model.module.named_modules():
        for name, one in module.named_parameters(recurse=False):
            if one.requires_grad and f"{path}.{name}" not in model.parameters_to_ignore:
                found.setdefault(id(one), one)
    return list(found.values())


def _size(parameter: _Reduced) -> int:
    return int(parameter.numel() * parameter.element_size())
