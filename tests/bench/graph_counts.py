"""What a compile has left unfused, counted in the text form of its last stage by a reader of its own."""
import collections
import re

VALUE = re.compile(r'%(?:"(?:[^"\\]|\\.)*"|[\w.#]+)')
ACTIVATIONS = {"Relu", "Clip", "HardSwish", "Sigmoid", "LeakyRelu", "HardSigmoid"}
CONVOLUTIONS = {"Conv", "regie.FusedConv"}


def read(text):
    """[(operator, operands, results)] of the main graph and of all regions, and who reads each value how often."""
    nodes, readers = [], collections.Counter()
    for line in text.splitlines():
        head = line.lstrip()
        if head.startswith("graph "):
            results = head.split("->", 1)[1] if "->" in head else ""
            readers.update(VALUE.findall(results.split("{")[0].split(" on ")[0]))
            continue
        at = head.find(" = ")
        call = re.match(r"([A-Za-z_][\w.]*)\((.*)", head[at + 3 :]) if at > 0 else None
        if not call:
            continue
        operands = VALUE.findall(call.group(2).split(")")[0])
        # Types and assignments of results hold values too (@alias): only what stands before a colon is a result.
        results = re.findall(r'(%(?:"(?:[^"\\]|\\.)*"|[\w.#]+)|_)(?=:|,|$)', head[:at])
        nodes.append((call.group(1), operands, [r for r in results if r != "_"]))
        readers.update(operands)
    return nodes, readers


def counts(text):
    nodes, readers = read(text)
    producer = {r: n for n in nodes for r in n[2]}

    def made_by(value, operators):
        n = producer.get(value)
        return n is not None and n[0] in operators

    found = {"conv_bn_activation": 0, "layer_normalization": 0, "gelu": 0}
    for op, operands, _ in nodes:
        alone = bool(operands) and readers[operands[0]] == 1
        if op == "BatchNormalization" and made_by(operands[0], CONVOLUTIONS) and alone:
            found["conv_bn_activation"] += 1
        if op in ACTIVATIONS and operands and made_by(operands[0], CONVOLUTIONS) and alone:
            found["conv_bn_activation"] += 1
        # (x - mean) / sqrt(variance + epsilon): the root of a mean and a constant.
        if op == "Sqrt" and made_by(operands[0], {"Add"}):
            if any(made_by(o, {"ReduceMean"}) for o in producer[operands[0]][1]):
                found["layer_normalization"] += 1
        if op == "Erf":
            found["gelu"] += 1
        if op == "Tanh" and made_by(operands[0], {"Mul"}):
            inner = [producer.get(o) for o in producer[operands[0]][1]]
            if any(n and n[0] == "Add" and any(made_by(o, {"Mul", "Pow"}) for o in n[1]) for n in inner):
                found["gelu"] += 1
    return found
