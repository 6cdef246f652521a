"""What hatchling does when it builds a wheel: the hot modules are compiled into it.

Where that is not possible, the wheel is pure Python: a line says so, and why.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

from compile_core import _core, compile_core


class CoreHook(BuildHookInterface):
    """Compiles the core; see `compile_core`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of a wheel are collected."""
        root = Path(self.root)
        if version == "editable":  # or what is compiled would hide what is edited
            self.app.display_info("gradviz: pure Python, for it is editable")
            return
        core = _core(root / "gradviz")
        target = Path(tempfile.mkdtemp(prefix="gradviz-core-"))
        if core.is_pure_wanted():
            self.app.display_info("gradviz: pure Python, as GRADVIZ_PURE asks for")
            _explain(
                build_data, target / core.PURE_BUILD, "GRADVIZ_PURE asked for that"
            )
            return
        try:
            written = compile_core(root, target)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it works without
            reason = str(error).strip().split("\n")[0] or type(error).__name__
            self.app.display_warning(
                f"gradviz: pure Python, for compiling failed: {reason:.200}"
            )
            told = f"compiling failed: {reason:.200}"
            _explain(build_data, target / core.PURE_BUILD, told)
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for path in written:
            build_data["force_include"][str(path)] = str(path.relative_to(target))
        self.app.display_info(f"gradviz: {len(written) - 1} modules compiled")


def _explain(build_data: dict[str, Any], path: Path, why: str) -> None:
    """Leave in the wheel why nothing was compiled, for ``gradviz doctor``."""
    path.write_text(why, encoding="utf-8")
    build_data["force_include"][str(path)] = f"gradviz/{path.name}"
