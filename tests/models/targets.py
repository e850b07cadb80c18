"""The target files of configs/targets, and variants of them."""
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "configs/targets"
ENGINE = 'name = "aicore"\nplugin = "aicore"\n'


def with_aicore(target, settings):
    """The text of a target whose engine of the AI Cores has these parameters, such as 'operands = "f16x2"'."""
    text = (FOLDER / f"{target}.toml").read_text()
    assert text.count(ENGINE) == 1, f"{target}: no engine 'aicore'"
    return text.replace(ENGINE, f"{ENGINE}params = {{ {settings} }}\n")
