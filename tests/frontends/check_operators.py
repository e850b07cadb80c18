"""Compares the table of plugins/frontends/onnx/operators.cpp with the operator schemas of the onnx package.

check_operators.py OPERATORS.CPP PAGE [--write]

For each operator: every version that ONNX has defined is listed, and at every supported version the attributes, their
kinds and the number of inputs are ONNX's. PAGE (docs/operators.md) must list just these operators and versions; --write makes it
so. Exits 1 with one line a difference.
"""
import re
import sys

import onnx.defs

KINDS = {"INT": "i", "FLOAT": "f", "STRING": "s", "INTS": "I", "FLOATS": "F", "STRINGS": "S", "TENSOR": "t",
         "GRAPH": "g", "SPARSE_TENSOR": "p"}
ANY = 2**31 - 1
# Versions that are not read.
UNREAD = {"Scan": [8]}  # with a batch of its own
# Experimental up to ONNX 1.4, which the package does not know any more: the versions that only the table has.
WITHDRAWN = {op: [1] for op in ("Affine", "Crop", "ImageScaler", "MeanVarianceNormalization", "ParametricSoftplus", "Scale", "ScaledTanh", "ThresholdedRelu")}


def table(path):
    text = open(path).read()
    text = re.sub(r'"\s*\n\s*"', "", text)  # literals that continue on the next line
    constants = dict(re.findall(r'constexpr const char\* (k\w+) = "([^"]*)";', text))
    body = text[text.index("kOperators[] = {"):]
    body = body[:body.index("\n};")]
    oldest, newest = (int(re.search(rf"{name} = (\d+)", open(path.replace(".cpp", ".h")).read()).group(1))
                      for name in ("kOldestOpset", "kNewestOpset"))
    operators = {}
    starts = [m for m in re.finditer(r'\{"(\w+)",\s*"([\d ]+)",', body)]
    for k, m in enumerate(starts):
        end = starts[k + 1].start() if k + 1 < len(starts) else len(body)
        forms = []
        for f in re.finditer(r'\{(\d+),\s*("[^"]*"|k\w+),\s*(\d+),\s*(\w+),\s*(\w+)\}', body[m.end():end]):
            attributes = f[2][1:-1] if f[2].startswith('"') else constants[f[2]]
            most = ANY if f[4] == "kAny" else int(f[4])
            forms.append((int(f[1]), dict(a.split(":") for a in attributes.split()), int(f[3]), most))
        assert forms, m[1]
        operators[m[1]] = ([int(v) for v in m[2].split()], forms)
    return operators, oldest, newest


def page(operators, oldest, newest):
    """docs/operators.md: what is read, at which versions, and what of ONNX is not."""
    latest = {}
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain == "" and s.since_version <= newest and s.since_version >= latest.get(s.name, (0, False))[0]:
            latest[s.name] = (s.since_version, s.deprecated)
    lines = ["# Operators", "",
             f"The operators of ONNX that the frontend reads, of operator sets {oldest} to {newest}, and the versions of each. `regie plugins describe",
             "ops-standard` lists those that kernels exist for. Made and checked by `tests/frontends/check_operators.py`; each version is compared",
             "with ONNX Runtime by `check_opsets.py`.", "", "| operator | versions |", "|---|---|"]
    for name, (versions, forms) in operators.items():
        read = [v for v in versions if v >= forms[0][0]]
        lines.append(f"| {name} | {', '.join(map(str, read))} |")
    missing = sorted(n for n, (_, gone) in latest.items() if n not in operators and not gone)
    lines += ["", "Not read (a model that has one is refused, with all such operators in one message):", ""]
    line = ""
    for n in missing:
        if len(line) + len(n) > 124:
            lines.append(line.rstrip())
            line = ""
        line += n + (", " if n != missing[-1] else ".")
    lines += [line, "",
              "Sizes, axes and counts may be computed when the model runs ([late-shapes.md](late-shapes.md)); the rank of each tensor must be",
              "known when it is compiled."]
    return "\n".join(lines) + "\n"


def main():
    operators, oldest, newest = table(sys.argv[1])
    problems = []
    if onnx.defs.onnx_opset_version() < newest:
        problems.append(f"the onnx package knows operator set {onnx.defs.onnx_opset_version()}, the table claims {newest}")
    history = {}
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain == "" and s.since_version <= newest:
            history.setdefault(s.name, {})[s.since_version] = s
    if list(operators) != sorted(operators):
        problems.append("the table is not sorted by name")
    compared = 0
    for name, (versions, forms) in operators.items():
        known = history.get(name, {})
        gone = WITHDRAWN.get(name, [])
        if versions != sorted([*known, *gone]):
            problems.append(f"{name}: versions {versions}, ONNX has {sorted(known)}")
            continue
        for opset in range(oldest, newest + 1):
            since = max((v for v in versions if v <= opset), default=None)
            form = max((f for f in forms if f[0] <= opset), default=None, key=lambda f: f[0])
            if since is None or since in gone + UNREAD.get(name, []):
                continue
            if form is None:
                problems.append(f"{name}: no form for operator set {opset}")
                continue
            schema = known[since]
            attributes = {n: KINDS[a.type.name] for n, a in schema.attributes.items()}
            if form[1] != attributes:
                problems.append(f"{name} at {opset}: attributes {form[1]}, ONNX has {attributes}")
            least, most = schema.min_input, min(schema.max_input, ANY)
            if (form[2], form[3]) != (least, most):
                problems.append(f"{name} at {opset}: {form[2]}..{form[3]} inputs, ONNX has {least}..{most}")
            compared += 1
    path, wanted = sys.argv[2], page(operators, oldest, newest)
    if "--write" in sys.argv:
        open(path, "w").write(wanted)
    elif open(path).read() != wanted:
        problems.append(f"{path} is not what the table says; run {sys.argv[0]} with --write")
    for p in dict.fromkeys(problems):
        print(p)
    print(f"{len(operators)} operators, {compared} versions compared, {len(problems)} differences")
    sys.exit(1 if problems or compared < 500 else 0)


main()
