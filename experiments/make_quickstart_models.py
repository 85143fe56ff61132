"""Train the two quickstart models and write them, with their test data, next to this script.

    models/digits-mlp.onnx   residual MLP; LayerNorm and GELU are written out in primitive operators
    models/digits-cnn.onnx   residual CNN; Conv, BatchNormalization and Relu are separate nodes
    data/digits-test.npz     the held-out images and labels

Data: the 1797 8x8 images of handwritten digits that scikit-learn ships (UCI "Optical Recognition of Handwritten
Digits"), pixels scaled to [0, 1]. Both models take `image`, float32 [batch, 1, 8, 8], and give `logits`, float32
[batch, 10]. Nothing is folded or fused: that is left to the runtime. Deep and narrow, they are small as files, and yet
one inference at batch 1 takes long enough to be timed by itself.

The committed files were made on x86-64 with Python 3.11.7 and
    pip install torch==2.15.0 onnx==1.23.2 onnxruntime==1.31.1 scikit-learn==1.9.1 numpy==2.4.6
The same versions on the same processor give the same bytes; elsewhere the last digits of the weights may differ.
"""

from pathlib import Path

import numpy as np
import onnxruntime
import torch
from onnx import TensorProto, checker, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).resolve().parent
SEED = 42
OPSET = 16  # The last one without LayerNormalization: exporters that target it write the layer out, as is done here.
IR_VERSION = 8  # Came with opset 15; every ONNX Runtime that knows opset 16 reads it.


class ResidualMlp(nn.Module):
    """Blocks of x + contract(GELU(expand(norm(x)))): a transformer without its attention."""

    def __init__(self, width=32, hidden=64, depth=16):
        super().__init__()
        self.embed = nn.Linear(64, width)
        layers = ((nn.LayerNorm(width), nn.Linear(width, hidden), nn.Linear(hidden, width)) for _ in range(depth))
        self.blocks = nn.ModuleList(map(nn.ModuleList, layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, image):
        x = self.embed(image.flatten(1))
        for norm, expand, contract in self.blocks:
            x = x + contract(nn.functional.gelu(expand(norm(x))))
        return self.head(self.norm(x))


def conv_norm(channels_in, channels_out, stride=1):
    conv = nn.Conv2d(channels_in, channels_out, kernel_size=3, stride=stride, padding=1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(channels_out))


class ResidualCnn(nn.Module):
    """A small ResNet of two stages, at 8x8 and 4x4 pixels: a convolution that widens, then residual blocks."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList()
        for channels_in, channels, stride, depth in ((1, 16, 1, 2), (16, 32, 2, 3)):
            entry = conv_norm(channels_in, channels, stride)
            blocks = (nn.ModuleList(conv_norm(channels, channels) for _ in range(2)) for _ in range(depth))
            self.stages.append(nn.ModuleList((entry, nn.ModuleList(blocks))))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        for entry, blocks in self.stages:
            x = nn.functional.relu(entry(x))
            for first, second in blocks:
                x = nn.functional.relu(x + second(nn.functional.relu(first(x))))
        return self.head(x.mean((2, 3)))


class Graph:
    """Collects the nodes and initialisers of an ONNX graph. A node has one output, which bears the node's name."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def node(self, op_type, name, *inputs, **attributes):
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=name, **attributes))
        return name

    def initializer(self, name, values):
        tensor = torch.as_tensor(values, dtype=torch.float32).detach().contiguous()
        self.initializers.append(numpy_helper.from_array(tensor.numpy(), name))
        return name

    def linear(self, name, x, layer):
        product = self.node("MatMul", f"{name}_matmul", x, self.initializer(f"{name}_weight", layer.weight.T))
        return self.node("Add", name, product, self.initializer(f"{name}_bias", layer.bias))

    def layer_norm(self, name, x, layer):
        centred = self.node("Sub", f"{name}_centred", x, self.node("ReduceMean", f"{name}_mean", x, axes=[-1]))
        square = self.node("Pow", f"{name}_square", centred, "two")
        variance = self.node("ReduceMean", f"{name}_variance", square, axes=[-1])
        deviation = self.node("Sqrt", f"{name}_deviation", self.node("Add", f"{name}_stable", variance, "epsilon"))
        unit = self.node("Div", f"{name}_unit", centred, deviation)
        scaled = self.node("Mul", f"{name}_scaled", unit, self.initializer(f"{name}_scale", layer.weight))
        return self.node("Add", name, scaled, self.initializer(f"{name}_bias", layer.bias))

    def gelu(self, name, x):
        erf = self.node("Erf", f"{name}_erf", self.node("Div", f"{name}_div", x, "sqrt_two"))
        doubled = self.node("Mul", f"{name}_doubled", x, self.node("Add", f"{name}_add", erf, "one"))
        return self.node("Mul", name, doubled, "half")

    def conv_norm(self, name, x, layers):
        conv, norm = layers
        weight = self.initializer(f"{name}_weight", conv.weight)
        x = self.node("Conv", f"{name}_conv", x, weight, kernel_shape=[3, 3], strides=conv.stride, pads=[1, 1, 1, 1])
        parts = {"scale": norm.weight, "bias": norm.bias, "mean": norm.running_mean, "variance": norm.running_var}
        parameters = [self.initializer(f"{name}_{part}", values) for part, values in parts.items()]
        return self.node("BatchNormalization", name, x, *parameters, epsilon=norm.eps)


