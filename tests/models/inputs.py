"""Random inputs of a network, for those that compare or measure it."""
import numpy as np
import onnx

# Inputs that must mean something: the vocabulary and the two segments of an encoder, the mask of its words.
INTEGERS = {"input_ids": 30522, "token_type_ids": 2, "attention_mask": 2}


def ports_of(model):
    """The inputs that are not weights."""
    weights = {w.name for w in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in weights]


def random_inputs(model, seed, shape_of):
    """Arrays by name. `shape_of(name, dims)`: the shape of an input, given that of the file; what is symbolic there is 0."""
    random = np.random.default_rng(seed)
    arrays = {}
    for value in ports_of(model):
        kind = value.type.tensor_type
        written = [d.dim_value for d in kind.shape.dim]
        dims = shape_of(value.name, written)
        if dims == written and not all(d > 0 for d in dims):
            raise RuntimeError(f"input {value.name} has the shape {dims}: fix it with --shape")
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if dtype == np.bool_:
            arrays[value.name] = random.integers(0, 2, dims).astype(bool)
        elif np.issubdtype(dtype, np.integer):
            arrays[value.name] = random.integers(0, INTEGERS.get(value.name, 10), dims).astype(dtype)
        else:
            arrays[value.name] = random.standard_normal(dims).astype(dtype)
    return arrays


def input_options(arrays, folder):
    """Saves them into `folder`; the options of `regie run` that name them."""
    options = []
    for number, (name, array) in enumerate(arrays.items()):
        path = folder / f"input_{number}.npy"
        np.save(path, array)
        options += ["--input", f"{name}={path}"]
    return options
