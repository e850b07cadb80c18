"""Each layer of a quantised network beside exact arithmetic: check_quantised_layers.py REGIE NETWORKS FOLDER NAME... [--target T]

Quantises NETWORKS into FOLDER as check_quantised.py does. Every QuantizeLinear is made an output, and what it must give is computed
from what the network itself gave the layer: products and sums in double precision, in which those of bytes are exact, rounded to the
even number at a half. A network of 50 layers turns one element in a hundred thousand that lies beside a half into other last layers,
so that two right engines differ there; a layer on its own does not. At most `--most` of a layer's elements may differ, by one.
"""
import argparse
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

import quantise_models
from check_models import file_names, run, with_outputs
from inputs import input_options, random_inputs


def windows(x, kernel, strides, pads, fill):
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(2, 3))[:, :, ::strides[0], ::strides[1]]


def conv(x, w, b, group=1, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), kernel_shape=None, auto_pad=b"NOTSET"):
    assert tuple(dilations) == (1, 1) and auto_pad == b"NOTSET"
    parts = []
    for xs, ws in zip(np.split(x, group, axis=1), np.split(w, group)):
        cut = windows(xs, ws.shape[2:], strides, pads, 0).transpose(0, 2, 3, 1, 4, 5)
        sums = cut.reshape(int(np.prod(cut.shape[:3])), -1) @ ws.reshape(len(ws), -1).T
        parts.append(sums.reshape(*cut.shape[:3], len(ws)).transpose(0, 3, 1, 2))
    return np.concatenate(parts, axis=1) + (0 if b is None else b.reshape(1, -1, 1, 1))


def per_axis(v, like, axis):
    return v.reshape(()) if v.size == 1 else v.reshape([-1 if i == axis % like.ndim else 1 for i in range(like.ndim)])


def node_value(node, args, a):
    """The node in double precision; QuantizeLinear and DequantizeLinear apart."""
    x = args[0]
    match node.op_type:
        case "Conv":
            return conv(x, args[1], args[2] if len(args) > 2 else None, **a)
        case "Relu":
            return np.maximum(x, 0)
        case "Add":
            return x + args[1]
        case "MaxPool":
            return windows(x, a["kernel_shape"], a.get("strides", (1, 1)), a.get("pads", (0,) * 4), -np.inf).max(axis=(4, 5))
        case "GlobalAveragePool":
            return x.mean(axis=(2, 3), keepdims=True)
        case "Flatten":
            return x.reshape(len(x), -1)
        case "Concat":
            return np.concatenate(args, axis=a["axis"])
        case "Gemm":
            assert a.get("alpha", 1) == a.get("beta", 1) == 1
            return (x.T if a.get("transA") else x) @ (args[1].T if a.get("transB") else args[1]) + args[2]
    raise RuntimeError(f"no exact {node.op_type}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("networks", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--most", type=float, default=5e-5)
    parser.add_argument("--target")
    options = parser.parse_args()
    quantise_models.main(options.networks, options.folder, options.names)
    failed = 0
    for name in options.names:
        model, work = onnx.load(options.folder / f"{name}.onnx"), options.folder / f"{name}.layers"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        values = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
        # The scale and the zero point of what is quantised are known, so that it is a layer of the network and no weight.
        layers = [n.output[0] for n in model.graph.node if n.op_type == "QuantizeLinear" and n.input[0] not in values]
        onnx.save(with_outputs(model, layers), work / "layers.onnx")
        inputs = random_inputs(model, 7, lambda _, dims: dims)
        run([options.regie, "run", work / "layers.onnx", *input_options(inputs, work), "--output-dir", work / "out",
             *(["--target", options.target] if options.target else [])])
        given = {layer: np.load(work / "out" / file) for layer, file in file_names(layers).items()}
        values.update({n: v.astype(np.float64) for n, v in inputs.items()})
        total = wrong = 0
        worst = 0.0
        for node in model.graph.node:
            a = {t.name: helper.get_attribute_value(t) for t in node.attribute}
            args = [values[n] for n in node.input if n]
            out = node.output[0]
            if node.op_type == "QuantizeLinear":
                zero, axis = args[2].astype(np.float64), a.get("axis", 1)
                kind = np.iinfo(args[2].dtype)
                exact = args[0] / per_axis(args[1].astype(np.float64), args[0], axis)
                exact = np.clip(np.rint(exact) + per_axis(zero, exact, axis), kind.min, kind.max).astype(args[2].dtype)
                values[out] = given.get(out, exact)
                if out in given:
                    apart = np.abs(given[out].astype(int) - exact)
                    share = float((apart > 0).mean())
                    total, wrong, worst = total + apart.size, wrong + int((apart > 0).sum()), max(worst, share)
                    if apart.max() > 1 or share > options.most:
                        print(f"{name}: {out}: {share:.2e} of the elements differ from exact arithmetic, by up to {apart.max()}")
                        failed += 1
            elif node.op_type == "DequantizeLinear":
                axis = a.get("axis", 1)
                zero = args[2].astype(np.float64) if len(args) > 2 else np.zeros(1)
                x = args[0].astype(np.float64)
                values[out] = (x - per_axis(zero, x, axis)) * per_axis(args[1].astype(np.float64), x, axis)
            else:
                values[out] = node_value(node, [v.astype(np.float64) for v in args], a)
        print(f"{name}: {len(given)} layers, {wrong} of {total} elements differ, {worst:.1e} of one layer at most")
        failed += not given
        shutil.rmtree(work)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
