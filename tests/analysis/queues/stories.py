"""Stories of ready queues that several tests look at."""


def three_tasks(story):
    """Two lie in the queue when a third one comes, which runs first."""
    nodes = [story.node(number) for number in range(3)]
    story.begin(0, nodes, at=0)
    story.push(0, nodes[0], at=10)
    story.push(0, nodes[1], at=20)
    story.push(0, nodes[2], at=30)
    for at, number in ((40, 2), (60, 1), (90, 0)):
        story.pop(0, nodes[number], at=at)
    story.end(0, at=110)
    return story
