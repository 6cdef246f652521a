"""Every public name of `import gradviz as gv`.

This module has all names but those of ops: classes, dtypes, modes, functions that make
tensors. The table of `gradviz.ops` has the ops. `gradviz` itself imports this module on
the first access to one of these names, so that the command line starts without NumPy.
"""

import importlib as _importlib
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any
from typing import Final as _Final

from gradviz.autograd import enable_grad as enable_grad
from gradviz.autograd import inference_mode as inference_mode
from gradviz.autograd import (
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
)
from gradviz.autograd import is_anomaly_enabled as is_anomaly_enabled
from gradviz.autograd import is_grad_enabled as is_grad_enabled
from gradviz.autograd import is_inference as is_inference
from gradviz.autograd import is_inference_mode_enabled as is_inference_mode_enabled
from gradviz.autograd import no_grad as no_grad
from gradviz.autograd import set_grad_enabled as set_grad_enabled
from gradviz.backends.device import Device as Device
from gradviz.backends.device import Device as device
from gradviz.backends.device import get_default_device as get_default_device
from gradviz.backends.device import set_default_device as set_default_device
from gradviz.backends.simulated import set_device_count as set_device_count
from gradviz.backends.stream import Event as Event
from gradviz.backends.stream import Stream as Stream
from gradviz.backends.stream import current_stream as current_stream
from gradviz.backends.stream import default_stream as default_stream
from gradviz.backends.stream import set_stream as set_stream
from gradviz.backends.stream import stream as stream
from gradviz.backends.stream import synchronize as synchronize
from gradviz.errors import OutOfMemoryError as OutOfMemoryError
from gradviz.ops.conventions.generator import Generator as Generator
from gradviz.ops.conventions.generator import default_generator as default_generator
from gradviz.ops.conventions.promotion import set_default_dtype as set_default_dtype
from gradviz.ops.dispatch.calling import by_input as _by_input
from gradviz.ops.dispatch.public import Home as _Home
from gradviz.ops.shapes.copying import MemoryFormat as memory_format
from gradviz.ops.shapes.copying import contiguous_format as contiguous_format
from gradviz.ops.shapes.copying import preserve_format as preserve_format
from gradviz.ops.table import publish as _publish
from gradviz.ops.variables import return_types as return_types
from gradviz.ops.variables.variable import detached as detach
from gradviz.tensors.attributes.dtypes import bool_ as bool
from gradviz.tensors.attributes.dtypes import cdouble as cdouble
from gradviz.tensors.attributes.dtypes import cfloat as cfloat
from gradviz.tensors.attributes.dtypes import complex64 as complex64
from gradviz.tensors.attributes.dtypes import complex128 as complex128
from gradviz.tensors.attributes.dtypes import double as double
from gradviz.tensors.attributes.dtypes import float16 as float16
from gradviz.tensors.attributes.dtypes import float32 as float32
from gradviz.tensors.attributes.dtypes import float64 as float64
from gradviz.tensors.attributes.dtypes import float_ as float
from gradviz.tensors.attributes.dtypes import half as half
from gradviz.tensors.attributes.dtypes import int8 as int8
from gradviz.tensors.attributes.dtypes import int16 as int16
from gradviz.tensors.attributes.dtypes import int32 as int32
from gradviz.tensors.attributes.dtypes import int64 as int64
from gradviz.tensors.attributes.dtypes import int_ as int
from gradviz.tensors.attributes.dtypes import long as long
from gradviz.tensors.attributes.dtypes import short as short
from gradviz.tensors.attributes.dtypes import uint8 as uint8
from gradviz.tensors.attributes.layout import Layout as layout
from gradviz.tensors.attributes.layout import strided as strided
from gradviz.tensors.attributes.limits import finfo as finfo
from gradviz.tensors.attributes.limits import iinfo as iinfo
from gradviz.tensors.attributes.size import Size as Size
from gradviz.tensors.creation.factories import arange as arange
from gradviz.tensors.creation.factories import empty as empty
from gradviz.tensors.creation.factories import empty_like as empty_like
from gradviz.tensors.creation.factories import eye as eye
from gradviz.tensors.creation.factories import full as full
from gradviz.tensors.creation.factories import full_like as full_like
from gradviz.tensors.creation.factories import linspace as linspace
from gradviz.tensors.creation.factories import logspace as logspace
from gradviz.tensors.creation.factories import ones as ones
from gradviz.tensors.creation.factories import ones_like as ones_like
from gradviz.tensors.creation.factories import scalar_tensor as scalar_tensor
from gradviz.tensors.creation.factories import tril_indices as tril_indices
from gradviz.tensors.creation.factories import triu_indices as triu_indices
from gradviz.tensors.creation.factories import zeros as zeros
from gradviz.tensors.creation.factories import zeros_like as zeros_like
from gradviz.tensors.creation.from_data import as_tensor as as_tensor
from gradviz.tensors.creation.from_data import asarray as asarray
from gradviz.tensors.creation.from_data import from_dlpack as from_dlpack
from gradviz.tensors.creation.from_data import from_numpy as from_numpy
from gradviz.tensors.creation.from_data import frombuffer as frombuffer
from gradviz.tensors.creation.from_data import tensor as tensor
from gradviz.tensors.creation.old_types import BoolTensor as BoolTensor
from gradviz.tensors.creation.old_types import ByteTensor as ByteTensor
from gradviz.tensors.creation.old_types import CharTensor as CharTensor
from gradviz.tensors.creation.old_types import DoubleTensor as DoubleTensor
from gradviz.tensors.creation.old_types import FloatTensor as FloatTensor
from gradviz.tensors.creation.old_types import HalfTensor as HalfTensor
from gradviz.tensors.creation.old_types import IntTensor as IntTensor
from gradviz.tensors.creation.old_types import LongTensor as LongTensor
from gradviz.tensors.creation.old_types import ShortTensor as ShortTensor
from gradviz.tensors.creation.random import get_rng_state as get_rng_state
from gradviz.tensors.creation.random import initial_seed as initial_seed
from gradviz.tensors.creation.random import manual_seed as manual_seed
from gradviz.tensors.creation.random import normal as normal
from gradviz.tensors.creation.random import rand as rand
from gradviz.tensors.creation.random import rand_like as rand_like
from gradviz.tensors.creation.random import randint as randint
from gradviz.tensors.creation.random import randint_like as randint_like
from gradviz.tensors.creation.random import randn as randn
from gradviz.tensors.creation.random import randn_like as randn_like
from gradviz.tensors.creation.random import randperm as randperm
from gradviz.tensors.creation.random import seed as seed
from gradviz.tensors.creation.random import set_rng_state as set_rng_state
from gradviz.tensors.inquiry import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
)
from gradviz.tensors.inquiry import can_cast as can_cast
from gradviz.tensors.inquiry import dtype as dtype
from gradviz.tensors.inquiry import e as e
from gradviz.tensors.inquiry import get_default_dtype as get_default_dtype
from gradviz.tensors.inquiry import inf as inf
from gradviz.tensors.inquiry import is_conj as is_conj
from gradviz.tensors.inquiry import is_floating_point as is_floating_point
from gradviz.tensors.inquiry import is_neg as is_neg
from gradviz.tensors.inquiry import is_nonzero as is_nonzero
from gradviz.tensors.inquiry import is_same_size as is_same_size
from gradviz.tensors.inquiry import is_signed as is_signed
from gradviz.tensors.inquiry import is_tensor as is_tensor
from gradviz.tensors.inquiry import nan as nan
from gradviz.tensors.inquiry import newaxis as newaxis
from gradviz.tensors.inquiry import numel as numel
from gradviz.tensors.inquiry import pi as pi
from gradviz.tensors.inquiry import promote_types as promote_types
from gradviz.tensors.inquiry import result_type as result_type
from gradviz.tensors.inquiry import (
    use_deterministic_algorithms as use_deterministic_algorithms,
)
from gradviz.tensors.printing import set_printoptions as set_printoptions
from gradviz.tensors.tensor import Tensor as Tensor