def build_mlp(graph, model):
    for name, value in (("half", 0.5), ("one", 1), ("two", 2), ("sqrt_two", 2**0.5), ("epsilon", model.norm.eps)):
        graph.initializer(name, value)
    x = graph.linear("embed", graph.node("Flatten", "pixels", "image", axis=1), model.embed)
    for number, (norm, expand, contract) in enumerate(model.blocks, 1):
        block = f"block{number}"
        inner = graph.linear(f"{block}_expand", graph.layer_norm(f"{block}_norm", x, norm), expand)
        inner = graph.linear(f"{block}_contract", graph.gelu(f"{block}_gelu", inner), contract)
        x = graph.node("Add", block, x, inner)
    graph.linear("logits", graph.layer_norm("norm", x, model.norm), model.head)


def build_cnn(graph, model):
    x = "image"
    for stage, (entry, blocks) in enumerate(model.stages, 1):
        x = graph.node("Relu", f"stage{stage}_entry", graph.conv_norm(f"stage{stage}_entry_norm", x, entry))
        for number, (first, second) in enumerate(blocks, 1):
            block = f"stage{stage}_block{number}"
            inner = graph.node("Relu", f"{block}_relu", graph.conv_norm(f"{block}_first", x, first))
            x = graph.node("Add", f"{block}_add", x, graph.conv_norm(f"{block}_second", inner, second))
            x = graph.node("Relu", block, x)
    pooled = graph.node("GlobalAveragePool", "pool", x)
    graph.linear("logits", graph.node("Flatten", "features", pooled, axis=1), model.head)


def train(model, images, labels, epochs=40, batch_size=64):
    """A fixed recipe: the test images play no part in it, not even to choose when to stop."""
    steps = epochs * -(-len(images) // batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(batch_size):
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def write(path, description, build, model):
    graph = Graph()
    build(graph, model)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8], "Pixels from 0 to 1.")
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10], "One score for each digit.")
    body = helper.make_graph(graph.nodes, path.stem, [image], [logits], graph.initializers, doc_string=description)
    about = {"producer_name": "perfrun quickstart", "doc_string": f"{description} Made by {Path(__file__).name}."}
    document = helper.make_model(body, **about, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
    checker.check_model(document, full_check=True)
    path.write_bytes(document.SerializeToString(deterministic=True))


def check(path, model, images, labels, tolerance=1e-4):
    """Compare the written file with the model that it was written from, and print how good it is."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {"image": images.numpy()})[0]
    difference = np.abs(logits - model(images).detach().numpy()).max()
    if difference > tolerance:
        raise SystemExit(f"{path.name}: logits differ from PyTorch's by {difference:.1e}")
    accuracy = (logits.argmax(1) == labels.numpy()).mean()
    print(f"{path.name}: {path.stat().st_size} bytes, test accuracy {accuracy:.2%}, off PyTorch by {difference:.1e}")


def main():
    torch.set_num_threads(1)  # Sums are then always taken in the same order.
    torch.use_deterministic_algorithms(True)
    digits = load_digits()
    images, labels = (digits.images / 16).astype(np.float32).reshape(-1, 1, 8, 8), digits.target.astype(np.int64)
    split = train_test_split(images, labels, test_size=0.3, stratify=labels, random_state=SEED)
    train_images, test_images, train_labels, test_labels = map(torch.from_numpy, split)
    print(f"{len(train_labels)} training images, {len(test_labels)} test images")
    np.savez_compressed(HERE / "data/digits-test.npz", image=test_images.numpy(), labels=test_labels.numpy())
    for kind, architecture, build in (("MLP", ResidualMlp, build_mlp), ("CNN", ResidualCnn, build_cnn)):
        torch.manual_seed(SEED)
        model = train(architecture(), train_images, train_labels)
        path = HERE / f"models/digits-{kind.lower()}.onnx"
        write(path, f"Residual {kind} that reads 8x8 handwritten digits.", build, model)
        check(path, model, test_images, test_labels)


if __name__ == "__main__":
    main()
