"""The engine by itself: exact derivatives of a polynomial, with fractions."""

from fractions import Fraction

from gradviz.engine import AccumulateGrad, Edge, Engine, Node


class Product(Node):
    """Backward of ``a * b``."""

    def __init__(self, a, b):
        super().__init__([Edge(a.node), Edge(b.node)])
        self.a, self.b = a.value, b.value

    def apply(self, grad):
        return grad * self.b, grad * self.a


class Sum(Node):
    """Backward of ``a + b``."""

    def __init__(self, a, b):
        super().__init__([Edge(a.node), Edge(b.node)])

    def apply(self, grad):
        return grad, grad


class Leaf:
    """What an AccumulateGrad fills."""

    def __init__(self):
        self.grad = None
        self.requires_grad = True


class Number:
    """A fraction, and the node that computed it; None for a constant."""

    def __init__(self, value, node=None):
        self.value, self.node = Fraction(value), node

    def __add__(self, other):
        return Number(self.value + other.value, Sum(self, other))

    def __mul__(self, other):
        return Number(self.value * other.value, Product(self, other))


def polynomial(x, coefficients):
    """By Horner's rule; the highest power first."""
    result = Number(coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + Number(coefficient)
    return result


def main():
    leaf = Leaf()
    x = Number(Fraction(1, 2), AccumulateGrad(leaf))
    y = polynomial(x, [2, -1, 0, 5])  # 2 x³ - x² + 5
    Engine().execute([Edge(y.node)], [Fraction(1)])
    print(f"2 x^3 - x^2 + 5 at x = {x.value}: {y.value}")
    print(f"its derivative 6 x^2 - 2 x there: {leaf.grad}")


if __name__ == "__main__":
    main()
