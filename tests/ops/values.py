"""Random shapes, tensors and choices."""
import numpy as np

from cases import NARROW, numpy_type

SIZES = [1, 1, 2, 3, 4, 5, 7]
FLOATS = ["f32", "f32", "f32", "f64", "f16", "bf16"]


class Values:
    def __init__(self, rng):
        self.rng = rng

    def integer(self, low, high):
        """low..high, both included"""
        return int(self.rng.integers(low, high + 1))

    def choose(self, options):
        return options[self.integer(0, len(options) - 1)]

    def flag(self):
        return self.integer(0, 1)

    def shape(self, low=0, high=4, zeros=True):
        """A shape of rank low..high; now and then with a dimension of 0."""
        dims = [self.choose(SIZES) for _ in range(self.integer(low, high))]
        if zeros and dims and self.integer(0, 9) == 0:
            dims[self.integer(0, len(dims) - 1)] = 0
        return tuple(dims)

    def tensor(self, elem, shape, low=-4.0, high=4.0):
        """Random elements of type `elem` (a name) within low..high, or of the type's own range."""
        dtype = numpy_type(elem)
        if dtype == np.bool_:
            return self.rng.integers(0, 2, shape).astype(np.bool_)
        if np.issubdtype(dtype, np.integer):
            lowest = 0 if np.issubdtype(dtype, np.unsignedinteger) else int(np.floor(low))
            return self.rng.integers(max(lowest, int(np.floor(low))), int(np.ceil(high)) + 1, shape).astype(dtype)
        return self.rng.uniform(low, high, shape).astype(dtype)

    def distinct(self, elem, shape):
        """Elements that differ from each other as far as the type allows, so that places can be told apart."""
        count = int(np.prod(shape, dtype=np.int64))
        order = self.rng.permutation(count) % 251
        dtype = numpy_type(elem)
        if dtype == np.bool_:
            return (order % 2).astype(np.bool_).reshape(shape)
        if dtype in (np.dtype(np.int8),) + NARROW:
            order = order - 125
        return order.astype(dtype).reshape(shape)

    def broadcastable(self, shape):
        """A shape that broadcasts to `shape`."""
        dims = [1 if self.integer(0, 3) == 0 else d for d in shape]
        return tuple(dims[self.integer(0, len(dims)) if self.flag() else 0:])
