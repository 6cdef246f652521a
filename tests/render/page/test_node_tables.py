from gradviz.analysis.nodes.rpc_edges import RpcEdges
from gradviz.analysis.tables.passes import passes
from gradviz.render.page.document import build_page
from gradviz.render.words.rpc_edge_text import arrival_of, departure_of
from tests.render.page import programs


def test_each_end_of_a_message_has_its_sentence_and_the_node_at_the_other_end():
    trace = programs.workers()
    page = build_page(trace, trace.tasks)
    texts = (*page.texts, "")
    found = RpcEdges(trace, page.nodes.id)
    begin_ns = {part: one.begin_ns for one in passes(trace) for part in one.parts}

    assert len(page.crossings.node) == 2 * 4
    for place, node, fact, before, other, after in zip(*page.crossings, strict=True):
        task = page.header.passes[place].task
        crossing = found.of(task, int(page.nodes.id[node]), begin_ns[task])
        has_left = page.header.crossing_facts[fact] == "went"
        said = departure_of(crossing) if has_left else arrival_of(crossing)
        assert (texts[before], texts[after]) == (said.before, said.after)
        assert page.nodes.id[other] == said.node


def test_a_page_of_one_worker_has_none():
    trace = programs.capture()

    assert not len(build_page(trace, trace.tasks).crossings.node)
