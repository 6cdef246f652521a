"""Two branches of a model on two streams of one device, a third on another device."""

import argparse

import gradviz as gv


def branch(x, weights):
    """A few layers."""
    for weight in weights:
        x = (x @ weight).tanh()
    return x


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--size", type=int, default=256)
    arguments.add_argument("--layers", type=int, default=3)
    arguments.add_argument(
        "--forget", action="store_true", help="leave out one wait, to see it caught"
    )
    options = arguments.parse_args()

    gv.manual_seed(0)
    first, second = gv.device("sim:0"), gv.device("sim:1")
    main_stream = gv.current_stream(first)
    streams = [gv.Stream(first), gv.Stream(first)]

    def weights(device):
        shape = (options.size, options.size)
        scale = options.size**-0.5
        return [
            (gv.randn(*shape) * scale).to(device).requires_grad_()
            for _ in range(options.layers)
        ]

    x = gv.randn(64, options.size).to(first)
    parameters = [weights(first), weights(first), weights(second)]

    parts = []
    for stream, layers in zip(streams, parameters, strict=False):
        stream.wait_stream(main_stream)  # x and the weights were made there
        with gv.stream(stream):
            parts.append(branch(x, layers).square().mean())
    parts.append(branch(x.to(second), parameters[2]).square().mean().to(first))

    # The sum is computed on the main stream, and so has to wait for the branches.
    for stream in streams[: 1 if options.forget else 2]:
        main_stream.wait_stream(stream)
    for part in parts[:2]:
        part.record_stream(main_stream)
    loss = parts[0] + parts[1] + parts[2]
    # The backward needs no waits of ours: each node runs on the stream of its forward,
    # and the engine lets streams wait where gradients go from one to another.
    loss.backward()

    print(f"loss {loss.item():.4f}")
    for name, layers in zip(
        ("stream 1", "stream 2", "device 2"), parameters, strict=True
    ):
        norms = ", ".join(f"{weight.grad.norm().item():.4f}" for weight in layers)
        print(f"{name}: norms of the gradients {norms}")


if __name__ == "__main__":
    main()
