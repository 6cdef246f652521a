"""One loss over three devices: two branches on accelerators meet on the CPU."""

import gradviz as gv


def main():
    gv.manual_seed(0)
    x = gv.randn(32, 16)
    w0 = gv.randn(16, 8, device="sim:0", requires_grad=True)
    w1 = gv.randn(16, 8, device="sim:1", requires_grad=True)
    w2 = gv.randn(8, 1, requires_grad=True)

    left = (x.to("sim:0") @ w0).tanh().cpu()
    right = (x.to("sim:1") @ w1).sigmoid().cpu()
    loss = ((left * right) @ w2).square().mean()
    loss.backward()

    print(f"loss {loss.item():.4f}")
    for name, weight in {"w0": w0, "w1": w1, "w2": w2}.items():
        print(f"{name} on {weight.device}: gradient {tuple(weight.grad.shape)}")


if __name__ == "__main__":
    main()
