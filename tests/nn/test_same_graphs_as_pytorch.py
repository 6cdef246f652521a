"""Layers, and what public models are made of, make PyTorch's nodes in PyTorch's order.

A line is a program: what it computes is described by the names of the nodes, in the
order in which they were made, and by where each of their edges leads. What PyTorch 2.13
makes of it is in ``graphs_of_pytorch.json``, which is compared with the PyTorch that is
installed. To write it again, run this file with a Python that has PyTorch.
"""

import json
import math
import re
import warnings
from itertools import count, product
from pathlib import Path

import pytest

GOLDEN = Path(__file__).with_name("graphs_of_pytorch.json")

#: Braces stand for each of the alternatives in them. ``grads`` makes the gradients of
#: all leaves with ``create_graph``, from ones that require gradients themselves.
FORMS = """
nn.{RNN|GRU|LSTM}(3,2,{|bias=False|num_layers=2|bidirectional=True})({x|c}(2,2,3))
nn.{RNN|GRU|LSTM}(3,2,num_layers=2,bidirectional=True,batch_first=True)(x(2,2,3))
nn.{RNN|GRU}(3,2,{|batch_first=True})(x(2,2,3),x(1,2,2))
nn.{RNN|GRU}(3,2,{|batch_first=True})(x(2,3),x(1,2))
nn.LSTM(3,2,{|batch_first=True})(x(2,2,3),(x(1,2,2),x(1,2,2)))
nn.LSTM(3,2,{|batch_first=True})(x(2,3),(x(1,2),x(1,2)))
nn.LSTM(3,4,proj_size=2,{|bidirectional=True})(x(2,2,3))
pack(nn.{RNN|GRU|LSTM}(3,2,{|bias=False|bidirectional=True}),{x|c}(3,3,3),[3,2,2])
pack(nn.{RNN|GRU|LSTM}(3,2,batch_first=True),x(3,3,3),[1,3,2])
nn.{RNN|GRU}Cell(3,2,{|bias=False})({x|c}({2,|}3))
nn.LSTMCell(3,2,{|bias=False})({x|c}({2,|}3))
nn.{GRU|RNN}Cell(3,2)(x(2,3),x(2,2))
nn.{GRU|RNN}Cell(3,2)(x(3),x(2))
nn.LSTMCell(3,2)(x(2,3),(x(2,2),x(2,2)))
nn.LSTMCell(3,2)(x(3),(x(2),x(2)))
nn.RNNCell(3,2,nonlinearity='relu')(c(2,3),x(2,2))
itself(nn.MultiheadAttention(4,2,{|bias=False|batch_first=True}),{x|c}({3,2|3},4),{|need_weights=False})
itself(nn.MultiheadAttention(4,2,{|add_bias_kv=True|add_zero_attn=True}),x(3,2,4),attn_mask=c(3,3),key_padding_mask=c(2,3){|>0})
itself(nn.MultiheadAttention(4,2,dropout=0.5),x(3,2,4),average_attn_weights=False)
pair(nn.MultiheadAttention(4,2,{|bias=False|batch_first=True}),x(2,2,4),x(2,2,4),{|need_weights=False})
nn.MultiheadAttention(4,2)(x(2,2,4),x(3,2,4),x(3,2,4))
nn.MultiheadAttention(4,2,kdim=3,vdim=5)(x(2,2,4),x(3,2,3),x(3,2,5))
nn.TransformerEncoderLayer(4,2,6,{|batch_first=True|norm_first=True|activation='gelu'}){|.eval()}({x|c}(3,2,4))
nn.TransformerEncoderLayer(4,2,6)(x(3,2,4),src_mask=nn.Transformer.generate_square_subsequent_mask(3),{|is_causal=True})
nn.TransformerEncoderLayer(4,2,6)(x(3,2,4),src_key_padding_mask=c(2,3)>0)
nn.TransformerDecoderLayer(4,2,6,{|batch_first=True|norm_first=True})(x(3,2,4),x(3,2,4))
nn.Transformer(4,2,1,1,6)(x(3,2,4),x(3,2,4),tgt_mask=nn.Transformer.generate_square_subsequent_mask(3))
nn.Transformer(4,2,1,1,6,batch_first=True)(x(2,3,4),x(2,3,4),tgt_is_causal=True,tgt_mask=nn.Transformer.generate_square_subsequent_mask(3))
nn.Linear(4,3,{|bias=False})({x(4)|x(2,4)|x(2,3,4)|x(3,2,4).transpose(0,1)|c(3,2,4).transpose(0,1)|x(2,4,3).mT})
nn.Bilinear(3,4,2,{|bias=False})(x(2,2,3),x(2,2,4))
nn.Conv1d(2,4,2,{|bias=False|groups=2|padding='same'})(x({2,|}2,3))
nn.Conv2d(2,4,2,{|bias=False|groups=2|padding='same'})(x({2,|}2,3,3))
nn.Conv3d(2,4,2,{|bias=False})(x(2,3,3,3))
nn.Conv1d(2,4,2,padding=1,padding_mode={'reflect'|'circular'|'replicate'})(x(2,2,4))
nn.Conv2d(2,4,2,padding=1,padding_mode={'reflect'|'circular'})({x|c}({1,|}2,4,4))
nn.ConvTranspose2d(2,4,2,{|bias=False|stride=2,output_padding=1})(x({1,|}2,3,3))
nn.BatchNorm2d(2,{|affine=False|track_running_stats=False}){|.eval()}({x|c}(2,2,3,3))
nn.InstanceNorm2d(2,{|affine=True|track_running_stats=True}){|.eval()}({x(2,2,3,3)|x(2,3,3)|x(2,3,3,2).permute(0,3,1,2)})
nn.GroupNorm(2,4)({x(2,4,3)|x(2,3,4).mT|x(2,3,3,4).permute(0,3,1,2)})
nn.LayerNorm(4,{|bias=False|elementwise_affine=False})({x(2,3,4)|x(2,4,3).mT})
nn.RMSNorm(4)(x(2,4))
nn.LocalResponseNorm(2)(x(2,{4,3|3,3,4}).transpose(1,-1))
nn.{Max|Avg|AdaptiveAvg|AdaptiveMax}Pool1d(2)(x(1,2,4))
nn.{Max|Avg|AdaptiveAvg|AdaptiveMax}Pool2d(2)(x(1,2,4,4))
nn.{Max|Avg|AdaptiveAvg|AdaptiveMax}Pool3d(2)(x(1,2,4,4,4))
nn.AdaptiveAvgPool{1d(1)(x(2,4,3).mT)|2d(1)(x(2,3,3,4).permute(0,3,1,2))}
nn.{LPPool2d(2,2)|Upsample(scale_factor=2)|Upsample(scale_factor=2,mode='bilinear')|PixelShuffle(2)|Unfold(2)|Softmax2d()}(x(1,4,4,4))
nn.{Circular|Reflection|Replication|Zero}Pad2d(1)(x(1,2,3,3))
nn.{ReLU|ReLU6|Sigmoid|Hardsigmoid|Tanh|SiLU|Mish|Hardswish|SELU|Softsign|LogSigmoid|Tanhshrink|ELU|CELU|GELU|Hardshrink|Softshrink|LeakyReLU|Softplus|Hardtanh|Dropout|AlphaDropout}()(x(2,2))
nn.{Softmin|Softmax|LogSoftmax}(dim=1)(x(2,3,2).transpose(0,1))
nn.{PReLU()|GLU()|Flatten()|Unflatten(1,(2,2))}(x(2,4))
nn.{CosineSimilarity()|PairwiseDistance()}(x(2,4),x(2,4))
nn.Embedding(5,3,{|padding_idx=1})(i(2,2))
nn.EmbeddingBag(5,3,mode={'sum'|'mean'|'max'})(i(2,2))
nn.{L1|MSE|SmoothL1|Huber|KLDiv|PoissonNLL}Loss(reduction={'mean'|'sum'|'none'})(x(2,3),x(2,3){|.detach()}.abs())
nn.{GaussianNLL|TripletMargin}Loss()(x(2,3),x(2,3),x(2,3).abs())
nn.CosineEmbeddingLoss()(x(2,3),x(2,3),c(2).sign())
nn.{BCE|BCEWithLogits|SoftMargin}Loss()(x(2,3).sigmoid(),c(2,3).sigmoid())
nn.CrossEntropyLoss({|label_smoothing=0.1,|weight=c(2).abs(),}reduction={'mean'|'none'})(x(2,2),i(2)%2)
nn.CrossEntropyLoss({|label_smoothing=0.1})(x(2,2,3),i(2,3)%2)
nn.CrossEntropyLoss()(x(2,3,2).transpose(1,2),{i(2,3)%2|c(2,2,3).softmax(1)})
nn.utils.weight_norm(nn.Conv1d(2,3,2),dim={0|1|2|None})(x(1,2,3))
F.scaled_dot_product_attention(*by_heads(x(2,3,12))).transpose(1,2).contiguous().view(2,3,4)
F.scaled_dot_product_attention(*by_heads(x(2,3,12)),{dropout_p=0.5|attn_mask=x(3,3)})
nn.Conv2d(3,4,2,2)(c(1,3,4,4)).flatten(2).transpose(1,2)
(nn.Conv2d(3,4,2,2)(c(1,3,4,4)).flatten(2).transpose(1,2)+x(1,4,4)).reshape(1,2,8)
(nn.LayerNorm(4)(x(2,4,3).mT).reshape(2,12),x(2,4,3).mT.softmax(-1).view(-1),x(3,2,4).transpose(0,1).sum(-1).view(6))
(x(2,4,3).mT+x(2,3,4)).reshape(-1)
(x(2,3,4)+x(2,4,3).mT).reshape(-1)
(x(2,3,4)[:,[0,2]].reshape(4,4),torch.cat([x(2,4,3).mT,x(2,4,3).mT],1).view(-1))
x({1|2},3,4)@{x|c}({1|2},4,5)
x(2,4,6).chunk(3,-1)[0].reshape(2,4,2,1).permute(0,2,1,3)@x(2,4,6).chunk(3,-1)[1].reshape(2,4,2,1).permute(0,2,3,1)
torch.einsum('b h i j, h g -> b g i j',x(1,2,3,3),x(2,2))
torch.einsum('b h i d, b h j d -> b h i j',*by_heads(x(1,3,12))[:2])
slope(nn.Sequential(nn.Linear(2,3),nn.{Tanh|ReLU|LeakyReLU|Sigmoid|Softplus|SiLU|GELU|ELU}(),nn.Linear(3,1)),x(2,2))
slope(nn.Sequential(nn.Conv2d(1,2,2),nn.{Tanh|LeakyReLU|SiLU}(),nn.Conv2d(2,1,2)),x(1,1,3,3)).norm(2,dim=1)**2
torch.{tensordot(x(2,3,4),x(4,2),dims=1)|diff(x(4))}
x(4)//{2|x(4)}
x(2,4,3).mT.{flip(1)|roll(1,1)|cumsum(1)|cumprod(1)|topk(2,1)[0]|scatter(1,i(2,3,4)%3,1.)}.reshape(-1)
torch.{addcmul(x(2,4,3).mT,x(2,3,4),x(2,3,4))|lerp(x(2,4,3).mT,x(2,3,4),0.3)}.reshape(-1)
slope(nn.Sequential(nn.Linear(2,3),nn.Tanh(),nn.Linear(3,1)),slope(nn.Sequential(nn.Linear(2,3),nn.Softplus()),x(2,2)))
nn.RReLU({|inplace=True}){|.eval()}(x(4)*1)
grads(x({3,4|4,3).t(})@x({4,5|5,4).t(}))
grads(torch.{addmm(x(3,5),x(3,4),x(5,4).t(),beta=2,alpha=3)|addmv(x(3),x(3,4),x(4))|addr(x(3,4),x(3),x(4))})
grads(torch.{bmm(x(2,3,4),x(2,4,5))|baddbmm(x(2,3,5),x(2,3,4),x(2,4,5))|addbmm(x(3,5),x(2,3,4),x(2,4,5))})
grads(x(2,3,4)@x(4{|,5}))
grads(F.linear({x(3,4)|x(2,3,4)|c(2,3,4)|x(4)},x(5,4),{x(5)|None}))
grads(nn.Linear(4,3)(nn.Linear(4,4)(c(2,4)).relu()))
grads(nn.Conv2d(2,4,2,{|bias=False,|groups=2,|stride=2,}padding=1)({x|c}({2,|}2,3,3)))
grads(nn.ConvTranspose2d(2,4,2,{|bias=False})({x|c}(2,2,3,3)))
grads(nn.Conv{1d(2,4,2)(x(2,2,3))|3d(2,2,2)(x(1,2,3,3,3))})
grads(nn.BatchNorm2d(2,{|affine=False}){|.eval()}(x(2,2,3,3)))
grads(nn.BatchNorm1d(2)(x(3,2)))
grads(nn.InstanceNorm2d(2)(x(2,2,3,3)))
grads(nn.LayerNorm(4,{|bias=False|elementwise_affine=False})(x(2,4)))
grads(nn.{Max|Avg|AdaptiveAvg|AdaptiveMax}Pool{1d(2)(x(1,2,4))|2d(2)(x(1,2,4,4))})
grads(nn.{Upsample(scale_factor=2)|Upsample(scale_factor=2,mode='bilinear')|PixelShuffle(2)|Unfold(2)|ReflectionPad2d(1)}(x(1,4,4,4)))
grads(nn.{ReLU|Sigmoid|Tanh|SiLU|Mish|Hardswish|SELU|LogSigmoid|ELU|GELU|Softshrink|LeakyReLU|Softplus|Hardtanh|PReLU|GLU}()(x(2,4)))
grads(nn.{Softmax|LogSoftmax}(dim=1)(x(2,3)))
grads(nn.CosineSimilarity()(x(2,4),x(2,4)))
grads(nn.{L1|MSE|SmoothL1|Huber|KLDiv}Loss(reduction={'mean'|'sum'})(x(2,3),x(2,3).abs()))
grads(nn.{BCE|BCEWithLogits|SoftMargin}Loss()(x(2,3).sigmoid(),c(2,3).sigmoid()))
grads(nn.CrossEntropyLoss({|label_smoothing=0.1})({x(2,2),i(2)|x(2,2,3),i(2,3)}%2))
grads(nn.Embedding(5,3)(i(2,2)))
grads(nn.{RNN|LSTM}({3,2)(x(2,2,3)|3,2,num_layers=2)(x(2,2,3)}))
grads(x(3,4).{sum(0)|mean()|mean(0)|norm()|norm(2,dim=1)|norm(3)|var()|std(1)|max()|max(0)|amax(0)|logsumexp(1)|sort(1)|median()})
grads(x(3,4).abs().{sqrt|rsqrt|log|log1p|reciprocal}())
grads(x(3,4).{exp|sin|tan|asinh|erf|expm1}())
grads(x(3,4).{unsqueeze(0)|repeat_interleave(2,0)|gather(1,i(3,2))|index_select(0,i(2))|masked_select(c(3,4)>0)})
grads(x(3,4)[{i(2)|c(3,4)>0|None,:,0}])
grads(x(3,4){+|-|*|/}x(4))
grads({2|x(3,4).abs()}{/|**}x(3,4))
grads(torch.{where(c(3,4)>0,x(3,4),x(4))|maximum(x(3,4),x(3,4))|lerp(x(3,4),x(3,4),x(3,4))|addcmul(x(3,4),x(3,4),x(3,4),value=2)|addcdiv(x(3,4),x(3,4),x(3,4),value=2)})
grads(F.normalize(x(3,4)))
""".strip().splitlines()


