"""Random expressions, parts of which are other workers'."""

from gradviz.distributed import rpc


@rpc.register
def evaluate(plan, values, timeout=60.0):
    """The value of an expression, parts of which are other workers'.

    A plan is the number of a value, or a worker, an operation and two plans.
    """
    if isinstance(plan, int):
        return values[plan]
    where, operation, left, right = plan
    if where not in (None, rpc.get_worker_info().id):
        there = ((None, operation, left, right), values, timeout)
        return rpc.rpc_sync(where, evaluate, there, timeout=timeout)
    first, second = (evaluate(one, values, timeout) for one in (left, right))
    return {"+": first + second, "*": first * second, "-": first - second}[operation]


def plan_of(generator, workers, depth):
    if depth == 0 or generator.random() < 0.15:
        return generator.randrange(3)
    parts = [plan_of(generator, workers, depth - 1) for _ in range(2)]
    return (generator.choice(workers), generator.choice("+*-"), *parts)


def value_of(plan, values):
    if isinstance(plan, int):
        return values[plan]
    _, operation, left, right = plan
    first = value_of(left, values)
    second = value_of(right, values)
    return {"+": first + second, "*": first * second, "-": first - second}[operation]
