"""A recurrent cell with two outputs: one weight used at every step, two losses."""

import gradviz as gv

NUM_STEPS = 4


def main():
    gv.manual_seed(0)
    inputs = gv.randn(NUM_STEPS, 8, 3)
    classes = gv.randint(0, 4, (8,))
    w_in = gv.randn(3, 5, requires_grad=True)
    w_state = gv.randn(5, 5, requires_grad=True)
    w_value = gv.randn(5, 1, requires_grad=True)
    w_class = gv.randn(5, 4, requires_grad=True)

    state = gv.zeros(8, 5)
    for x in inputs:
        state = (x @ w_in + state @ w_state).tanh()

    value_loss = (state @ w_value).square().mean()
    class_loss = gv.cross_entropy(state @ w_class, classes)
    gv.autograd.backward([value_loss, class_loss])

    print(f"losses {value_loss.item():.4f} and {class_loss.item():.4f}")
    print(f"w_state, used {NUM_STEPS} times: gradient sum {w_state.grad.sum():.4f}")


if __name__ == "__main__":
    main()
