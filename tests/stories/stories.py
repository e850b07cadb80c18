"""The stories of docs/stories: each is told by commands that are run here, and its claims are checked.

    stories.py REGIE WORK_FOLDER NAME [--page docs/stories] [--keep]"""

import argparse
import json
import pathlib

import onnx
from story import SOURCE, Story, networks

# Operands of halves, as the published figures that docs/simulator-accuracy.md compares with are of.
HALVES = ("--set", "aicore.operands=f16")
TARGET = ("--target", "ascend910a-sim", *HALVES)
ONE = ("--shape", "x=1,3,224,224")
QUIET = ("--device-set", "npu.numerics=off", "--runs", "1", "--warm-ups", "1")
SUMMARY = r"^  (a run|the host|roofline|moved|AI Core|AICPU|copy (to|from)|stream|what binds) "


def us(profile):
    return profile["run_us"]


def fusion(s):
    s.say("""# Fusion

What fusing saves is the way of a tensor to memory and back, and a launch. ResNet-50 (`tests/bench/networks.py`) with and without
the rules that fuse; all else is the same.""")
    networks.resnet(s.work / "resnet50.onnx")
    s.file("unfused.toml", 'schema = 1\nname = "unfused"\nextends = "default"\n\n[[remove]]\nfrom = "fuse"\npasses = ["apply-rules"]\n'
                           '\n[[remove]]\nfrom = "group"\npasses = ["apply-rules", "fuse-pointwise"]\n')
    without = ("--pipeline", "unfused.toml")
    s.show("profile", "resnet50.onnx", *TARGET, *ONE, *QUIET, only=SUMMARY)
    s.text.append("```toml\n" + (s.work / "unfused.toml").read_text() + "```\n")
    s.show("profile", "resnet50.onnx", *TARGET, *ONE, *without, *QUIET, only=SUMMARY)
    fused, plain = s.profile("resnet50.onnx", *TARGET, *ONE), s.profile("resnet50.onnx", *TARGET, *ONE, *without)
    sizes, nodes = s.graph("resnet50.onnx", *TARGET, *ONE)
    all_sizes, all_nodes = s.graph("resnet50.onnx", *TARGET, *ONE, *without)

    def traffic(sizes, nodes):
        return sum(sizes[v] for _, operands, results in nodes for v in operands + results)

    # What is gone, from the framework's model alone.
    model = onnx.load(s.work / "resnet50.onnx")
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.shape.dim[0].dim_value = 1
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
              for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
    removed = 0
    gone = 0
    for node in model.graph.node:
        value = node.output[0]
        if "%" + value in sizes or value not in shapes:
            continue
        count = 1
        for dim in shapes[value]:
            count *= dim
        readers = sum(value in other.input for other in model.graph.node)
        removed += 4 * count * (1 + readers)
        gone += 1
    saved = traffic(all_sizes, all_nodes) - traffic(sizes, nodes)
    s.table(["", "fused", "not fused"],
            [["launches", f"{fused['launches']:.0f}", f"{plain['launches']:.0f}"],
             ["bytes of the operators' tensors, weights apart", f"{traffic(sizes, nodes):,}", f"{traffic(all_sizes, all_nodes):,}"],
             ["bytes that the launches move", f"{fused['bytes']:,.0f}", f"{plain['bytes']:,.0f}"],
             ["predicted time of a run, us", f"{us(fused):,.0f}", f"{us(plain):,.0f}"]])
    s.say(f"""{gone} tensors of the framework's model are no longer made. Each was written once and read by each of its readers: {removed:,} bytes,
by the shapes that the framework's own shape inference gives. The operators' tensors weigh {saved:,} bytes less: the same.""")
    s.claim(saved == removed and gone > 100, f"traffic saved {saved}, what the {gone} removed tensors weigh {removed}")
    s.claim(plain["launches"] >= fused["launches"] + gone - 2, "a launch less for each removed tensor")
    s.claim(us(plain) > 1.3 * us(fused) and plain["bytes"] > fused["bytes"] + saved / 2, "time and bytes that fusion saves")


