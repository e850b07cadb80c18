"""Sequences that loops and branches change, against ONNX Runtime: grown at the end, at the front, in between, on a condition, by as many
elements as the run tells, by nested loops, with elements of a shape that the run tells; read and shrunk while they grow.

check_sequences.py REGIE FOLDER [NAME...]: as check_loops.py.
"""
import pathlib
import subprocess
import sys

import numpy as np
import onnx.parser

from check_loops import S, X, YES, check_all, i64, trips


def loop(body, n="n", first="empty", type="float[3]", result="s", others="", more=""):
    """A Loop that carries the sequence `q`, whose body makes `r` of it."""
    return f"""{result} = Loop({n}, yes, {first}{others}) <body = b (int64 i, bool ci, seq({type}) q{more}) => (bool co, seq({type}) r{more.replace(" v", " v2")}) {{
            co = Identity(ci)
            {body}
        }}>"""


APPEND = """f = Cast<to=1>(i)
            e = Add(x, f)
            r = SequenceInsert(q, e)"""
FRONT = """f = Cast<to=1>(i)
            e = Add(x, f)
            zero = Constant<value = int64 {0}>()
            r = SequenceInsert(q, e, zero)"""
EMPTY = "empty = SequenceEmpty<dtype=1>()"


def graph(lines, inputs="float[3] x, int64 n", outputs="float[K,3] y"):
    return f"g ({inputs}) => ({outputs}) {{\n        {YES}\n        {EMPTY}\n        " + "\n        ".join(lines) + "\n    }"


def joined(axis, new_axis):
    return f"y = ConcatFromSequence<axis={axis}, new_axis={new_axis}>(s)"


def captured(rows):
    """A Loop that reads a sequence of the graph around it."""
    return f"""g (float[{rows},4] x, float[4] h) => (float[4] y) {{
        {YES}
        rows = SplitToSequence<axis=0, keepdims=0>(x)
        n = SequenceLength(rows)
        y = Loop(n, yes, h) <body = b (int64 i, bool ci, float[4] a) => (bool co, float[4] r) {{
            co = Identity(ci)
            e = SequenceAt(rows, i)
            r = Sub(e, a)
        }}>
    }}"""


