"""Small models built as the well-known ones are, over gradviz or over PyTorch.

Each function takes the library and returns the model and its loss. The names of modules
are those of the libraries that people take these models from: pictures show them.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

WORDS: Final = 11
WIDTH: Final = 4
LENGTH: Final = 5


class Built(NamedTuple):
    """A model, and the loss of one call.

    Attributes:
        model: Any module.
        loss: A tensor of one number.
    """

    model: Any
    loss: Any


def module(lib: ModuleType, name: str, call: Callable[..., Any], **parts: Any) -> Any:
    """Make a module of a class of that name, which calls `call` with itself first."""
    kind = type(name, (lib.nn.Module,), {"forward": call})
    made = kind()
    for part, value in parts.items():
        setattr(made, part, value)
    return made


def _tokens(lib: ModuleType) -> Any:
    return lib.tensor([[1, 2, 3, 4, 5]])


def _attended(lib: ModuleType, query: Any, key: Any, value: Any) -> Any:
    scores = query @ key.transpose(-2, -1) / WIDTH**0.5
    return lib.softmax(scores, dim=-1) @ value


def _heads(x: Any) -> Any:
    batch, length, width = x.shape
    return x.reshape(batch, length, 2, width // 2).transpose(1, 2)


def _merged(x: Any) -> Any:
    batch, heads, length, width = x.shape
    return x.transpose(1, 2).reshape(batch, length, heads * width)


# --- language models -------------------------------------------------------------


def bert(lib: ModuleType, depth: int = 4) -> Built:
    """Encoder layers; each normalizes what it adds up."""
    nn = lib.nn

    def self_attention(self: Any, x: Any) -> Any:
        query, key, value = self.query(x), self.key(x), self.value(x)
        return _merged(_attended(lib, _heads(query), _heads(key), _heads(value)))

    def output(self: Any, x: Any, residual: Any) -> Any:
        return self.LayerNorm(self.dense(x) + residual)

    def layer(_: int) -> Any:
        attention = module(
            lib,
            "BertAttention",
            lambda self, x: self.output(self.self(x), x),
            self=module(
                lib,
                "BertSelfAttention",
                self_attention,
                query=nn.Linear(WIDTH, WIDTH),
                key=nn.Linear(WIDTH, WIDTH),
                value=nn.Linear(WIDTH, WIDTH),
            ),
            output=module(
                lib,
                "BertSelfOutput",
                output,
                dense=nn.Linear(WIDTH, WIDTH),
                LayerNorm=nn.LayerNorm(WIDTH),
            ),
        )
        return module(
            lib,
            "BertLayer",
            lambda self, x: self.output(self.intermediate(a := self.attention(x)), a),
            attention=attention,
            intermediate=module(
                lib,
                "BertIntermediate",
                lambda self, x: nn.functional.gelu(self.dense(x)),
                dense=nn.Linear(WIDTH, 2 * WIDTH),
            ),
            output=module(
                lib,
                "BertOutput",
                output,
                dense=nn.Linear(2 * WIDTH, WIDTH),
                LayerNorm=nn.LayerNorm(WIDTH),
            ),
        )

    def encode(self: Any, x: Any) -> Any:
        for one in self.layer:
            x = one(x)
        return x

    def embed(self: Any, tokens: Any) -> Any:
        x = self.word_embeddings(tokens)
        x = x + self.position_embeddings(lib.arange(LENGTH))
        return self.LayerNorm(x)

    core = module(
        lib,
        "BertModel",
        lambda self, tokens: self.pooler(self.encoder(self.embeddings(tokens))),
        embeddings=module(
            lib,
            "BertEmbeddings",
            embed,
            word_embeddings=nn.Embedding(WORDS, WIDTH),
            position_embeddings=nn.Embedding(LENGTH, WIDTH),
            LayerNorm=nn.LayerNorm(WIDTH),
        ),
        encoder=module(
            lib, "BertEncoder", encode, layer=nn.ModuleList(map(layer, range(depth)))
        ),
        pooler=module(
            lib,
            "BertPooler",
            lambda self, x: lib.tanh(self.dense(x[:, 0])),
            dense=nn.Linear(WIDTH, WIDTH),
        ),
    )
    model = module(
        lib,
        "BertForSequenceClassification",
        lambda self, tokens: self.classifier(self.bert(tokens)),
        bert=core,
        classifier=nn.Linear(WIDTH, 2),
    )
    loss = nn.functional.cross_entropy(model(_tokens(lib)), lib.tensor([1]))
    return Built(model, loss)


def gpt2(lib: ModuleType, depth: int = 4) -> Built:
    """Decoder blocks, and a head that shares the weight of the embedding."""
    nn = lib.nn

    def attend(self: Any, x: Any) -> Any:
        parts = self.c_attn(x)
        query, key, value = (
            _heads(parts[..., at * WIDTH : (at + 1) * WIDTH]) for at in range(3)
        )
        return self.c_proj(_merged(_attended(lib, query, key, value)))

    def block(_: int) -> Any:
        def call(self: Any, x: Any) -> Any:
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

        return module(
            lib,
            "GPT2Block",
            call,
            ln_1=nn.LayerNorm(WIDTH),
            attn=module(
                lib,
                "GPT2Attention",
                attend,
                c_attn=nn.Linear(WIDTH, 3 * WIDTH),
                c_proj=nn.Linear(WIDTH, WIDTH),
            ),
            ln_2=nn.LayerNorm(WIDTH),
            mlp=module(
                lib,
                "GPT2MLP",
                lambda self, x: self.c_proj(self.act(self.c_fc(x))),
                c_fc=nn.Linear(WIDTH, 2 * WIDTH),
                c_proj=nn.Linear(2 * WIDTH, WIDTH),
                act=nn.GELU(),
            ),
        )

    def transform(self: Any, tokens: Any) -> Any:
        x = self.wte(tokens) + self.wpe(lib.arange(LENGTH))
        for one in self.h:
            x = one(x)
        return self.ln_f(x)

    model = module(
        lib,
        "GPT2LMHeadModel",
        lambda self, tokens: self.lm_head(self.transformer(tokens)),
        transformer=module(
            lib,
            "GPT2Model",
            transform,
            wte=nn.Embedding(WORDS, WIDTH),
            wpe=nn.Embedding(LENGTH, WIDTH),
            h=nn.ModuleList(map(block, range(depth))),
            ln_f=nn.LayerNorm(WIDTH),
        ),
        lm_head=nn.Linear(WIDTH, WORDS, bias=False),
    )
    model.lm_head.weight = model.transformer.wte.weight
    tokens = _tokens(lib)
    return Built(model, nn.functional.cross_entropy(model(tokens)[0], tokens[0]))


def _t5_norm(lib: ModuleType) -> Any:
    def call(self: Any, x: Any) -> Any:
        variance = (x * x).mean(-1, keepdim=True)
        return self.weight * (x * (variance + 1e-6) ** -0.5)

    weight = lib.nn.Parameter(lib.ones(WIDTH))
    return module(lib, "T5LayerNorm", call, weight=weight)


def _t5_attention(lib: ModuleType) -> Any:
    def call(self: Any, x: Any, seen: Any) -> Any:
        query, key, value = self.q(x), self.k(seen), self.v(seen)
        parts = _heads(query), _heads(key), _heads(value)
        return self.o(_merged(_attended(lib, *parts)))

    parts = {name: lib.nn.Linear(WIDTH, WIDTH, bias=False) for name in "qkvo"}
    return module(lib, "T5Attention", call, **parts)


def _t5_self_layer(lib: ModuleType) -> Any:
    def call(self: Any, x: Any, seen: Any) -> Any:
        del seen
        normed = self.layer_norm(x)
        return x + self.SelfAttention(normed, normed)

    return module(
        lib,
        "T5LayerSelfAttention",
        call,
        SelfAttention=_t5_attention(lib),
        layer_norm=_t5_norm(lib),
    )


def _t5_cross_layer(lib: ModuleType) -> Any:
    return module(
        lib,
        "T5LayerCrossAttention",
        lambda self, x, seen: x + self.EncDecAttention(self.layer_norm(x), seen),
        EncDecAttention=_t5_attention(lib),
        layer_norm=_t5_norm(lib),
    )


def _t5_dense_layer(lib: ModuleType) -> Any:
    dense = module(
        lib,
        "T5DenseActDense",
        lambda self, x: self.wo(lib.nn.functional.relu(self.wi(x))),
        wi=lib.nn.Linear(WIDTH, 2 * WIDTH, bias=False),
        wo=lib.nn.Linear(2 * WIDTH, WIDTH, bias=False),
    )
    return module(
        lib,
        "T5LayerFF",
        lambda self, x, _: x + self.DenseReluDense(self.layer_norm(x)),
        DenseReluDense=dense,
        layer_norm=_t5_norm(lib),
    )


def _t5_stack(
    lib: ModuleType, depth: int, layers: Sequence[Callable[..., Any]], shared: Any
) -> Any:
    def in_block(self: Any, x: Any, seen: Any) -> Any:
        for one in self.layer:
            x = one(x, seen)
        return x

    def in_stack(self: Any, tokens: Any, seen: Any = None) -> Any:
        x = self.embed_tokens(tokens)
        for one in self.block:
            x = one(x, seen)
        return self.final_layer_norm(x)

    blocks = (
        module(
            lib,
            "T5Block",
            in_block,
            layer=lib.nn.ModuleList(layer(lib) for layer in layers),
        )
        for _ in range(depth)
    )
    return module(
        lib,
        "T5Stack",
        in_stack,
        embed_tokens=shared,
        block=lib.nn.ModuleList(blocks),
        final_layer_norm=_t5_norm(lib),
    )


def t5(lib: ModuleType, depth: int = 4) -> Built:
    """An encoder, and a decoder each of whose blocks looks at what it gave."""
    shared = lib.nn.Embedding(WORDS, WIDTH)
    encoding = _t5_self_layer, _t5_dense_layer
    decoding = _t5_self_layer, _t5_cross_layer, _t5_dense_layer
    model = module(
        lib,
        "T5ForConditionalGeneration",
        lambda self, tokens: self.lm_head(self.decoder(tokens, self.encoder(tokens))),
        shared=shared,
        encoder=_t5_stack(lib, depth, encoding, shared),
        decoder=_t5_stack(lib, depth, decoding, shared),
        lm_head=lib.nn.Linear(WIDTH, WORDS, bias=False),
    )
    tokens = _tokens(lib)
    loss = lib.nn.functional.cross_entropy(model(tokens)[0], tokens[0])
    return Built(model, loss)


def deep_names(lib: ModuleType, depth: int = 12) -> Built:
    """Projections whose paths are much longer than any box."""
    nn = lib.nn

    def attend(self: Any, x: Any) -> Any:
        query, key, value = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        return x + self.out_proj(_attended(lib, query, key, value))

    def inner(_: int) -> Any:
        parts = {
            f"{name}_proj": nn.Linear(WIDTH, WIDTH) for name in ("q", "k", "v", "out")
        }
        return module(
            lib,
            "DecoderSubLayer",
            lambda self, x: self.attn(x),
            attn=module(lib, "Attention", attend, **parts),
        )

    def in_turn(self: Any, x: Any) -> Any:
        for one in self.layer:
            x = one(x)
        return x

    def block(_: int) -> Any:
        return module(
            lib,
            "DecoderBlock",
            in_turn,
            layer=nn.ModuleList(map(inner, range(3))),
        )

    model = module(
        lib,
        "MultimodalForConditionalGenerationWithSharedEmbeddings",
        lambda self, x: self.model(x),
        model=module(
            lib,
            "MultimodalModel",
            lambda self, x: self.decoder(x),
            decoder=module(
                lib,
                "Decoder",
                lambda self, x: _in_turn(self.block, x),
                block=nn.ModuleList(map(block, range(depth))),
            ),
        ),
    )
    return Built(model, model(lib.randn(1, LENGTH, WIDTH)).sum())


def _in_turn(modules: Any, x: Any) -> Any:
    for one in modules:
        x = one(x)
    return x


# --- models of images ------------------------------------------------------------


def vit(lib: ModuleType, depth: int = 6) -> Built:
    """Patches, then encoder blocks as timm has them."""
    nn = lib.nn

    def attend(self: Any, x: Any) -> Any:
        parts = self.qkv(x)
        query, key, value = (
            _heads(parts[..., at * WIDTH : (at + 1) * WIDTH]) for at in range(3)
        )
        return self.proj(_merged(_attended(lib, query, key, value)))

    def block(_: int) -> Any:
        def call(self: Any, x: Any) -> Any:
            x = x + self.attn(self.norm1(x))
            return x + self.mlp(self.norm2(x))

        return module(
            lib,
            "Block",
            call,
            norm1=nn.LayerNorm(WIDTH),
            attn=module(
                lib,
                "Attention",
                attend,
                qkv=nn.Linear(WIDTH, 3 * WIDTH),
                proj=nn.Linear(WIDTH, WIDTH),
            ),
            norm2=nn.LayerNorm(WIDTH),
            mlp=module(
                lib,
                "Mlp",
                lambda self, x: self.fc2(self.act(self.fc1(x))),
                fc1=nn.Linear(WIDTH, 2 * WIDTH),
                act=nn.GELU(),
                fc2=nn.Linear(2 * WIDTH, WIDTH),
            ),
        )

    def call(self: Any, images: Any) -> Any:
        x = self.patch_embed(images)
        x = lib.cat([self.cls_token, x], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])

    model = module(
        lib,
        "VisionTransformer",
        call,
        patch_embed=module(
            lib,
            "PatchEmbed",
            lambda self, x: self.proj(x).flatten(2).transpose(1, 2),
            proj=nn.Conv2d(3, WIDTH, 4, stride=4),
        ),
        cls_token=nn.Parameter(lib.zeros(1, 1, WIDTH)),
        pos_embed=nn.Parameter(lib.zeros(1, 5, WIDTH)),
        blocks=nn.Sequential(*map(block, range(depth))),
        norm=nn.LayerNorm(WIDTH),
        head=nn.Linear(WIDTH, 3),
    )
    scores = model(lib.randn(1, 3, 8, 8))
    return Built(model, nn.functional.cross_entropy(scores, lib.tensor([1])))


def resnet(lib: ModuleType, blocks: tuple[int, ...] = (3, 4, 6, 3)) -> Built:
    """Four layers of bottleneck blocks, as torchvision's resnet50 has them."""
    nn = lib.nn

    def conv(wide: int, out: int, size: int, stride: int = 1) -> Any:
        return nn.Conv2d(wide, out, size, stride, padding=size // 2, bias=False)

    def bottleneck(wide: int, out: int, stride: int) -> Any:
        def call(self: Any, x: Any) -> Any:
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.relu(self.bn2(self.conv2(y)))
            y = self.bn3(self.conv3(y))
            rest = x if self.downsample is None else self.downsample(x)
            return self.relu(y + rest)

        is_same = wide == out and stride == 1
        return module(
            lib,
            "Bottleneck",
            call,
            conv1=conv(wide, out, 1),
            bn1=nn.BatchNorm2d(out),
            conv2=conv(out, out, 3, stride),
            bn2=nn.BatchNorm2d(out),
            conv3=conv(out, out, 1),
            bn3=nn.BatchNorm2d(out),
            relu=nn.ReLU(),
            downsample=None
            if is_same
            else nn.Sequential(conv(wide, out, 1, stride), nn.BatchNorm2d(out)),
        )

    def layer(number: int, depth: int) -> Any:
        wide, out = max(1, number) * WIDTH, (number + 1) * WIDTH
        stride = 1 if number == 0 else 2
        first = bottleneck(wide if number else WIDTH, out, stride)
        if not number:
            first.downsample = nn.Sequential(conv(out, out, 1), nn.BatchNorm2d(out))
        rest = (bottleneck(out, out, 1) for _ in range(depth - 1))
        return nn.Sequential(first, *rest)

    def call(self: Any, x: Any) -> Any:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for number in range(1, len(blocks) + 1):
            x = getattr(self, f"layer{number}")(x)
        return self.fc(self.avgpool(x).flatten(1))

    layers = {f"layer{at + 1}": layer(at, depth) for at, depth in enumerate(blocks)}
    model = module(
        lib,
        "ResNet",
        call,
        conv1=conv(3, WIDTH, 7, 2),
        bn1=nn.BatchNorm2d(WIDTH),
        relu=nn.ReLU(),
        maxpool=nn.MaxPool2d(2),
        **layers,
        avgpool=nn.AdaptiveAvgPool2d(1),
        fc=nn.Linear(len(blocks) * WIDTH, 3),
    )
    scores = model(lib.randn(2, 3, 64, 64))
    return Built(model, nn.functional.cross_entropy(scores, lib.tensor([1, 0])))


def unet(lib: ModuleType, depth: int = 4) -> Built:
    """Down and up again, each level joined to its twin."""
    nn = lib.nn

    def double(wide: int, out: int) -> Any:
        layers = [nn.Conv2d(wide, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
        layers += [nn.Conv2d(out, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
        return module(
            lib,
            "DoubleConv",
            lambda self, x: self.double_conv(x),
            double_conv=nn.Sequential(*layers),
        )

    def down(_: int) -> Any:
        return module(
            lib,
            "Down",
            lambda self, x: self.maxpool_conv(x),
            maxpool_conv=nn.Sequential(nn.MaxPool2d(2), double(WIDTH, WIDTH)),
        )

    def up(_: int) -> Any:
        return module(
            lib,
            "Up",
            lambda self, x, twin: self.conv(lib.cat([twin, self.up(x)], dim=1)),
            up=nn.ConvTranspose2d(WIDTH, WIDTH, 2, stride=2),
            conv=double(2 * WIDTH, WIDTH),
        )

    def call(self: Any, x: Any) -> Any:
        levels = [self.inc(x)]
        for number in range(1, depth + 1):
            levels.append(getattr(self, f"down{number}")(levels[-1]))
        x = levels.pop()
        for number in range(1, depth + 1):
            x = getattr(self, f"up{number}")(x, levels.pop())
        return self.outc(x)

    parts = {f"down{number}": down(number) for number in range(1, depth + 1)}
    parts |= {f"up{number}": up(number) for number in range(1, depth + 1)}
    model = module(
        lib,
        "UNet",
        call,
        inc=double(1, WIDTH),
        **parts,
        outc=nn.Conv2d(WIDTH, 1, 1),
    )
    return Built(model, (model(lib.randn(2, 1, 32, 32)) ** 2).mean())


# --- modules that are called more than once ----------------------------------------


def lstm(lib: ModuleType, steps: int = 48) -> Built:
    """A cell that is called once a step, as language models of words were."""
    nn = lib.nn

    def call(self: Any, tokens: Any) -> Any:
        x = self.encoder(tokens)
        hidden = lib.zeros(1, WIDTH), lib.zeros(1, WIDTH)
        for step in range(steps):
            hidden = self.rnn(x[step], hidden)
        return self.decoder(hidden[0])

    model = module(
        lib,
        "RNNModel",
        call,
        encoder=nn.Embedding(WORDS, WIDTH),
        rnn=nn.LSTMCell(WIDTH, WIDTH),
        decoder=nn.Linear(WIDTH, WORDS),
    )
    tokens = lib.tensor([[step % WORDS] for step in range(steps)])
    return Built(model, nn.functional.cross_entropy(model(tokens), lib.tensor([1])))


def rnn(lib: ModuleType, steps: int = 48) -> Built:
    """A recurrence of plain operations, with a loss at each step."""
    nn = lib.nn

    def call(self: Any, x: Any) -> Any:
        hidden, losses = lib.zeros(1, WIDTH), []
        for step in range(steps):
            hidden = lib.tanh(self.i2h(x[step]) + self.h2h(hidden))
            losses.append((self.head(hidden) ** 2).mean())
        return sum(losses[1:], losses[0])

    model = module(
        lib,
        "CharRNN",
        call,
        i2h=nn.Linear(WIDTH, WIDTH),
        h2h=nn.Linear(WIDTH, WIDTH),
        head=nn.Linear(WIDTH, 1),
    )
    return Built(model, model(lib.randn(steps, 1, WIDTH)))


def siamese(lib: ModuleType) -> Built:
    """One encoder for both images."""
    nn = lib.nn
    encoder = nn.Sequential(
        *(nn.Conv2d(1, WIDTH, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(WIDTH, WIDTH, 3), nn.ReLU(), nn.Flatten()),
        nn.Linear(16, WIDTH),
    )

    def call(self: Any, one: Any, other: Any) -> Any:
        distance = self.encoder(one) - self.encoder(other)
        return self.head(distance.abs())

    model = module(lib, "SiameseNet", call, encoder=encoder, head=nn.Linear(WIDTH, 1))
    one, other = lib.randn(2, 1, 10, 10), lib.randn(2, 1, 10, 10)
    return Built(model, (model(one, other) ** 2).mean())


def gan(lib: ModuleType) -> Built:
    """The generator's loss: through the discriminator into the generator."""
    nn = lib.nn
    generator = module(
        lib,
        "Generator",
        lambda self, z: self.main(z),
        main=nn.Sequential(
            *(nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.ReLU()),
            *(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()),
            *(nn.Linear(8, 6), nn.Tanh()),
        ),
    )
    discriminator = module(
        lib,
        "Discriminator",
        lambda self, x: self.main(x),
        main=nn.Sequential(
            *(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 8)),
            *(nn.LeakyReLU(0.2), nn.Linear(8, 1)),
        ),
    )
    fake = generator(lib.randn(3, WIDTH))
    scores = discriminator(fake)
    loss = nn.functional.binary_cross_entropy_with_logits(scores, lib.ones(3, 1))
    return Built(nn.ModuleList([generator, discriminator]), loss)


KNOWN_MODELS: Final[dict[str, Callable[[ModuleType], Built]]] = {
    "BERT": bert,
    "GPT-2": gpt2,
    "T5": t5,
    "deep names": deep_names,
    "ViT": vit,
    "ResNet": resnet,
    "U-Net": unet,
    "LSTM": lstm,
    "RNN": rnn,
    "Siamese": siamese,
    "GAN": gan,
}
