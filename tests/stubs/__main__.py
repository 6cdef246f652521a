"""Writes the stubs: ``python -m tests.stubs``; with ``--check`` it only compares."""

import sys
from pathlib import Path
from typing import Final

import gradviz.api
import gradviz.linalg
import gradviz.nn.functional
import gradviz.special
from tests.stubs.pages import stub_of_module, stub_of_results, stub_of_tensor

_PACKAGE: Final = Path(gradviz.__file__).parent


def stubs() -> dict[Path, str]:
    """All stubs, by where they belong."""
    modules = (gradviz.api, gradviz.linalg, gradviz.nn.functional, gradviz.special)
    texts = {
        "tensors.tensor": stub_of_tensor(),
        "ops.variables.return_types": stub_of_results(),
    }
    for module in modules:
        texts[module.__name__.removeprefix("gradviz.")] = stub_of_module(module)
    return {
        _PACKAGE / f"{name.replace('.', '/')}.pyi": text for name, text in texts.items()
    }


if __name__ == "__main__":
    stale = [
        path
        for path, text in stubs().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path} is stale: run `make stubs`")
        sys.exit(bool(stale))
    for path in stale:
        path.write_text(stubs()[path], encoding="utf-8")
        print(f"wrote {path}")
