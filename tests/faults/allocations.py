"""A program: in each pass one allocation fails, a later one each time (F08).

Run as ``python -m tests.faults.allocations PLACE FIRST STEP [RECORDING]``; prints what
came of it. A program of its own, for the allocation that fails may be anybody's. With
RECORDING 1 each pass is recorded, and its history must be possible.
"""

import _testcapi  # CPython's own, for such tests
import contextlib
import faulthandler
import gc
import json
import sys

from gradviz.capture.session import Recording, record
from gradviz.trace.checking.lifecycle import judge
from tests.faults.programs import HANG_SECONDS
from tests.faults.scene import (
    Scene,
    assert_works,
    assert_works_here,
    new_engine,
)

#: After so many passes in a row to which nothing happened, the last one has been found.
_ENOUGH = 40

#: What a failing allocation ends as: a thread that cannot start is a RuntimeError, and
#: some of CPython's own functions (`SimpleQueue.get` in 3.11) fail without saying why.
_EXPECTED = (MemoryError, RuntimeError, SystemError)


def main() -> None:
    place, first, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    is_recording = sys.argv[4:] == ["1"]
    touched = {"caller": "root", "device": "first", "pool": "reentrant"}[place]
    faulthandler.enable()  # a crash of the interpreter says where
    engine = new_engine()
    assert_works(engine)
    gc.disable()  # a collection would move the allocations
    nth, num_failed, num_fine, failures = first, 0, 0, []

    def touch(name: str) -> None:
        if name == touched:
            _testcapi.set_nomemory(nth, nth + 1)

    while num_fine < _ENOUGH:
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        scene = Scene(engine, touch)
        error: BaseException | None = None
        with record() if is_recording else contextlib.nullcontext() as recording:
            try:
                if place == "caller":
                    _testcapi.set_nomemory(nth, nth + 1)
                    touched = ""
                scene.run()
            except BaseException as caught:  # noqa: BLE001 - it is looked at
                error = caught
            finally:
                _testcapi.remove_mem_hooks()
        num_failed += error is not None
        num_fine = 0 if error is not None else num_fine + 1
        try:
            _check(scene, error, recording)
            del error
            assert_works_here(engine)
        except Exception as wrong:  # noqa: BLE001 - the campaign goes on
            failures.append(f"allocation {nth}: {type(wrong).__name__}: {wrong}")
            engine = new_engine()
            assert_works(engine)
        nth += step
    assert_works(engine)
    json.dump({"failed": num_failed, "failures": failures}, sys.stdout)


def _check(
    scene: Scene, error: BaseException | None, recording: Recording | None
) -> None:
    assert error is None or isinstance(error, _EXPECTED), repr(error)
    assert "allocate lock" not in str(error) or isinstance(error, MemoryError)
    if error is None:
        scene.check()
    if recording is not None:
        violations = judge(recording.trace).violations
        assert not violations, f"impossible: {violations[0]}"


if __name__ == "__main__":
    main()
