"""``gradviz render queues``."""

from typing import Final

from gradviz.analysis.queues.queues_over_time import QueuesOverTime, queues_over_time
from gradviz.cli.render.over_time import (
    PictureRequest,
    drawn,
    over_time_command,
    panels_of,
    program_of,
)
from gradviz.cli.render.picture_command import PictureFile
from gradviz.render.charts.queues_svg import render_queues
from gradviz.render.words.text import count

#: Without these a queue would seem to be what it was not.
NEEDED: Final = ("task_pushed", "task_popped", "queue_waited")


@over_time_command("queues", then="show queues", needs=NEEDED, all_nodes=True)
def command(request: PictureRequest) -> PictureFile:
    """Draw the length of ready queues, their tasks, and the threads asleep on them."""

    def build(task: int, begin_ns: int, end_ns: int | None) -> QueuesOverTime:
        return queues_over_time(request.trace, [task], begin_ns, end_ns)

    passes = panels_of(request, build)
    return drawn(
        request,
        f"the queues of {count(len(passes), 'pass')}",
        lambda: render_queues(passes, program_of(request.trace), request.width),
    )