WIDE = "float[2,3,4]"
WIDE_APPEND = APPEND.replace("Add(x, f)", "Mul(x, f)")
LENGTH = "m = SequenceLength(s)"
COUNTS = trips(4, 1, 2, x=X)
# name -> (graph, list of inputs)
CASES = {
    "appended": (graph([loop(APPEND), joined(0, 1)]), COUNTS),
    "appended_end_to_end": (graph([loop(APPEND), joined(0, 0)], outputs="float[K] y"), COUNTS),
    "appended_known_times": (graph(["k = Constant<value = int64 {5}>()", loop(APPEND, "k"), joined(1, 1), LENGTH], "float[3] x",
                                   "float[3,5] y, int64 m"), [{"x": X}]),
    "at_the_front": (graph([loop(FRONT), joined(0, 1)]), COUNTS),
    "as_many_as_there_are": (graph([loop(APPEND), LENGTH], outputs="int64 m"), trips(3, 0, -2, x=X)),
    "until_a_condition": (graph(["""s = Loop("", yes, empty) <body = b (int64 i, bool ci, seq(float[3]) q) => (bool co, seq(float[3]) r) {
            f = Cast<to=1>(i)
            e = Add(x, f)
            r = SequenceInsert(q, e)
            m = ReduceMax<keepdims=0>(e)
            co = Less(m, limit)
        }>""", joined(0, 1)], "float[3] x, float limit"), [{"x": X, "limit": np.array(v, np.float32)} for v in (5, 0, 2.5)]),
    # e1, e2 behind and d1, d2 in front in each iteration.
    "both_ends_twice": (graph([loop(APPEND.replace("r = ", "q1 = ") + """
            d = Neg(e)
            zero = Constant<value = int64 {0}>()
            q2 = SequenceInsert(q1, d, zero)
            e2 = Mul(e, e)
            q3 = SequenceInsert(q2, e2)
            d2 = Exp(d)
            r = SequenceInsert(q3, d2, zero)"""), joined(0, 1)]), COUNTS),
    "after_others": (graph(["a = Neg(x)", "b0 = Mul(x, x)", "two = SequenceConstruct(a, b0)", loop(APPEND, first="two"),
                            joined(0, 1), LENGTH], outputs="float[K,3] y, int64 m"), trips(3, 0, 1, x=X)),
    "before_others": (graph(["a = Neg(x)", "b0 = Mul(x, x)", "two = SequenceConstruct(a, b0)", loop(FRONT, first="two"),
                             joined(-1, 1)], outputs="float[3,K] y"), trips(3, 0, 1, x=X)),
    "on_a_condition": (graph([loop("""two = Constant<value = int64 {2}>()
            half = Mod(i, two)
            odd = Cast<to=9>(half)
            r = If(odd) <then_branch = tb () => (seq(float[3]) a) {
                f = Cast<to=1>(i)
                e = Add(x, f)
                a = SequenceInsert(q, e)
            }, else_branch = eb () => (seq(float[3]) c) { c = Identity(q) }>"""), joined(0, 1), LENGTH],
                             outputs="float[K,3] y, int64 m"), trips(5, 2, 4, x=X)),
    "on_a_condition_in_the_other_branch": (graph([loop("""limit = Constant<value = int64 {2}>()
            low = Less(i, limit)
            r = If(low) <then_branch = tb () => (seq(float[3]) c) { c = Identity(q) },
                         else_branch = eb () => (seq(float[3]) a) {
                f = Cast<to=1>(i)
                e = Add(x, f)
                a = SequenceInsert(q, e)
            }>"""), LENGTH], outputs="int64 m"), trips(5, 2, 3, x=X)),
    "at_a_position_of_the_run": (graph([loop("""m0 = SequenceLength(q)
            two = Constant<value = int64 {2}>()
            at = Div(m0, two)
            f = Cast<to=1>(i)
            e = Add(x, f)
            r = SequenceInsert(q, e, at)"""), joined(0, 1)]), trips(6, 1, 3, x=X)),
    "from_the_end": (graph([loop("""m0 = SequenceLength(q)
            at = Neg(m0)
            f = Cast<to=1>(i)
            e = Add(x, f)
            r = SequenceInsert(q, e, at)"""), joined(0, 1)]), trips(6, 1, 3, x=X)),
    "reads_the_last": (graph(["one = SequenceConstruct(x)", loop("""last = Constant<value = int64 {-1}>()
            e = SequenceAt(q, last)
            e2 = Add(e, x)
            r = SequenceInsert(q, e2)""", first="one"), joined(0, 1)]), trips(6, 0, 3, x=X)),
    "a_window": (graph(["one = SequenceConstruct(x)", loop("""f = Cast<to=1>(i)
            e = Add(x, f)
            q1 = SequenceInsert(q, e)
            m0 = SequenceLength(q1)
            limit = Constant<value = int64 {3}>()
            full = Greater(m0, limit)
            r = If(full) <then_branch = tb () => (seq(float[3]) a) {
                zero = Constant<value = int64 {0}>()
                a = SequenceErase(q1, zero)
            }, else_branch = eb () => (seq(float[3]) c) { c = Identity(q1) }>""", first="one"), joined(0, 1)]),
                 trips(6, 0, 2, 3, x=X)),
    "the_last_is_taken_off": (graph(["a = Neg(x)", "all = SequenceConstruct(x, a, x, a)", loop("r = SequenceErase(q)", first="all"), LENGTH,
                                     joined(0, 1)], outputs="int64 m, float[K,3] y"), trips(0, 1, 3, x=X)),
    "begun_anew": (graph(["one = SequenceConstruct(x)", loop("""two = Constant<value = int64 {2}>()
            half = Mod(i, two)
            odd = Cast<to=9>(half)
            f = Cast<to=1>(i)
            e = Add(x, f)
            q0 = If(odd) <then_branch = tb () => (seq(float[3]) a) { a = SequenceEmpty<dtype=1>() },
                          else_branch = eb () => (seq(float[3]) c) { c = Identity(q) }>
            r = SequenceInsert(q0, e)""", first="one"), joined(0, 1)]), trips(0, 1, 2, 5, x=X)),
    "nested": (graph(["""s = Loop(n, yes, empty) <body = b (int64 i, bool ci, seq(float[3]) q) => (bool co, seq(float[3]) r) {
            co = Identity(ci)
            r = Loop(k, yes, q) <body = b2 (int64 j, bool cj, seq(float[3]) p) => (bool co2, seq(float[3]) r2) {
                co2 = Identity(cj)
                fi = Cast<to=1>(i)
                fj = Cast<to=1>(j)
                t = Mul(x, fi)
                e = Add(t, fj)
                r2 = SequenceInsert(p, e)
            }>
        }>""", joined(0, 1)], "float[3] x, int64 n, int64 k"), [{"x": X, "n": i64(n), "k": i64(k)} for n, k in ((3, 2), (1, 4), (2, 1))]),
    "nested_apart": (graph(["""s = Loop(n, yes, empty) <body = b (int64 i, bool ci, seq(float[K,3]) q) => (bool co, seq(float[K,3]) r) {
            co = Identity(ci)
            none = SequenceEmpty<dtype=1>()
            inner = Loop(k, yes, none) <body = b2 (int64 j, bool cj, seq(float[3]) p) => (bool co2, seq(float[3]) r2) {
                co2 = Identity(cj)
                fi = Cast<to=1>(i)
                fj = Cast<to=1>(j)
                t = Mul(x, fi)
                e = Add(t, fj)
                r2 = SequenceInsert(p, e)
            }>
            whole = ConcatFromSequence<axis=0, new_axis=1>(inner)
            r = SequenceInsert(q, whole)
        }>""", joined(1, 0)], "float[3] x, int64 n, int64 k"), [{"x": X, "n": i64(n), "k": i64(k)} for n, k in ((3, 2), (1, 4), (2, 1))]),
    "two_sequences": (graph(["""s, z, last = Loop(n, yes, empty, empty, x) <body = b (int64 i, bool ci, seq(float[3]) q, seq(float[3]) p, float[3] v)
                             => (bool co, seq(float[3]) r, seq(float[3]) o, float[3] v2, float[3] gathered) {
            co = Identity(ci)
            v2 = Add(v, x)
            gathered = Neg(v)
            r = SequenceInsert(q, v2)
            zero = Constant<value = int64 {0}>()
            o = SequenceInsert(p, v, zero)
        }>""".replace("s, z, last =", "s, z, last, all ="), joined(0, 1), "w = ConcatFromSequence<axis=1, new_axis=1>(z)"],
                            outputs="float[K,3] y, float[3,K] w, float[3] last, float[K,3] all"), COUNTS),
    "swapped": (graph(["one = SequenceConstruct(x)", "a = Neg(x)", "two = SequenceConstruct(a, x)",
                       """s, z = Loop(n, yes, one, two) <body = b (int64 i, bool ci, seq(float[3]) q, seq(float[3]) p)
                             => (bool co, seq(float[3]) r, seq(float[3]) o) {
            co = Identity(ci)
            f = Cast<to=1>(i)
            e = Add(x, f)
            r = SequenceInsert(p, e)
            o = Identity(q)
        }>""", joined(0, 1), "w = ConcatFromSequence<axis=1, new_axis=1>(z)"], outputs="float[K,3] y, float[3,J] w"), trips(0, 1, 4, x=X)),
    # As torch's unfold is exported: slices whose bounds the body computes.
    "slices": (f"""g (float[T,4] x) => (float[W,2,4] y) {{
        {YES}
        {EMPTY}
        shape = Shape(x)
        zero = Constant<value_ints = [0]>()
        one = Constant<value_ints = [1]>()
        size = Constant<value_ints = [2]>()
        t = Slice(shape, zero, one)
        last = Sub(t, one)
        n = Squeeze(last, zero)
        s = Loop(n, yes, empty) <body = b (int64 i, bool ci, seq(float[A,B]) q) => (bool co, seq(float[A,B]) r) {{
            co = Identity(ci)
            from = Unsqueeze(i, zero)
            to = Add(from, size)
            e = Slice(x, from, to, zero)
            r = SequenceInsert(q, e)
        }}>
        y = ConcatFromSequence<axis=0, new_axis=1>(s)
    }}""", [{"x": np.arange(4 * t, dtype=np.float32).reshape(t, 4)} for t in (2, 5, 9)]),
    "slices_by_position": (f"""g (float[T,4] x, int64[1] size) => (float[W,4] y, int64 m) {{
        {YES}
        {EMPTY}
        zero = Constant<value_ints = [0]>()
        n = Constant<value = int64 {{3}}>()
        s = Loop(n, yes, empty) <body = b (int64 i, bool ci, seq(float[A,B]) q) => (bool co, seq(float[A,B]) r) {{
            co = Identity(ci)
            from = Unsqueeze(i, zero)
            to = Add(from, size)
            e = Slice(x, from, to, zero)
            at = Constant<value = int64 {{-1}}>()
            m0 = SequenceLength(q)
            some = Cast<to=9>(m0)
            r = If(some) <then_branch = tb () => (seq(float[A,B]) a) {{ a = SequenceInsert(q, e, at) }},
                          else_branch = eb () => (seq(float[A,B]) c) {{ c = SequenceInsert(q, e) }}>
        }}>
        y = ConcatFromSequence<axis=0>(s)
        m = SequenceLength(s)
    }}""", [{"x": np.arange(32, dtype=np.float32).reshape(8, 4), "size": i64([k])} for k in (1, 4)]),
    "element_of_the_run": (graph([loop(APPEND), "e = SequenceAt(s, p)", "y = Mul(e, x)"], "float[3] x, int64 n, int64 p", "float[3] y"),
                           [{"x": X, "n": i64(4), "p": i64(p)} for p in (0, 3, -1, -4)]),
    "inserted_afterwards": (graph([loop(APPEND), "s1 = SequenceInsert(s, x, p)", "s2 = SequenceErase(s1, o)",
                                   "y = ConcatFromSequence<axis=0, new_axis=1>(s2)"], "float[3] x, int64 n, int64 p, int64 o"),
                            [{"x": X, "n": i64(4), "p": i64(p), "o": i64(o)} for p, o in ((0, 1), (4, -1), (-4, 4), (2, -5))]),
    **{f"joined_{'new' if new else 'old'}_axis_{axis}": (graph([loop(WIDE_APPEND, type=WIDE), joined(axis, new)], f"{WIDE} x, int64 n",
                                                               "float[" + ",".join("ABCD"[:3 + new]) + "] y"), trips(3, 1, x=S))
       for new in (0, 1) for axis in range(-3 - new, 3 + new)},
    "symbolic_element": (graph([loop(WIDE_APPEND, type="float[A,3,B]"), joined(2, 0)], "float[A,3,B] x, int64 n", "float[C,3,D] y"),
                         [{"x": S, "n": i64(3)}, {"x": S[:1, :, :2], "n": i64(1)}]),
    "integers": (f"""g (int64[2] x, int64 n) => (int64[K] y) {{
        {YES}
        empty = SequenceEmpty<dtype=7>()
        {loop("e = Add(x, i)" + chr(10) + "            r = SequenceInsert(q, e)", type="int64[2]")}
        y = ConcatFromSequence<axis=0>(s)
    }}""", trips(4, 1, x=i64([5, -7]))),
    "scalars": (f"""g (float x, int64 n) => (float[K] y) {{
        {YES}
        {EMPTY}
        {loop(APPEND, type="float")}
        y = ConcatFromSequence<axis=0, new_axis=1>(s)
    }}""", trips(4, 1, x=np.array(3, np.float32))),
    "captured": (captured(6), [{"x": S.reshape(6, 4), "h": S[0, 0]}]),
    "captured_of_any_length": (captured("T"), [{"x": S.reshape(-1, 4)[:t], "h": S[0, 0]} for t in (6, 1, 3)]),
    "split_of_any_length": ("""g (float[2,T,4] x) => (float[2,4,T] y, int64 m) {
        columns = SplitToSequence<axis=1, keepdims=1>(x)
        m = SequenceLength(columns)
        minus = SequenceMap<body = b (float[2,1,4] e) => (float[2,1,4] o) { o = Neg(e) }>(columns)
        whole = ConcatFromSequence<axis=1>(minus)
        y = Transpose<perm=[0,2,1]>(whole)
    }""", [{"x": S[:, :t]} for t in (3, 1)]),
    "map_of_a_list": ("""g (float[3] x, float[5] z, float w) => (float[8] y) {
        both = SequenceConstruct(x, z)
        mapped = SequenceMap<body = b (float[K] e, float v) => (float[K] o) {
            t = Mul(e, v)
            o = Exp(t)
        }>(both, w)
        y = ConcatFromSequence<axis=0>(mapped)
    }""", [{"x": X, "z": np.arange(5, dtype=np.float32), "w": np.array(-0.5, np.float32)}]),
    "map_of_a_grown_one": (graph([loop(APPEND), """mapped, sums = SequenceMap<body = b (float[3] e, float[3] v) => (float[3] o, float[1] u) {
            o = Mul(e, v)
            u = ReduceSum(o)
        }>(s, x)""", "y = ConcatFromSequence<axis=0, new_axis=1>(mapped)", "w = ConcatFromSequence<axis=0>(sums)"],
                                  outputs="float[K,3] y, float[K] w"), COUNTS),
    "an_if_of_sequences": (f"""g (float[3] x, bool p, int64 at) => (float[K,3] y, int64 m, float[3] e) {{
        a = Neg(x)
        one = SequenceConstruct(x)
        s = If(p) <then_branch = tb () => (seq(float[3]) t) {{ t = SequenceConstruct(a, x, a) }},
                   else_branch = eb () => (seq(float[3]) u) {{ u = SequenceInsert(one, a) }}>
        y = ConcatFromSequence<axis=0, new_axis=1>(s)
        m = SequenceLength(s)
        e = SequenceAt(s, at)
    }}""", [{"x": X, "p": np.array(p), "at": i64(at)} for p in (True, False) for at in (0, -1)]),
    "an_if_of_nothing": (f"""g (float[3] x, bool p) => (int64 m, float[K,3] y) {{
        s = If(p) <then_branch = tb () => (seq(float[3]) t) {{ t = SequenceEmpty<dtype=1>() }},
                   else_branch = eb () => (seq(float[3]) u) {{ u = SequenceConstruct(x, x) }}>
        m = SequenceLength(s)
        s2 = SequenceInsert(s, x)
        y = ConcatFromSequence<axis=0, new_axis=1>(s2)
    }}""", [{"x": X, "p": np.array(p)} for p in (True, False)]),
}

