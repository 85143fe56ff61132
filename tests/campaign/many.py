"""Nearly every key of a specification, as a tree that can be changed and still be read: JSON is YAML."""

import json
import pathlib

SPEC = json.loads((pathlib.Path(__file__).resolve().parent / "many.json").read_text())
# What other entries name is always there.
KEPT = ("models", "inputs", "variants", "devices", "backend")


def some(rng):
    """A specification with some of the keys: what belongs together is seldom all there at once."""
    keys = [key for key in SPEC if key in KEPT or rng.random() < 0.4]
    spec = json.loads(json.dumps({key: SPEC[key] for key in keys}))
    if rng.random() < 0.3 and "dataset" not in spec:
        # What files of models say is read only by the other backend.
        spec["backend"] = "onnxruntime"
        del spec["models"][2], spec["variants"][-1]
        spec.pop("matrix", None)
    if "matrix" in spec:
        chances = {"zip": 0.1}
        spec["matrix"] = {key: value for key, value in spec["matrix"].items() if rng.random() < chances.get(key, 0.6)}
    return spec