def stray_node(s):
    s.say("""# A stray node breaks the chain

Between a convolution and its normalisation an exporter left a `Cast` from single precision to single precision. The rule that folds
one into the other looks for neighbours. Here the pass that takes such nodes away is left out of the pipeline:""")

    def between(network, value, name):
        return network.add("Cast", name + ".cast", [value], to=1) if name == "layer2.1.2.conv" else value

    networks.resnet(s.work / "clean.onnx")
    networks.resnet(s.work / "stray.onnx", between=between)
    s.file("careless.toml", 'schema = 1\nname = "careless"\nextends = "default"\n\n' + "\n".join(
        f'[[remove]]\nfrom = "{stage}"\npasses = ["remove-identity"]\n' for stage in ("prepare", "quantise", "recognise")))
    careless = ("--pipeline", "careless.toml")
    s.text.append("```toml\n" + (s.work / "careless.toml").read_text() + "```\n")
    said = s.show("explain", "stray.onnx", "layer2.1.2.bn", "--all", *TARGET, *ONE, *careless, only=r"^\S| on aicore| conv-batchnorm|Conv expected, .*Cast",
                  leave=8)
    s.claim("in the way: node 'layer2.1.2.conv.cast' (Cast)" in said, "explain names the node in the way")
    s.show("profile", "stray.onnx", *TARGET, *ONE, *careless, *QUIET, only=SUMMARY)
    s.say("The default pipeline removes it before the rules are tried, and the fusion is there again:")
    back = s.show("explain", "stray.onnx", "layer2.1.2.bn", *TARGET, *ONE, only=r"^\S|regie.FusedConv|remove-identity|conv-batchnorm",
                  leave=12)
    s.claim("FusedConv" in back, "the elimination restores the fusion")
    clean, broken, restored = (s.profile("clean.onnx", *TARGET, *ONE), s.profile("stray.onnx", *TARGET, *ONE, *careless),
                               s.profile("stray.onnx", *TARGET, *ONE))
    s.table(["", "launches", "bytes moved", "predicted time, us"],
            [[what, f"{p['launches']:.0f}", f"{p['bytes']:,.0f}", f"{us(p):,.1f}"]
             for what, p in (("without the node", clean), ("with it, pass left out", broken), ("with it, pass back", restored))])
    s.claim(broken["launches"] > clean["launches"] and us(broken) > us(clean), "the stray node costs launches and time")
    s.claim(restored["launches"] == clean["launches"] and abs(us(restored) - us(clean)) < 1e-6 * us(clean), "the pass restores all of it")


def small_operator(s):
    s.say("""# A small operator splits the pipeline

A `CumSum` in the middle of ResNet-50, for which the AI Cores have no program. The pipeline is cut in three: the tensor goes to
another engine and comes back. AI Cores hand blocks of channels on to each other, in halves; everyone else reads rows of single precision,
so the way there begins with a conversion and the way back ends with one.""")
    networks.resnet(s.work / "clean.onnx")
    model = onnx.load(s.work / "clean.onnx")
    at = next(i for i, n in enumerate(model.graph.node) if n.name == "layer4.0.1.conv")
    value = model.graph.node[at].input[0]
    for node in model.graph.node:
        for i, operand in enumerate(node.input):
            if operand == value:
                node.input[i] = "sum.out"
    model.graph.initializer.append(onnx.numpy_helper.from_array(networks.np.array(1, networks.np.int64), "axis"))
    model.graph.node.insert(at, onnx.helper.make_node("CumSum", [value, "axis"], ["sum.out"], name="sum"))
    onnx.save(model, s.work / "cut.onnx")
    places = {"aicpu": "the device's own CPUs", "cpu": "the host"}
    for engine in places:
        s.file(f"{engine}.toml", f'schema = 1\nname = "on_{engine}"\nextends = "default"\n\n[[force]]\nengine = "{engine}"\noperator = "CumSum"\n')
    said = s.show("explain", "cut.onnx", "sum", *TARGET, *ONE, only=r"what runs|on aicpu|on cpu|not aicore|not aicpu|not cpu", leave=6)
    s.claim("not aicore: there is no tile program for CumSum" in said, "explain says why not the AI Cores")
    clean = s.profile("clean.onnx", *TARGET, *ONE)
    rows = [["without it", f"{clean['launches']:.0f}", f"{clean['copies']:.0f}", f"{clean['host_wait_us']:,.0f}", f"{us(clean):,.0f}"]]
    for engine, where in places.items():
        s.say(f"On {where}:")
        forced = ("--pipeline", f"{engine}.toml")
        s.show("profile", "cut.onnx", *TARGET, *ONE, *forced, *QUIET, only=SUMMARY)
        p = s.profile("cut.onnx", *TARGET, *ONE, *forced)
        rows.append([f"on {where}", f"{p['launches']:.0f}", f"{p['copies']:.0f}", f"{p['host_wait_us']:,.0f}", f"{us(p):,.0f}"])
        s.claim(us(p) > us(clean), f"the operator costs time on {where}")
        if engine == "cpu":
            s.claim(p["copies"] == clean["copies"] + 2, "the tensor goes to the host and comes back")
            s.claim(p["host_work_us"] > 0, "the host's work takes simulated time")
            gaps = sum(g["gap_us"]["host"] for g in p["streams"])
            s.claim(gaps > p["host_work_us"], "the device stands still while the host computes")
        else:
            turned = sum(k["tasks"] for k in p["by_kernel"] if k["name"].startswith("TransData"))
            s.claim(turned == 2, "the tensor is turned to row-major for the AICPU, and back to blocks")
            s.claim(p["launches"] == clean["launches"] + 1 + turned and p["copies"] == clean["copies"], "no copy, one task of the AICPU")
            aicpu = sum(e["busy_us"] for e in p["engines"] if e["name"].startswith("AICPU"))
            s.claim(aicpu > 0 and us(p) - us(clean) >= 0.9 * aicpu, "the AI Cores wait for it")
    s.table(["", "launches", "copies", "the host waits, us", "predicted time, us"], rows)


