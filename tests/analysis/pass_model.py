"""A backward pass, gone through event by event, and changed at will.

What `gradviz.analysis.causes.causal_graph` does with columns, done anew with a list of
events and no cleverness, to check the one against the other.
"""

from collections import defaultdict

from gradviz.trace import events as e

MOMENTS = (
    *(e.TaskBegun, e.DependenciesCounted, e.ReentrantEntered, e.TaskPushed),
    *(e.TaskPopped, e.NodeStarted, e.GradientBuffered, e.NodeCompleted, e.NodeFailed),
    *(e.NodeSkipped, e.CallbackRun, e.TaskCompleted, e.TaskFailed, e.ReentrantLeft),
)


class Model:
    """The events of pass `task`, what each of them waits for, and whose time it ends.

    Attributes:
        on_thread: Of each event the one before it on its thread, or the first of all.
        others: Of each event those of other threads that it waits for.
        owner: The (task, node) that ran on its thread until then, or None.
    """

    def __init__(self, trace, task):
        every = [one for one in trace.events() if isinstance(one, MOMENTS)]
        begun, done = (
            [
                i
                for i, one in enumerate(every)
                if isinstance(one, kinds) and one.task == task
            ]
            for kinds in (e.TaskBegun, (e.TaskCompleted, e.TaskFailed))
        )
        first, last = begun[0], done[-1]
        self.events = every[first : last + 1]
        self.times = [one.t_ns - self.events[0].t_ns for one in self.events]
        owners = _owners(every)
        newest, others = {}, _awaited(every)
        self.owner, self.on_thread, self.others = [], [], []
        for i, one in enumerate(self.events):
            self.owner.append(owners[first + i])
            self.on_thread.append(newest.get(one.thread, 0))
            self.others.append(
                [
                    j - first
                    for j in others[first + i]
                    if j >= first and every[j].thread != one.thread
                ]
            )
            newest[one.thread] = i

    def latest(self, i):
        """Return the event that event `i` actually waited for."""
        own = self.on_thread[i]
        latest = max(self.others[i], key=self.times.__getitem__, default=0)
        return latest if self.times[latest] > self.times[own] else own

    def path(self):
        """The events from the begin to the end of which each waited for the last."""
        found = [len(self.events) - 1]
        while found[-1]:
            found.append(self.latest(found[-1]))
        return found[::-1]

    def duration(self, free=None, later=None, by=0):
        """Return the duration if a node takes no time, or an event is later."""
        reached = [0]
        for i in range(1, len(self.events)):
            waited_for = self.latest(i)
            took = self.times[i] - self.times[waited_for]
            if free is not None and self.owner[i] == free:
                took = 0
            came = max(reached[j] for j in (self.on_thread[i], *self.others[i]))
            reached.append(came + took + (by if i == later else 0))
        return reached[-1]

    def runs(self):
        """Each (task, node) that ran, with its last event."""
        return {
            (one.task, one.node): i
            for i, one in enumerate(self.events)
            if isinstance(one, e.NodeCompleted | e.NodeFailed)
        }

    def own_time(self, key):
        return sum(
            self.times[i] - self.times[self.on_thread[i]]
            for i in range(1, len(self.events))
            if self.owner[i] == key
        )


def _owners(every):
    """Of each event the node that its thread was inside of until then, or None."""
    inside, found = defaultdict(list), []
    for one in every:
        stack = inside[one.thread]
        found.append(stack[-1] if stack else None)
        match one:
            case e.NodeStarted():
                stack.append((one.task, one.node))
            case e.TaskBegun():
                stack.append(None)
            case e.NodeCompleted() | e.NodeFailed() | e.ReentrantLeft():
                stack.pop()
    return found


def _awaited(every):
    """Of each event those that had to come before it."""
    pushed, given = defaultdict(list), defaultdict(list)
    ended, outcome = defaultdict(dict), {}
    found = []
    for i, one in enumerate(every):
        key = one.task, one.node
        found.append([])
        match one:
            case e.TaskPushed():
                pushed[*key, one.queue].append(i)
            case e.GradientBuffered():
                given[key].append(i)
            case e.TaskPopped():
                found[i].append(pushed[*key, one.queue].pop(0))
                found[i] += given[key] if one.node >= 0 else []
            case e.NodeCompleted() | e.NodeFailed() | e.NodeSkipped():
                ended[one.task][one.thread] = i
            case e.TaskCompleted():
                found[i] += ended[one.task].values()
                outcome[one.task] = i
            case e.TaskFailed():
                outcome[one.task] = i
            case e.ReentrantLeft():
                found[i].append(outcome[one.task])
    return found
