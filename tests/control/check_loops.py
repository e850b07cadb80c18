"""Loops and scans of many kinds against ONNX Runtime: nested, captured, of no iteration, with shapes that vary.

check_loops.py REGIE FOLDER [NAME...]: each case optimised and not, from a model file, with two threads and with a second
device, at each of its inputs. Exits 1 with every case that differs.
"""
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort

ort.set_default_logger_severity(4)
X = np.arange(3, dtype=np.float32)
S = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
YES = "yes = Constant<value = bool {1}>()"
WEIGHTS = "{" + ", ".join(str(((i * 37) % 17 - 8) / 40) for i in range(256)) + "}"


def i64(value):
    return np.array(value, np.int64)


def trips(*counts, **others):
    return [{"n": i64(n), **others} for n in counts]


# name -> (graph, list of inputs)
CASES = {
    "sum": (f"""g (float[3] x, int64 n) => (float[3] y) {{
        {YES}
        y = Loop(n, yes, x) <body = b (int64 i, bool ci, float[3] a) => (bool co, float[3] r) {{
            co = Identity(ci)
            r = Add(a, x)
        }}>
    }}""", trips(4, 0, -3, 1, x=X)),
    "no_operands_but_a_condition": ("""g (float[3] x) => (float[3] y) {
        yes = Constant<value = bool {1}>()
        limit = Constant<value = float {100}>()
        y = Loop("", yes, x) <body = b (int64 i, bool ci, float[3] a) => (bool co, float[3] r) {
            r = Add(a, x)
            m = ReduceMax<keepdims=0>(r)
            co = Less(m, limit)
        }>
    }""", [{"x": X}, {"x": X * 60}]),
    "condition_false_at_start": ("""g (float[3] x, bool c) => (float[3] y, int64[k] all) {
        n = Constant<value = int64 {5}>()
        y, all = Loop(n, c, x) <body = b (int64 i, bool ci, float[3] a) => (bool co, float[3] r, int64 num) {
            co = Identity(ci)
            r = Add(a, x)
            num = Identity(i)
        }>
    }""", [{"x": X, "c": np.array(False)}, {"x": X, "c": np.array(True)}]),
    "body_ignores_condition": ("""g (float[3] x, int64 n) => (float[3] y) {
        y = Loop(n, "", x) <body = b (int64 i, bool ci, float[3] a) => (bool co, float[3] r) {
            co = Constant<value = bool {1}>()
            r = Mul(a, x)
        }>
    }""", trips(3, 0, x=X)),
    "fibonacci": (f"""g (float[3] x, float[3] z, int64 n) => (float[3] y, float[3] w) {{
        {YES}
        y, w = Loop(n, yes, x, z) <body = b (int64 i, bool ci, float[3] a, float[3] d) => (bool co, float[3] d2, float[3] r) {{
            co = Identity(ci)
            d2 = Identity(d)
            r = Add(a, d)
        }}>
    }}""", trips(10, 1, 0, x=X, z=X + 1)),
    "swap": (f"""g (float[3] x, float[3] z, int64 n) => (float[3] y, float[3] w) {{
        {YES}
        y, w = Loop(n, yes, x, z) <body = b (int64 i, bool ci, float[3] a, float[3] d) => (bool ci, float[3] d, float[3] a) {{
        }}>
    }}""", trips(5, 4, 0, x=X, z=X + 1)),
    "rotate_three": (f"""g (float[3] x, float[3] z, float[3] v, int64 n) => (float[3] y, float[3] w, float[3] u) {{
        {YES}
        y, w, u = Loop(n, yes, x, z, v) <body = b (int64 i, bool ci, float[3] a, float[3] d, float[3] e)
                                         => (bool ci, float[3] d, float[3] f, float[3] a) {{
            f = Add(e, d)
        }}>
    }}""", trips(5, 2, x=X, z=X + 1, v=X * 3)),
    "cumulative_sums": ("""g (float[3] x) => (float[3] y, float[5,3] all, int64[5] numbers) {
        yes = Constant<value = bool {1}>()
        n = Constant<value = int64 {5}>()
        y, all, numbers = Loop(n, yes, x) <body = b (int64 i, bool ci, float[3] a)
                                           => (bool co, float[3] r, float[3] q, int64 num) {
            co = Identity(ci)
            r = Add(a, x)
            q = Mul(r, x)
            num = Identity(i)
        }>
    }""", [{"x": X}]),
    "length_known_when_it_runs": (f"""g (float[3] x, int64 n, float limit) => (float[3] y, float[k,3] all, int64[k] numbers) {{
        {YES}
        y, all, numbers = Loop(n, yes, x) <body = b (int64 i, bool ci, float[3] a)
                                           => (bool co, float[3] r, float[3] q, int64 num) {{
            r = Add(a, x)
            m = ReduceMax<keepdims=0>(r)
            co = Less(m, limit)
            q = Mul(r, x)
            num = Identity(i)
        }}>
    }}""", trips(5, 0, 1, 50, x=X, limit=np.array(7, np.float32))),
    "capture_used_only_inside": (f"""g (float[3] x, float[3] w, int64 n) => (float[3] y) {{
        {YES}
        inside = Exp(w)
        unread = Neg(x)
        y = Loop(n, yes, x) <body = b (int64 i, bool ci, float[3] a) => (bool co, float[3] r) {{
            co = Identity(ci)
            t = Mul(a, inside)
            u = Tanh(t)
            r = Add(u, inside)
        }}>
    }}""", trips(4, 0, x=X, w=X / 4)),
    "nested_with_if": (f"""g (float[3] x, int64 n, int64 m) => (float[3] y) {{
        {YES}
        y = Loop(n, yes, x) <body = b (int64 i, bool ci, float[3] a) => (bool co, float[3] r2) {{
            co = Identity(ci)
            s = Mul(x, x)
            r = Loop(m, yes, a) <body = b2 (int64 j, bool cj, float[3] a2) => (bool co2, float[3] r1) {{
                co2 = Identity(cj)
                t = Add(a2, s)
                fi = Cast<to=1>(i)
                fj = Cast<to=1>(j)
                u = Add(t, fi)
                v = Sub(u, fj)
                odd = Greater(fi, fj)
                r1 = If(odd) <then_branch = tb () => (float[3] o) {{ o = Add(v, x) }},
                              else_branch = eb () => (float[3] o2) {{ o2 = Mul(v, x) }}>
            }}>
            r2 = Sub(r, x)
        }}>
    }}""", [{"x": X, "n": i64(4), "m": i64(3)}, {"x": X, "n": i64(2), "m": i64(0)}, {"x": X, "n": i64(0), "m": i64(1)}]),
    "loop_in_if_in_loop": (f"""g (float[3] x, int64 n, bool p) => (float[3] y) {{
        {YES}
        two = Constant<value = int64 {{2}}>()
        y = Loop(n, yes, x) <body = b (int64 i, bool ci, float[3] a) => (bool co, float[3] r) {{
            co = Identity(ci)
            f = Mul(a, x)
            r = If(p) <then_branch = tb () => (float[3] o) {{
                o = Loop(two, yes, f) <body = b2 (int64 j, bool cj, float[3] a2) => (bool co2, float[3] r2) {{
                    co2 = Identity(cj)
                    r2 = Add(a2, x)
                }}>
            }}, else_branch = eb () => (float[3] o2) {{ o2 = Sub(f, x) }}>
        }}>
    }}""", [{"x": X, "n": i64(3), "p": np.array(p)} for p in (True, False)]),
    "grows": (f"""g (float[1,3] x, int64 n) => (float[k,3] y) {{
        {YES}
        y = Loop(n, yes, x) <body = b (int64 i, bool ci, float[p,3] a) => (bool co, float[q,3] r) {{
            co = Identity(ci)
            s = Mul(x, x)
            r = Concat<axis=0>(a, s)
        }}>
    }}""", trips(5, 0, 1, 40, x=X[None])),
    "swaps_and_grows": (f"""g (float[1,3] x, float[2,3] z, int64 n) => (float[k,3] y, float[j,3] w) {{
        {YES}
        y, w = Loop(n, yes, x, z) <body = b (int64 i, bool ci, float[p,3] a, float[q,3] d)
                                   => (bool ci, float[q,3] d, float[r,3] e) {{
            e = Concat<axis=0>(a, x)
        }}>
    }}""", trips(5, 0, 2, x=X[None], z=np.ones((2, 3), np.float32))),
    "grows_inside_of_growing": (f"""g (float[1,3] x, int64 n, int64 m) => (float[k,3] y, float[j,3] sums) {{
        {YES}
        ax = Constant<value = int64[1] {{0}}>()
        y, sums = Loop(n, yes, x) <body = b (int64 i, bool ci, float[p,3] a) => (bool co, float[q,3] r2, float[3] su) {{
            co = Identity(ci)
            r2, parts = Loop(m, yes, a) <body = b2 (int64 j, bool cj, float[p2,3] a2)
                                         => (bool co2, float[q2,3] r1, float[3] w) {{
                co2 = Identity(cj)
                r1 = Concat<axis=0>(a2, x)
                w = ReduceSum<keepdims=0>(r1, ax)
            }}>
            su = ReduceSum<keepdims=0>(parts, ax)
        }}>
    }}""", [{"x": X[None], "n": i64(n), "m": i64(m)} for n, m in ((3, 2), (0, 2), (2, 0), (1, 5))]),
    # What an exporter makes of a cache that is empty at first: shapes of the first iteration must decide nothing.
    "decoder_with_cache": ("""g (float[1,0,3] past, float[1,3] token, int64 n) => (float[1,k,3] y, float[1,3] t) {
        yes = Constant<value = bool {1}>()
        one = Constant<value = int64[1] {1}>()
        zero = Constant<value = int64 {0}>()
        y, t = Loop(n, yes, past, token) <body = b (int64 i, bool ci, float[1,p,3] a, float[1,3] d)
                                          => (bool co, float[1,q,3] r, float[1,3] nt) {
            co = Identity(ci)
            dd = Unsqueeze(d, one)
            r = Concat<axis=1>(a, dd)
            shape = Shape(a)
            length = Gather(shape, one)
            empty = Equal(length, zero)
            nt = If(empty) <then_branch = tb () => (float[1,3] o) { o = Add(d, d) },
                            else_branch = eb () => (float[1,3] o2) { o2 = ReduceMean<axes=[1],keepdims=0>(r) }>
        }>
    }""", trips(4, 1, 0, past=np.zeros((1, 0, 3), np.float32), token=X[None])),
    "beams": (f"""g (float[2,5] logits, int64 n) => (int64[k,2] best, float[2] scores) {{
        {YES}
        start = Constant<value = float[2] {{0, 0}}>()
        two = Constant<value = int64[1] {{2}}>()
        five = Constant<value = int64 {{5}}>()
        flat = Constant<value = int64[1] {{-1}}>()
        ax = Constant<value = int64[1] {{1}}>()
        scores, best = Loop(n, yes, start) <body = b (int64 i, bool ci, float[2] s) => (bool co, float[2] top, int64[2] beam) {{
            co = Identity(ci)
            column = Unsqueeze(s, ax)
            lp = LogSoftmax<axis=1>(logits)
            sum = Add(lp, column)
            all = Reshape(sum, flat)
            top, index = TopK<axis=0>(all, two)
            beam = Div(index, five)
        }}>
    }}""", trips(3, 0, logits=np.array([[.1, .9, .3, .2, .5], [.7, .2, .8, .4, .6]], np.float32))),
    "weights_inside": (f"""g (float[2,16] x, int64 n) => (float[2,16] y) <float[16,16] w = {WEIGHTS}>
    {{
        {YES}
        y = Loop(n, yes, x) <body = b (int64 i, bool ci, float[2,16] a) => (bool co, float[2,16] r) {{
            co = Identity(ci)
            m = MatMul(a, w)
            t = Tanh(m)
            r = Add(t, x)
        }}>
    }}""", trips(6, 0, x=np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16))),
    "convolutions_in_and_out": ("""g (float[1,16,8,8] x, float[16,16,3,3] w, int64 n) => (float[1,16,8,8] y, float[1,16,8,8] z) {
        yes = Constant<value = bool {1}>()
        k = Mul(x, x)
        kernel = Tanh(w)
        before = Conv<pads=[1,1,1,1]>(x, kernel)
        y = Loop(n, yes, before) <body = b (int64 i, bool ci, float[1,16,8,8] a) => (bool co, float[1,16,8,8] r) {
            co = Identity(ci)
            c = Conv<pads=[1,1,1,1]>(a, kernel)
            d = Relu(c)
            e = Conv<pads=[1,1,1,1]>(d, kernel)
            f = Add(e, before)
            r = Tanh(f)
        }>
        z = Conv<pads=[1,1,1,1]>(y, kernel)
    }""", trips(3, 0, x=np.linspace(-1, 1, 1024, dtype=np.float32).reshape(1, 16, 8, 8),
                w=np.cos(np.arange(2304, dtype=np.float32)).reshape(16, 16, 3, 3) / 12)),
    "scan": ("""g (float[4] h, float[3,4] s) => (float[4] f, float[3,4] all) {
        f, all = Scan<num_scan_inputs=1, body = b (float[4] a, float[4] e) => (float[4] r, float[4] q) {
            r = Add(a, e)
            q = Identity(r)
        }>(h, s)
    }""", [{"h": S[0, 0], "s": S[0]}]),
    # Each of two batches on its own.
    "scan_of_operator_set_8": ("""g (float[2,4] h, float[2,3,4] s, float[2,3,4] v) => (float[2,4] f, float[2,3,4] all) {
        f, all = Scan<num_scan_inputs=2, directions=[1,0], body = b (float[4] a, float[4] e, float[4] d) => (float[4] r, float[4] q) {
            p = Mul(e, d)
            r = Add(a, p)
            q = Identity(r)
        }>("", h, s, v)
    }""", [{"h": S[:, 0], "s": S, "v": S + 1}]),
    "scan_of_axes_and_directions": ("""g (float[2,4] h, float[2,3,4] s) => (float[2,4] f, float[2,4,3] all, float[3,2,4] back) {
        f, all, back = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[-1,0],
                            scan_output_directions=[1,1],
                            body = b (float[2,4] a, float[2,4] e) => (float[2,4] r, float[2,4] q, float[2,4] q2) {
            r = Add(a, e)
            q = Identity(r)
            q2 = Mul(r, e)
        }>(h, s)
    }""", [{"h": S[:, 0], "s": S}]),
    "scan_of_any_length": ("""g (float[4] h, float[T,4] s, float[T] w) => (float[4] f, float[T,4] all) {
        f, all = Scan<num_scan_inputs=2, scan_input_directions=[1,0],
                      body = b (float[4] a, float[4] e, float v) => (float[4] r, float[4] q) {
            p = Mul(e, v)
            r = Add(a, p)
            q = Identity(r)
        }>(h, s, w)
    }""", [{"h": S[0, 0], "s": s, "w": np.arange(len(s), dtype=np.float32)} for s in (S[0], S.reshape(6, 4), S[0, :0])]),
}
# Where ONNX Runtime refuses: no slices at all leave the state as it is.
EXPECTED = {("scan_of_any_length", 2): [S[0, 0], np.zeros((0, 4), np.float32)]}
VARIANTS = {"optimised": [], "not optimised": ["--no-optimise"], "two threads": ["--threads", "2"],
            "two devices": ["--target", "host_and_null"]}