def small_batch(s):
    s.say("""# Small batch is launch-bound

What a task costs beside its work does not shrink with the batch. ResNet-50, task by task as the host hands them over (`mode=issue`), and
the whole model at once (`mode=sink`):""")
    networks.resnet(s.work / "resnet50.onnx")
    rows, images = [], {}
    for batch in (1, 2, 4, 8, 16, 32):
        row = [batch]
        for mode, setting in (("slow", "npu.issue_ns=20000"), ("issue", "npu.mode=issue"), ("sink", "npu.mode=sink")):
            p = s.profile("resnet50.onnx", *TARGET, "--shape", f"x={batch},3,224,224", "--device-set", setting)
            images[mode, batch] = us(p) / batch
            core = sum(e["busy_share"] for e in p["engines"] if e["name"] == "AI Core")
            row += [f"{us(p) / batch:,.1f}", f"{100 * core:.0f} %"]
        rows.append(row)
    s.show("profile", "resnet50.onnx", *TARGET, *ONE, *QUIET, "--device-set", "npu.issue_ns=20000", only=SUMMARY)
    s.say("""A host that needs 20 us to hand a task over, as eager frameworks do, is slower than the device at batch 1: the gaps are the host's.
With the target's 5 us it keeps ahead. Microseconds an image, and how long the AI Cores were busy:""")
    s.table(["batch", "issue, 20 us", "AI Cores busy", "issue, 5 us", "AI Cores busy", "sink", "AI Cores busy"], rows)
    for mode in ("slow", "issue", "sink"):
        s.claim(images[mode, 1] > 1.5 * images[mode, 32], f"an image alone costs more, {mode}")
    s.claim(images["slow", 1] > 1.5 * images["sink", 1] and images["slow", 32] < 1.1 * images["sink", 32],
            "a slow host costs most at batch 1, and next to nothing at batch 32")
    s.claim(all(images["sink", b] <= images["issue", b] for b in (1, 2, 4, 8, 16, 32)), "handing over once is never slower")
    slow = s.profile("resnet50.onnx", *TARGET, *ONE, "--device-set", "npu.issue_ns=20000")
    s.claim(sum(g["gap_us"]["host"] for g in slow["streams"]) > 0.3 * us(slow), "a slow host leaves gaps of its own")


