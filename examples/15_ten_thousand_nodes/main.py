"""A deep transformer, whose backward has ten thousand nodes."""

import argparse

import gradviz as gv
from gradviz import nn

WIDTH = 8


class Deep(nn.Module):
    """Many layers of an encoder, each like the one before."""

    def __init__(self, num_layers):
        super().__init__()
        self.embedding = nn.Embedding(32, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers)
        self.output = nn.Linear(WIDTH, 32)

    def forward(self, tokens):
        return self.output(self.encoder(self.embedding(tokens)))


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--layers", type=int, default=186)
    options = arguments.parse_args()

    gv.manual_seed(0)
    model = Deep(options.layers)
    tokens = gv.randint(0, 32, (2, 6))
    predicted = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(predicted.flatten(0, 1), tokens[:, 1:].flatten())
    num_nodes = gv.graph_size(loss).nodes
    loss.backward()
    print(f"loss {loss.item():.4f}, {num_nodes:,} nodes")


if __name__ == "__main__":
    main()
