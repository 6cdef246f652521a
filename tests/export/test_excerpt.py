from gradviz.export.excerpt import excerpt


def test_an_excerpt_has_the_events_of_its_passes_and_no_others(story):
    node = story.node(1)
    for task, at in ((7, 0), (8, 100)):
        story.begin(task, [node], at=at)
        story.ran(task, node, at=at + 10, until=at + 20)
        story.waited(3, until=at + 30)
        story.end(task, at=at + 40)
    story.waited(3, until=300)
    trace = story.trace()
    part = excerpt(trace, [8])

    told = [
        one
        for one in trace.events()
        if one.task == 8 or (one.task == -1 and 1100 <= one.t_ns <= 1140)
    ]
    assert [*part.events()] == told
    assert {one.task for one in told} == {8, -1}


def test_it_has_the_passes_that_were_called_from_inside_too(story):
    node = story.node(1)
    story.begin(7, [node], at=0)
    story.begin(8, [node], at=10, parent=7)
    story.end(8, at=20)
    story.end(7, at=30)
    trace = story.trace()

    assert excerpt(trace, [7]).tasks == (7, 8)
    assert excerpt(trace, [8]).tasks == (8,)