def many_events(s):
    s.say("""# Too many events

Eight branches whose layers read each other's results: a convolution on the AI Cores, a `CumSum` on the device's CPUs, again and again.
Which tasks need which is one thing; how many of these needs must become events is another, as streams and the other events order most
of them already. The target is the 910A whose host hands over the whole model at once (`mode = "sink"`).""")
    net = networks.Network("branches")
    axis = net.constant("axis", networks.np.array(3, networks.np.int64))
    first = net.input("x", [1, 16, 16, 16])
    count = 8
    values = [net.conv(first, f"in{i}", 16, 16, 3) for i in range(count)]
    kept = []
    for layer in range(3):
        sums = [net.add("CumSum", f"sum{layer}.{i}", [v, axis]) for i, v in enumerate(values)]
        values = []
        for i in range(count):
            name = f"mix{layer}.{i}"
            both = net.add("Add", name + ".add", [sums[i], sums[(i + 1) % count]])
            for back, earlier in enumerate(kept):
                both = net.add("Mul", f"{name}.skip{back}", [both, earlier[(i + 2) % count]])
            values.append(net.conv(both, name, 16, 16, 3))
        kept.append(sums)
    y = net.add("Concat", "all", values, axis=1)
    net.save(s.work / "branches.onnx", [(y, [1, 16 * count, 16, 16], 1)])
    text = (SOURCE / "configs/targets/ascend910a-sim.toml").read_text()
    s.claim(text.count('mode = "issue"') == 1, "the target says how work is handed over")
    s.file("sunk.toml", text.replace('mode = "issue"', 'mode = "sink"'))
    place = s.file("on_device.toml", 'schema = 1\nname = "on_device"\nextends = "default"\n\n[[force]]\nengine = "aicpu"\noperator = "CumSum"\n'
                   '\n[[force]]\nengine = "aicore"\noperator = "Conv"\n')
    common = ("--target", "sunk.toml", *HALVES, "--pipeline", place)
    rows, found = [], {}
    for what, settings in (("one stream", ("--set", "streams=1")), ("fewest events", ()), ("an event for each need", ("--set", "events=every"))):
        plan = json.loads(s.call("compile", "branches.onnx", "-o", "branches.rgm", "--json", *common, *settings))
        p = s.profile("branches.rgm")
        gaps = sum(g["gap_us"]["event"] for g in p["streams"])
        slow = s.profile("branches.rgm", "--device-set", "npu.mode=issue")
        found[what] = (plan["events"], us(p), plan["streams"], us(slow))
        rows.append([what, plan["streams"], plan["events"], f"{gaps:,.0f}", f"{us(p):,.1f}", f"{us(slow):,.1f}"])
    s.show("compile", "branches.onnx", "-o", "branches.rgm", *common, only=r"^tasks")
    s.show("compile", "branches.onnx", "-o", "branches.rgm", *common, "--set", "events=every", only=r"^tasks")
    s.table(["", "streams", "events", "streams wait for events, us", "predicted time, us", "the same plan, task by task, us"], rows)
    s.say("""Handed over at once, an event that says nothing new costs nothing but an entry in a queue and a flag. Task by task the host
pays for each of them twice.""")
    one, few, every = found["one stream"], found["fewest events"], found["an event for each need"]
    s.claim(few[2] > 1 and one[0] == 0, "branches run side by side")
    s.claim(few[0] < 0.9 * every[0], f"fewer events: {few[0]} of {every[0]}")
    s.claim(few[1] <= every[1] + 1e-6, "more events are not faster")
    s.claim(few[3] < every[3], "task by task each event costs the host time")
    s.claim(few[1] < 0.9 * one[1], "several streams are faster than one")


STORIES = {"fusion": fusion, "stray-node": stray_node, "small-operator": small_operator, "small-batch": small_batch,
           "too-many-events": many_events}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("regie")
    options.add_argument("work")
    options.add_argument("name", choices=[*STORIES, "all"])
    options.add_argument("--page", help="folder for the page")
    options.add_argument("--keep", action="store_true", help="leave the models in the work folder")
    given = options.parse_args()
    for name in STORIES if given.name == "all" else [given.name]:
        work = pathlib.Path(given.work) / name
        story = Story(str(pathlib.Path(given.regie).resolve()), work)
        STORIES[name](story)
        made = (f"\nMade by `build/venv/bin/python tests/stories/stories.py build/release/bin/regie WORK_FOLDER {name} --page docs/stories`, and "
                f"checked by the test `stories.{name}`. With `--keep` the models that it writes (random weights, input `x`) and the other files "
                f"stay in `WORK_FOLDER/{name}`, where the commands above can be run.\n")
        if given.page:
            path = pathlib.Path(given.page) / f"{name}.md"
            path.with_suffix(".new").write_text("\n".join(story.text) + made)
            path.with_suffix(".new").rename(path)
        for model in [] if given.keep else [*work.glob("*.onnx"), *work.glob("*.rgm")]:
            model.unlink()


if __name__ == "__main__":
    main()
