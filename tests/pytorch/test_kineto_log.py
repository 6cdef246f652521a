"""Kineto's log: silent while gradviz profiles, the program's own otherwise."""

import ctypes
import os

import pytest

from gradviz.pytorch.kineto_log import VARIABLE, KinetoLog


class Kineto:
    """A Kineto that sets its level when it is first used, as the real one does."""

    def __init__(self, level: ctypes.c_int | None = None) -> None:
        self.level = level or ctypes.c_int(0)
        self._is_used = False

    def writes(self) -> bool:
        """Return whether a line of level 4, that of errors, is written."""
        if not self._is_used:
            self._is_used = True
            self.level.value = int(os.environ.get(VARIABLE, "3"))
            return False
        return self.level.value <= 4


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def kineto():
    return Kineto()


def used_by_gradviz(log: KinetoLog, kineto: Kineto) -> list[bool]:
    """Return whether each of three uses of Kineto writes a line."""
    written = []
    for _ in range(3):
        with log.silenced():
            written.append(kineto.writes())
    return written


def test_kineto_is_silent_for_gradviz_and_not_for_the_program(kineto):
    log = KinetoLog(kineto.level)

    assert not any(used_by_gradviz(log, kineto))
    log.leave_to_program()
    assert kineto.writes()
    assert not any(used_by_gradviz(log, kineto))
    assert kineto.writes()


@pytest.mark.parametrize(
    ("level", "expected"), [("5", 5), ("0", 0), (" 4 lines", 4), ("much", 0)]
)
def test_the_program_may_set_the_level_before_its_first_profiler(
    kineto, monkeypatch, level, expected
):
    log = KinetoLog(kineto.level)
    used_by_gradviz(log, kineto)

    monkeypatch.setenv(VARIABLE, level)
    log.leave_to_program()
    assert kineto.level.value == expected
    monkeypatch.setenv(VARIABLE, "7")  # Kineto reads it once
    log.leave_to_program()
    assert kineto.level.value == expected


def test_a_level_that_the_environment_asks_for_is_not_gradvizs(kineto, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    log = KinetoLog(kineto.level)

    assert not any(used_by_gradviz(log, kineto))
    assert os.environ[VARIABLE] == "0"


def test_the_level_of_a_program_that_came_first_stays(kineto, monkeypatch):
    kineto.writes()
    kineto.level.value = 1
    log = KinetoLog(kineto.level)
    monkeypatch.setenv(VARIABLE, "5")

    assert not any(used_by_gradviz(log, kineto))
    log.leave_to_program()
    assert kineto.level.value == 1


def test_the_level_is_as_before_whatever_is_raised(kineto):
    kineto.writes()
    log = KinetoLog(kineto.level)

    with pytest.raises(KeyboardInterrupt), log.silenced():
        raise KeyboardInterrupt
    assert kineto.level.value == 3


def test_kineto_is_silent_for_gradviz_even_if_its_level_is_not_exported(
    kineto, monkeypatch
):
    monkeypatch.setenv(VARIABLE, "0")
    log = KinetoLog(None)

    assert not any(used_by_gradviz(log, kineto))
    log.leave_to_program()
    assert os.environ[VARIABLE] == "0"