if _TYPE_CHECKING:
    from gradviz.capture.recorded_schedule import recorded as recorded
    from gradviz.capture.session import record as record
    from gradviz.capture.session import schedule as schedule
    from gradviz.diagnostics import find_nan as find_nan
    from gradviz.diagnostics import graph_size as graph_size
    from gradviz.diagnostics import live_graphs as live_graphs
    from gradviz.diagnostics import why_none as why_none
    from gradviz.drawing.picture import draw as draw
    from gradviz.nn.files import load as load
    from gradviz.nn.files import save as save
    from gradviz.nn.members import typename as typename
    from gradviz.stream_check.checker import check_streams as check_streams
    from gradviz.trace.reading.reader import load_trace as load_trace

#: Names of what only some programs use, and the module of each: loaded when asked for.
_LATE: _Final = {
    "recorded": "gradviz.capture.recorded_schedule",
    "record": "gradviz.capture.session",
    "schedule": "gradviz.capture.session",
    "find_nan": "gradviz.diagnostics",
    "graph_size": "gradviz.diagnostics",
    "live_graphs": "gradviz.diagnostics",
    "why_none": "gradviz.diagnostics",
    "draw": "gradviz.drawing.picture",
    "load": "gradviz.nn.files",
    "save": "gradviz.nn.files",
    "typename": "gradviz.nn.members",
    "check_streams": "gradviz.stream_check.checker",
    "load_trace": "gradviz.trace.reading.reader",
}


def __getattr__(name: str) -> _Any:  # noqa: ANN401 - of any type
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module(_LATE[name]), name)
    return value


detach_ = _by_input(Tensor.detach_)
resize_as_ = _by_input(Tensor.resize_as_)

_publish(_Home.GRADVIZ, _sys.modules[__name__])

__all__ = [name for name in (*globals(), *_LATE) if not name.startswith("_")]
