"""Former import paths, in documentation or pickled values, that still work.

A module imported by its former path is the module itself, not a copy of it.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

#: Former path -> path.
FORMER: Final = {
    "gradviz.analysis.advice": "gradviz.analysis.findings.advice",
    "gradviz.analysis.graph": "gradviz.analysis.graphs.backward_graph",
    "gradviz.analysis.modules": "gradviz.analysis.graphs.modules",
    "gradviz.analysis.order": "gradviz.analysis.nodes.execution_order",
    "gradviz.analysis.overview": "gradviz.analysis.graphs.overview",
    "gradviz.analysis.repetition": "gradviz.analysis.graphs.repetition",
    "gradviz.analysis.simplification": "gradviz.analysis.graphs.simplification",
    "gradviz.analysis.stream_order": "gradviz.analysis.races.stream_order",
    "gradviz.backends.pinning": "gradviz.backends.arrays.pinning",
    "gradviz.backends.wrapped_array": "gradviz.backends.arrays.wrapped_array",
    "gradviz.distributed.actors": "gradviz.distributed.launching.actors",
    "gradviz.engine.node": "gradviz.engine.graph.node",
    "gradviz.engine.stream_rules": "gradviz.engine.graph.stream_rules",
    "gradviz.render.dot": "gradviz.render.graph.dot",
    "gradviz.render.scene": "gradviz.render.graph.graph_scene",
    "gradviz.tensors.dtypes": "gradviz.tensors.attributes.dtypes",
    "gradviz.tensors.size": "gradviz.tensors.attributes.size",
    "gradviz.thread_handovers": "gradviz.stream_check.thread_handovers",
}


class FormerPaths:
    """A finder and loader for `sys.meta_path`, asked when all others have failed."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return a spec if the name is a former path."""
        del path, target
        if name not in FORMER:
            return None
        return ModuleSpec(name, self)  # type: ignore[arg-type] # its base loads slowly

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module by its path."""
        module = importlib.import_module(FORMER[spec.name])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, which the import system has replaced."""
        former = module.__spec__
        assert former is not None
        module.__spec__ = former.loader_state


def install() -> None:
    """Let former paths be imported from now on."""
    sys.meta_path.append(FormerPaths())