# What is refused, with words of the reason: exit code 2, never a wrong answer. Inputs: only the run sees it.
REFUSED = {
    "several_shapes": (graph(["one = SequenceConstruct(x)", loop("e = Concat<axis=0>(x, x)\n            r = SequenceInsert(q, e)",
                                                                 type="float[K]", first="one"), LENGTH], outputs="int64 m"),
                       "3 and 6 on axis 0", None),
    "several_types": (graph(["one = SequenceConstruct(x)", loop("e = Cast<to=7>(x)\n            r = SequenceInsert(q, e)", first="one"), LENGTH],
                            outputs="int64 m"), "several types or ranks", None),
    "nothing_known_of_elements": (graph([loop("zero = Constant<value = int64 {0}>()\n            e = SequenceAt(q, zero)\n            "
                                              "r = SequenceInsert(q, e)"), LENGTH], outputs="int64 m"), "their type is not known", None),
    "position_outside": (graph([loop(APPEND), "y = SequenceAt(s, p)"], "float[3] x, int64 n, int64 p", "float[3] y"),
                         "outside of the sequence", [{"x": X, "n": i64(2), "p": i64(p)} for p in (2, -3)]),
    "shapes_that_differ_when_it_runs": (f"""g (float[8] x, int64 n) => (float[K] y) {{
        {YES}
        {EMPTY}
        zero = Constant<value_ints = [0]>()
        {loop("to = Unsqueeze(i, zero)" + chr(10) + "            e = Slice(x, zero, to)" + chr(10) + "            r = SequenceInsert(q, e)", type="float[K]")}
        y = ConcatFromSequence<axis=0>(s)
    }}""", "", trips(3, x=np.arange(8, dtype=np.float32))),
}


def check_refused(regie, folder, name):
    text, words, inputs = REFUSED[name]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}').SerializeToString())
    wrong = []
    for options in ([], ["--no-optimise"]):
        commands = [[regie, "compile", path, "-o", folder / "m.rgm", *options]]
        for values in inputs or []:
            given = []
            for key, array in values.items():
                np.save(folder / f"{key}{len(commands)}.npy", array)
                given += ["--input", f"{key}={folder / f'{key}{len(commands)}.npy'}"]
            commands.append([regie, "run", path, "--output-dir", folder / "out", *given, *options])
        for command in commands[1:] if inputs else commands:
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
            if done.returncode != 2 or words not in done.stderr:
                wrong.append(f"{name}: exit code {done.returncode}, not refused as '{words}': {done.stderr}")
    return wrong


def main(regie, folder, *names):
    wrong = []
    for name in REFUSED:
        if not names or name in names:
            wrong += check_refused(regie, pathlib.Path(folder) / name, name)
    print("\n".join(wrong))
    names = [n for n in names if n not in REFUSED] or ([] if not names else ["appended"])
    return 1 if check_all(CASES, {}, regie, folder, *names) or wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
