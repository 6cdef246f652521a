"""Models that were reported and wait to be written, with their parameters."""

from collections.abc import Iterator
from typing import Final

from gradviz.trace.format.definitions import ModelRow, ParameterRow
from gradviz.trace.format.strings import Strings, one_a_line
from gradviz.trace.probe import MAX_PARAMETERS, Model, ModelParameter

#: Maximum number of definitions written, those of models that have changed included.
MAX_MODELS: Final = 1_000

#: Maximum number of dimensions of a shape written.
_MAX_DIMENSIONS: Final = 64


class PendingModels:
    """Filled by any thread, emptied by the writer; takes no lock (see `Strings`).

    All definitions of a recording together list at most `MAX_PARAMETERS` parameters. Of
    a model that is first seen later, only the number of its parameters is written.

    Args:
        strings: Strings in which texts are kept.
    """

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        #: The last definition of each model.
        self._known: dict[str, Model] = {}
        self._pending: list[Model] = []
        self._num_defined = 0
        # The writer's own:
        self._written: set[str] = set()
        self._parameters_left = MAX_PARAMETERS

    def define(self, model: Model) -> None:
        """Note a model, the first time and when it has changed. Any thread.

        Two threads that meet a model at once may both define it: both say the same.
        """
        known = self._known.get(model.name)
        if known is model or self._num_defined >= MAX_MODELS:
            return
        self._known[model.name] = model
        if known != model:
            self._num_defined += 1
            self._pending.append(model)

    def take(self) -> list[ModelRow]:
        """Return the definitions since the last call. The writer's thread only."""
        pending = self._pending[:]
        del self._pending[: len(pending)]  # See Note [Taking rows] in `buffer`.
        return list(self._rows(pending))

    def _rows(self, models: list[Model]) -> Iterator[ModelRow]:
        for name, parameters, num_parameters in models:
            if name in self._written and len(parameters) > self._parameters_left:
                continue  # rather all of its old parameters than some of its new ones
            self._written.add(name)
            kept = parameters[: self._parameters_left]
            self._parameters_left -= len(kept)
            rows = tuple(map(self._row, kept))
            yield ModelRow(self._strings.define(name), num_parameters, rows)

    def _row(self, one: ModelParameter) -> ParameterRow:
        define, shape = self._strings.define, one.shape
        return ParameterRow(
            define(one_a_line(one.names)),
            None if shape is None else shape[:_MAX_DIMENSIONS],
            define(one.dtype),
            define(one.device),
            one.requires_grad,
        )
