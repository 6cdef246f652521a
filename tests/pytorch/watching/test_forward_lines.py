"""Stacks that PyTorch keeps in anomaly mode: those of the program alone."""

from pathlib import Path

from gradviz.cli.run import program
from gradviz.pytorch.watching import watcher
from gradviz.pytorch.watching.forward_lines import of_program


def entry(path: str | None, function: str) -> str:
    return f'  File "{path}", line 1, in {function}\n    {function}()\n'


USERS = [entry("train.py", "<module>"), entry("torch/_tensor.py", "backward")]


def test_the_stack_of_a_program_stays_as_it_is():
    assert of_program(USERS) == USERS
    assert of_program([]) == []
    assert of_program(["a stack that was kept while a graph was traced"]) == [
        "a stack that was kept while a graph was traced"
    ]


def test_frames_below_the_program_are_left_out_of_its_stack():
    below = [
        entry("<frozen runpy>", "_run_code"),
        entry(str(Path(program.__file__).with_name("run.py")), "command"),
        entry(program.__file__, "run"),
        entry(program.__file__, "_execute"),
    ]

    assert of_program([*below, *USERS]) == USERS


def test_frames_that_call_the_engine_are_left_out_of_the_stack():
    (module, backward), ours = USERS, entry(watcher.__file__, "_run_backward")

    assert of_program([module, backward, ours, backward, ours]) == [
        module,
        backward,
        backward,
    ]
