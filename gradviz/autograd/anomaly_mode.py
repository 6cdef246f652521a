"""Detection of the origin of a NaN or an error in a backward."""

import warnings
from typing import Self

from gradviz.engine.graph import anomaly
from gradviz.engine.graph.anomaly import Anomaly


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Turn anomaly detection on or off: from the call on, or for a ``with`` block.

    While it is on, the forward pass remembers where each node was made, a failing
    backward says where its failing node came from, and a NaN among the gradients is an
    error. It slows everything down, and applies to all threads.

    Args:
        mode: True if anomalies are to be detected.
        check_nan: True if a NaN is an anomaly.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = anomaly.switch(Anomaly(check_nan) if mode else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        anomaly.switch(self._before)


class detect_anomaly:  # noqa: N801 - PyTorch's name
    """Detect anomalies in a ``with`` block; see `set_detect_anomaly`.

    Args:
        check_nan: True if a NaN is an anomaly.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._mode = Anomaly(check_nan)
        self._before: Anomaly | None = None
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime "
            "and should only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self) -> Self:
        self._before = anomaly.switch(self._mode)
        return self

    def __exit__(self, *_: object) -> None:
        anomaly.switch(self._before)


def is_anomaly_enabled() -> bool:
    """Return whether anomalies are detected."""
    return bool(anomaly.SWITCHED_ON)


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether a NaN is an anomaly; True while off, as in PyTorch."""
    mode = anomaly.current()
    return mode is None or mode.check_nan
