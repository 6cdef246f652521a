from gradviz.analysis.training.steps import OddStep, StepParts, Steps, TrainingStep
from gradviz.render.terminal.steps import MAX_ODD, print_steps


def parts(duration, forward=0):
    return StepParts(
        duration_ns=duration,
        forward_ns=forward,
        backward_ns=duration // 2,
        optimizer_ns=0,
        other_ns=duration - duration // 2 - forward,
    )


def steps(*durations, odd=(), forward=0, outside=0):
    return Steps(
        found_by="shape",
        steps=tuple(
            TrainingStep(
                number=number,
                thread=0,
                begin_ns=0,
                parts=parts(took, forward),
                tasks=(number,),
                status="completed",
            )
            for number, took in enumerate(durations)
        ),
        median=parts(100, forward),
        slowest=0,
        odd=tuple(OddStep(place, why) for place, why in odd),
        num_outside=outside,
    )


def rows(shown, told):
    lines = shown(lambda console: print_steps(told, console))
    return [line.split() for line in lines]


def test_the_usual_the_slowest_and_the_odd_steps_are_rows(shown):
    odd = [(0, "slow"), (1, "fast"), (3, "failed")]
    told = rows(shown, steps(900, 40, 100, 300, odd=odd, forward=10))

    assert " ".join(told[1]) == "4 steps, found by the shapes of passes"
    assert told[2] == [
        *("step", "what", "took", "forward", "backward", "optimizer", "other")
    ]
    assert [row[:2] for row in told[3:]] == [
        ["median", "100"],
        ["0", "slowest"],
        ["3", "failed"],
        ["1", "fast"],
    ]


def test_parts_that_the_trace_does_not_have_are_no_columns(shown):
    told = rows(shown, steps(900, 40))

    assert told[2] == ["step", "what", "took", "backward", "other"]


def test_of_many_odd_steps_the_longest_are_told_and_the_others_counted(shown):
    durations = [1_000, *range(100, 109)]
    odd = [(place, "slow") for place in range(10)]
    told = rows(shown, steps(*durations, odd=odd, outside=2))

    assert [row[0] for row in told[5:-2]] == ["9", "8", "7", "6", "5"]
    assert len(told[5:-2]) == MAX_ODD
    assert told[-2][:3] == ["and", "4", "more"]
    assert " ".join(told[-1]) == "2 passes outside of any step"
