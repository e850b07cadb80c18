"""Operator schemas (configs/ops/*.toml) as the tests' generator needs them: types and attribute defaults."""
import pathlib
import re
import tomllib

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "configs" / "ops"
ATTRIBUTE = re.compile(r"(\w+): (int|float|string|ints|floats|strings|tensor)(!?)(?: = (.*?))?(?: in (.*))?$")


class Schema:
    def __init__(self, op, groups):
        self.name = op["name"]
        self.operands = [tuple(o.split(": ")) for o in op["operands"]]
        self.types = {k: groups[v] if isinstance(v, str) else v for k, v in op.get("types", {}).items()}
        self.defaults = {}
        for text in op.get("attributes", []):
            match = ATTRIBUTE.match(text)
            if not match:
                raise ValueError(f"{self.name}: attribute {text!r}")
            name, kind, _, default, _ = match.groups()
            if default is not None:
                self.defaults[name] = {"int": int, "float": float, "string": lambda s: s[1:-1]}[kind](default)

    def types_of(self, key="T"):
        return self.types[key]


def load():
    schemas = {}
    for path in sorted(FOLDER.glob("*.toml")):
        document = tomllib.loads(path.read_text())
        for op in document["op"]:
            schemas[op["name"]] = Schema(op, document.get("types", {}))
    return schemas
