"""Cases of configs/ops/signal.toml."""
import numpy as np

I64 = np.int64


def signals(writer, v):
    for _ in range(20):
        length = v.integer(2, 9)
        x = v.tensor("f32", (2, length, v.choose([1, 2])))
        inverse = v.flag() if x.shape[-1] == 2 else 0
        writer.add("DFT", [x, None, np.array(1, I64)], inverse=inverse, onesided=0 if inverse or x.shape[-1] == 2 else v.flag(), tolerance=1e-4, reference=False)
        frame, step = v.choose([4, 8]), v.integer(1, 4)
        writer.add("STFT", [v.tensor("f32", (1, 24, 1)), np.array(step, I64), v.tensor("f32", (frame,), 0, 1)], onesided=v.flag(), tolerance=1e-4, reference=False)
        for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
            writer.add(op, [np.array(v.integer(3, 12), I64)], periodic=v.flag(), tolerance=1e-4, reference=False)
    for bins, length, rate in ((4, 64, 8000), (10, 256, 16000)):
        writer.add("MelWeightMatrix", [np.array(bins, I64), np.array(length, I64), np.array(rate, I64), np.array(20, np.float32), np.array(rate / 2, np.float32)], reference=False, tolerance=1e-4)


FAMILIES = [signals]
