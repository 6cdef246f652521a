"""Small programs of three workers, in PyTorch or in gradviz.

Run as ``python -m tests.parity.distributed_programs RANK FILE`` it is a worker of
PyTorch, which meets the others at FILE; worker 0 prints what each program has shown.
"""

import json
import os
import re
import sys
from types import SimpleNamespace
from typing import Any

#: The library: its namespaces `lib`, `rpc` and `autograd`, its distributed
#: optimizer, and a function that fails.
WORLD: Any = SimpleNamespace()


def add(x, y):
    return x + y


def double(x):
    return x * 2


def both(x):
    return [x * 2, x * 3]


def plain(values):
    return list(values)


def fails(x):
    return WORLD.fails(x)


def raises(words):
    raise ValueError(words)


def hooked(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    return y


def modes(x):
    return [WORLD.lib.is_grad_enabled(), x.requires_grad]


def parameter(numbers):
    return leaf(*numbers)


def times(parameter, x):
    return parameter.local_value() * x


FUNCTIONS = {
    one.__name__: one
    for one in (
        add,
        double,
        both,
        plain,
        fails,
        raises,
        hooked,
        modes,
        parameter,
        times,
    )
}


def on(workers, name, args):
    """Call a function on the last of several workers, each of which asks the next."""
    if not workers:
        return FUNCTIONS[name](*args)
    first, *rest = workers
    return WORLD.rpc.rpc_sync(f"worker{first}", on, args=(rest, name, args))


def leaf(*numbers):
    return WORLD.lib.tensor([*map(float, numbers)], requires_grad=True)


def shown(context_id, *leaves):
    """The gradients of leaves, in numbers."""
    found = WORLD.autograd.get_gradients(context_id)
    return [found[one].tolist() if one in found else None for one in leaves]


def names(root):
    """The nodes of this worker that lead to a tensor, by name, as a walk meets them."""
    todo, seen = [root.grad_fn], []
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.append(node)
            todo += [child for child, _ in node.next_functions]
    return [one.name().rpartition(":")[2] for one in seen]


def words(context_id, roots, **options):
    """The first line of the error of a backward, None if there is none."""
    try:
        WORLD.autograd.backward(context_id, roots, **options)
    except (RuntimeError, TypeError, ValueError) as error:
        return first_line(error)
    return None


def first_line(error):
    line = str(error).strip().partition("\n")[0]
    line = re.sub(r"^roots\[\d+\] ", "", line)  # PyTorch has no name for it
    return re.sub(r"id: ?-?\d+", "id", line).partition(". ")[0].rstrip(". ")


def chain(*hops, name="double"):
    def program():
        x = leaf(1, 2)
        with WORLD.autograd.context() as context_id:
            y = on(list(hops), name, (x * 3,))
            known = names(y)
            return [known, words(context_id, [(y * y).sum()]), shown(context_id, x)]

    return program


def two_tensors():
    x, y = leaf(1, 2), leaf(3, 4)
    with WORLD.autograd.context() as context_id:
        total = on([1], "add", (x, y * x))
        return [
            names(total),
            words(context_id, [total.sum()]),
            shown(context_id, x, y),
        ]


def one_tensor_twice():
    x = leaf(1, 2)
    with WORLD.autograd.context() as context_id:
        total = on([1], "add", (x, x))
        return [words(context_id, [total.sum()]), shown(context_id, x)]


def six_round_trips():
    x = leaf(1)
    with WORLD.autograd.context() as context_id:
        y = x
        for number in range(6):
            y = on([1 + number % 2], "double", (y,))
        return [names(y), words(context_id, [y.sum()]), shown(context_id, x)]


def several_outputs():
    x = leaf(1, 2)
    with WORLD.autograd.context() as context_id:
        y, z = on([1], "both", (x,))
        return [names(y * z), words(context_id, [(y * z).sum()]), shown(context_id, x)]


def mixed_list():
    x, y = leaf(1), leaf(2)
    constant = WORLD.lib.tensor([5.0])
    with WORLD.autograd.context() as context_id:
        back = on([1], "plain", ([x, constant, y],))
        wanted = [one.requires_grad for one in back]
        loss = (back[0] * 2 + back[2] * 3 + back[1]).sum()
        return [wanted, words(context_id, [loss]), shown(context_id, x, y)]


def several_roots():
    x = leaf(2)
    with WORLD.autograd.context() as context_id:
        roots = [on([1], "double", (x,)).sum(), on([2], "double", (x * x,)).sum()]
        return [words(context_id, roots), shown(context_id, x)]


def two_backwards():
    x = leaf(1, 2)
    with WORLD.autograd.context() as context_id:
        loss = on([1], "double", (x,)).sum()
        seen = []
        for _ in range(2):
            seen += [words(context_id, [loss], retain_graph=True), shown(context_id, x)]
        return [*seen, x.grad is None]


def a_local_graph():
    x = leaf(3)
    with WORLD.autograd.context() as context_id:
        return [words(context_id, [(x * x).sum()]), shown(context_id, x)]


def failing_twice():
    x = leaf(1)
    with WORLD.autograd.context() as context_id:
        loss = on([1, 2], "fails", (x,)).sum()
        return [words(context_id, [loss], retain_graph=True) for _ in range(2)]


def nothing_needed():
    with WORLD.autograd.context():
        y = on([1], "double", (WORLD.lib.tensor([1.0]),))
        return [y.requires_grad, y.grad_fn is None]


def a_remote_value():
    x = leaf(4)
    with WORLD.autograd.context() as context_id:
        value = WORLD.rpc.remote("worker1", double, args=(x,)).to_here()
        return [
            names(value),
            words(context_id, [value.sum()]),
            shown(context_id, x),
        ]


def without_grad_mode(mode, hops):
    """A call, in a mode that records nothing, of a tensor that needs a gradient."""

    def program():
        x, factor = leaf(1, 2), leaf(3, 4)
        with WORLD.autograd.context() as context_id:
            with getattr(WORLD.lib, mode)():
                y = on(hops, "double", (x,))
            seen = [names(y), y.is_leaf, y.requires_grad, y.is_inference()]
            failed = words(context_id, [(y * factor).sum()])
            return [*seen, failed, shown(context_id, x, factor)]

    return program


def modes_of_a_callee(*hops):
    def program():
        x = leaf(1)
        with WORLD.autograd.context(), WORLD.lib.no_grad():
            return on([*hops], "modes", (x,))

    return program


def a_mode_between_call_and_wait():
    x = leaf(1)
    with WORLD.autograd.context():
        with WORLD.lib.no_grad():
            silent = WORLD.rpc.rpc_async("worker1", double, args=(x,))
        recorded = WORLD.rpc.rpc_async("worker1", double, args=(x,))
        with WORLD.lib.no_grad():
            return [names(silent.wait()), names(recorded.wait())]


def a_remote_value_without_grad_mode():
    x = leaf(4)
    with WORLD.autograd.context():
        rref = WORLD.rpc.remote("worker1", double, args=(x,))
        with WORLD.lib.no_grad():
            value = rref.to_here()
        return [names(value), value.requires_grad, names(rref.to_here())]


def optimized(name, workers=(0, 1, 2, 1), **options):
    """Parameters of several workers, one of which is not used, after three steps."""

    def program():
        rrefs = [
            WORLD.rpc.remote(f"worker{one}", parameter, args=([1, 2],))
            for one in workers
        ]
        optimizer = WORLD.optimizer(getattr(WORLD.lib.optim, name), rrefs, **options)
        x = WORLD.lib.tensor([3.0, -3.0])
        for _ in range(3):
            with WORLD.autograd.context() as context_id:
                loss = 0
                for where, rref in zip(workers[:-1], rrefs[:-1], strict=True):
                    y = WORLD.rpc.rpc_sync(f"worker{where}", times, args=(rref, x))
                    loss = loss + (y * y).sum()
                WORLD.autograd.backward(context_id, [loss])
                optimizer.step(context_id)
        return [[round(one, 5) for one in rref.to_here().tolist()] for rref in rrefs]

    return program


def refused_option():
    rref = WORLD.rpc.remote("worker1", parameter, args=([1],))
    try:
        WORLD.optimizer(WORLD.lib.optim.Adam, [rref], lr=-1.0)
    except ValueError as error:
        return "Invalid learning rate: -1.0" in str(error)


def a_step_in_a_context_that_is_over():
    rref = WORLD.rpc.remote("worker1", parameter, args=([1],))
    optimizer = WORLD.optimizer(WORLD.lib.optim.SGD, [rref], lr=0.1)
    try:
        optimizer.step(12345)
    except RuntimeError as error:
        return first_line(error)


def refused(make_roots):
    def program():
        with WORLD.autograd.context() as context_id:
            return words(context_id, make_roots())

    return program


def an_unknown_context():
    return words(12345, [leaf(1).sum()])


def a_context_that_is_over():
    with WORLD.autograd.context() as context_id:
        pass
    try:
        WORLD.autograd.get_gradients(context_id)
    except RuntimeError as error:
        return first_line(error)
    return None


def a_context_inside():
    with WORLD.autograd.context():
        try:
            with WORLD.autograd.context():
                return None
        except RuntimeError as error:
            return first_line(error)


def an_error_in_the_forward():
    with WORLD.autograd.context():
        try:
            on([1], "raises", ("no way",))
        except ValueError as error:
            text = str(error)
            return [
                text.partition("On WorkerInfo")[2].partition("\n")[0],
                "ValueError('no way')" in text,
            ]
    return None


PROGRAMS = {
    "one call": chain(1),
    "a call of itself": chain(0),
    "a third worker": chain(1, 2),
    "there and back": chain(1, 0),
    "there and back twice": chain(1, 0, 2, 0),
    "a hook over there": chain(1, name="hooked"),
    "a failure there": chain(1, name="fails"),
    "a failure beyond": chain(1, 2, name="fails"),
    "two tensors": two_tensors,
    "one tensor twice": one_tensor_twice,
    "six round trips": six_round_trips,
    "several outputs": several_outputs,
    "a mixed list": mixed_list,
    "several roots": several_roots,
    "two backwards": two_backwards,
    "a local graph": a_local_graph,
    "failing twice": failing_twice,
    "nothing needed": nothing_needed,
    "a remote value": a_remote_value,
    "a call in no_grad": without_grad_mode("no_grad", [1]),
    "calls over two workers in no_grad": without_grad_mode("no_grad", [1, 2]),
    "a call in inference mode": without_grad_mode("inference_mode", [1]),
    "modes of a callee": modes_of_a_callee(1),
    "modes of a callee's callee": modes_of_a_callee(1, 2),
    "a mode between call and wait": a_mode_between_call_and_wait,
    "a remote value in no_grad": a_remote_value_without_grad_mode,
    "SGD": optimized("SGD", lr=0.01),
    "SGD with momentum": optimized("SGD", lr=0.01, momentum=0.9),
    "Adam": optimized("Adam", lr=0.01),
    "AdamW": optimized("AdamW", lr=0.01),
    "Adagrad": optimized("Adagrad", lr=0.01),
    "Adadelta": optimized("Adadelta", rho=0.9),
    "RMSprop": optimized("RMSprop", lr=0.01),
    "Adamax": optimized("Adamax", lr=0.01),
    "Rprop": optimized("Rprop", lr=0.01),
    "NAdam": optimized("NAdam", lr=0.01),
    "an option out of range": refused_option,
    "a step in a context that is over": a_step_in_a_context_that_is_over,
    "no roots": refused(list),
    "a root of two elements": refused(lambda: [leaf(1, 2) * 2]),
    "a root that needs no gradient": refused(lambda: [WORLD.lib.tensor([1.0]).sum()]),
    "a root that is a leaf": refused(lambda: [leaf(1)]),
    "an unknown context": an_unknown_context,
    "a context that is over": a_context_that_is_over,
    "a context inside": a_context_inside,
    "an error in the forward": an_error_in_the_forward,
}


def outcomes():
    """Return the results of each program, by name."""
    return {name: program() for name, program in PROGRAMS.items()}


def failing_function(function):
    """A function whose backward raises, of either library."""

    class Fails(function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise RuntimeError("Simulate error on backward pass")

    return Fails.apply


def main(rank, file):
    import torch
    from torch.distributed import autograd, rpc
    from torch.distributed.optim import DistributedOptimizer

    WORLD.__dict__.update(
        lib=torch,
        rpc=rpc,
        autograd=autograd,
        optimizer=DistributedOptimizer,
        fails=failing_function(torch.autograd.Function),
    )
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{file}")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=3, rpc_backend_options=options)
    if rank == 0:
        print(json.dumps(outcomes()), flush=True)  # noqa: T201 - the answer
        # After a failed pass PyTorch's own shutdown takes half a minute.
        os._exit(0)
    rpc.shutdown()


if __name__ == "__main__":
    # Functions are known by their module, which must not be called __main__.
    from tests.parity import distributed_programs

    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    distributed_programs.main(int(sys.argv[1]), sys.argv[2])
