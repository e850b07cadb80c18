"""Cases of operators that sample pictures between their pixels."""
import numpy as np

I64 = np.int64


def sampling(writer, v):
    for _ in range(30):
        grid = v.rng.uniform(-1.5, 1.5, (2, v.integer(1, 4), v.integer(1, 4), 2)).astype(np.float32)
        writer.add("GridSample", [v.tensor("f32", (2, 2, v.integer(2, 5), v.integer(2, 5))), grid], mode=v.choose(["linear", "nearest", "cubic"]),
                   padding_mode=v.choose(["zeros", "border", "reflection"]), align_corners=v.flag(), reference=False, tolerance=1e-3)
        corner = v.rng.uniform(0, 3, (3, 2))
        rois = np.concatenate([corner, corner + v.rng.uniform(0.5, 4, (3, 2))], axis=1).astype(np.float32)
        writer.add("RoiAlign", [v.tensor("f32", (2, 2, 6, 7)), rois, v.rng.integers(0, 2, 3).astype(I64)], output_height=v.integer(1, 3), output_width=v.integer(1, 3),
                   sampling_ratio=v.integer(0, 2), mode=v.choose(["avg", "max"]), coordinate_transformation_mode=v.choose(["half_pixel", "output_half_pixel"]),
                   spatial_scale=v.choose([1.0, 0.5]), reference=False, tolerance=1e-4)
        boxes = np.concatenate([v.rng.integers(0, 2, (3, 1)), np.floor(corner), np.floor(corner) + v.rng.integers(0, 5, (3, 2))], axis=1).astype(np.float32)
        writer.add("MaxRoiPool", [v.tensor("f32", (2, 2, 8, 8)), boxes], pooled_shape=[v.integer(1, 3), v.integer(1, 3)], reference=False)
        writer.add("AffineGrid", [v.tensor("f32", (2, 2, 3)), np.array([2, 1, v.integer(2, 4), v.integer(2, 4)], I64)], align_corners=v.flag(), tolerance=1e-4)


FAMILIES = [sampling]