def by_heads(x, heads=2):
    """Heads of queries, keys and values, as many models make them of one product."""
    batch, length, width = x.shape
    size = width // 3 // heads
    return x.reshape(batch, length, 3, heads, size).permute(2, 0, 3, 1, 4).unbind(0)


def itself(layer, x, **options):
    """Attention of a sequence to itself."""
    return layer(x, x, x, **options)


def pair(layer, query, memory, **options):
    """Attention of a sequence to another."""
    return layer(query, memory, memory, **options)


def programs_of(form):
    """One program for each choice of the alternatives."""
    template = re.sub(r"\{.*?\}", "{}", form)
    alternatives = [one.split("|") for one in re.findall(r"\{(.*?)\}", form)]
    return [template.format(*one) for one in product(*alternatives)]


#: Each stands for what comes of it, so none is there twice.
PROGRAMS = list(dict.fromkeys(one for form in FORMS for one in programs_of(form)))


def results_of(lib, program):
    """Return the results of a program in one library."""
    rnn = lib.nn.utils.rnn

    def leaf(*shape):
        return constant(*shape).requires_grad_()

    def constant(*shape):
        numbers = [math.sin(1.7 * i + 0.3) for i in range(math.prod(shape))]
        return lib.tensor(numbers, dtype=lib.float64).reshape(shape).clone()

    def integers(*shape):
        return lib.tensor([i % 3 for i in range(math.prod(shape))]).reshape(shape)

    def pack(layer, x, lengths):
        is_sorted = lengths == sorted(lengths, reverse=True)
        settings = {"batch_first": layer.batch_first, "enforce_sorted": is_sorted}
        output, last = layer(rnn.pack_padded_sequence(x, lengths, **settings))
        return rnn.pad_packed_sequence(output, layer.batch_first)[0], last

    def slope(model, x):
        return lib.autograd.grad(model(x).sum(), x, create_graph=True)[0]

    def grads(results):
        results = [one for one in tensors_in(results) if one.requires_grad]
        weights = [leaf(*one.shape) for one in results]
        return lib.autograd.grad(
            results, leaves_of(results), weights, create_graph=True
        )

    names = {
        "torch": lib, "nn": lib.nn, "F": lib.nn.functional, "pack": pack, "x": leaf,
        "c": constant, "i": integers, "by_heads": by_heads, "itself": itself,
        "pair": pair, "slope": slope, "grads": grads,
    }  # fmt: skip
    before = lib.get_default_dtype()
    lib.set_default_dtype(lib.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tensors_in(eval(program, names))
    finally:
        lib.set_default_dtype(before)


def tensors_in(result):
    if isinstance(result, (tuple, list)):
        return [tensor for one in result for tensor in tensors_in(one)]
    return [] if result is None else [result]


def leaves_of(results):
    """Leaves that gradients of the results reach, as they are met on the way there."""
    found, waiting = {}, [one.grad_fn for one in reversed(results)]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found[node] = None
            waiting.extend(reversed([one for one, _ in node.next_functions]))
    return [node.variable for node in found if name(node) == LEAF]


def described(results):
    """The nodes in the order in which they were made, then where results come from.

    Edges are called by the number of the node they lead to, and of its output; those to
    leaves by letters.
    """
    found, waiting = set(), [one.grad_fn for one in results]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting.extend(next_node for next_node, _ in node.next_functions)
    nodes = sorted((one for one in found if name(one) != LEAF), key=sequence_nr)
    numbers = {node: str(number) for number, node in enumerate(nodes)}
    letters = (f"leaf{number}" for number in count())

    def edge(node, output_nr):
        if node is None:
            return "-"
        if node not in numbers:
            numbers[node] = next(letters)
        return numbers[node] + (f":{output_nr}" if output_nr else "")

    lines = [
        f"{name(node)}({' '.join(edge(*one) for one in node.next_functions)})"
        for node in nodes
    ]
    return [*lines, " ".join(edge(one.grad_fn, one.output_nr) for one in results)]


LEAF = "AccumulateGrad"


def name(node):
    return (node.name() if callable(node.name) else node.name).rpartition("::")[2]


def sequence_nr(node):
    return node._sequence_nr()


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", FORMS)
def test_a_program_makes_the_nodes_that_pytorch_makes_in_its_order(form, golden):
    import gradviz as gv

    for program in programs_of(form):
        assert described(results_of(gv, program)) == golden[program], program


def golden_of_pytorch():
    import torch

    return {one: described(results_of(torch, one)) for one in PROGRAMS}


@pytest.mark.parity
def test_the_file_holds_what_pytorch_makes(golden):
    pytest.importorskip("torch")

    assert golden_of_pytorch() == golden


def write_golden():
    lines = [
        f"{json.dumps(key)}: {json.dumps(one)}"
        for key, one in golden_of_pytorch().items()
    ]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write_golden()