def ran(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\nexit code {done.returncode}\n{done.stderr}")


def check(regie, folder, name, cases, expected):
    """What is wrong, as lines."""
    text, inputs = cases[name]
    opset = 8 if name.endswith("_set_8") else 17
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    onnx.checker.check_model(model)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wrong = []
    for variant, arguments in VARIANTS.items():
        file = folder / f"{variant.replace(' ', '_')}.rgm"
        try:
            ran([regie, "compile", path, "-o", file, *arguments])
            if variant == "optimised":
                ran([regie, "inspect", file])
            for k, values in enumerate(inputs):
                given = []
                wanted = expected.get((name, k)) or session.run(None, values)
                for key, array in values.items():
                    np.save(folder / f"{key}.npy", array)
                    given += ["--input", f"{key}={folder / (key + '.npy')}"]
                online = [regie, "run", path, "--output-dir", folder / "out", *arguments, *given]
                offline = [regie, "run", file, "--output-dir", folder / "out", *given]
                for form, command in (("online", online), ("from the model file", offline)):
                    ran(command)
                    for output, want in zip(model.graph.output, wanted):
                        got = np.load(folder / "out" / f"{output.name}.npy")
                        if got.shape != want.shape or got.dtype != want.dtype or not np.allclose(
                                got, want, rtol=1e-5, atol=1e-6, equal_nan=True):
                            wrong.append(f"{name}, {variant}, {form}, inputs {k}: {output.name} is {got.dtype}{got.shape} "
                                         f"{got.ravel()[:8]}, not {want.dtype}{want.shape} {want.ravel()[:8]}")
        except RuntimeError as error:
            wrong.append(f"{name}, {variant}: {error}")
    return wrong


def check_all(cases, expected, regie, folder, *names):
    """The exit code."""
    wrong = []
    for name in names or cases:
        wrong += check(regie, pathlib.Path(folder) / name, name, cases, expected)
    print("\n".join(wrong))
    print(f"{len(names or cases)} cases, {len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(check_all(CASES, EXPECTED, *sys.argv[1:]))
