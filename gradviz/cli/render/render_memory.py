"""``gradviz render memory``."""

from gradviz.analysis.memory.allocations import NEEDED, holdings
from gradviz.analysis.memory.memory_use import HeldMemory, build_memory
from gradviz.cli.console.notes import working
from gradviz.cli.render.over_time import (
    PictureRequest,
    drawn,
    over_time_command,
    panels_of,
    program_of,
)
from gradviz.cli.render.picture_command import PictureFile
from gradviz.render.charts.memory_svg import render_memory
from gradviz.render.words.text import count


@over_time_command("memory", then="show memory", needs=NEEDED, all_nodes=True)
def command(request: PictureRequest) -> PictureFile:
    """Draw how many bytes were held when, for what, and who held them at the peak."""
    trace = request.trace
    with working("adding up what was held"):
        held = holdings(trace)

    def build(task: int, begin_ns: int, end_ns: int | None) -> HeldMemory:
        return build_memory(
            trace, [task], begin_ns, end_ns, held=held, has_savings=False
        )

    memories = panels_of(request, build)
    return drawn(
        request,
        f"the memory of {count(len(memories), 'pass')}",
        lambda: render_memory(memories, program_of(trace), request.width),
    )
