#!/usr/bin/env python3
"""The schema of specifications as SchemaStore takes it: schemastore.py DIR fills a checkout of SchemaStore, or any folder.

SchemaStore's rules (its CONTRIBUTING.md): draft 7, its own address as `$id`, an entry of the catalogue with patterns that
no other tool's files have, a test file that is valid.
"""

import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = "https://www.schemastore.org/perfrun.json"

ENTRY = {
    "name": "perfrun experiment",
    "description": "What perfrun measures: models, inputs, variants, devices",
    "fileMatch": ["*.perfrun.yaml", "*.perfrun.yml"],
    "url": ADDRESS,
}


def main() -> None:
    target = Path(sys.argv[1])
    schema = json.loads((ROOT / "schemas/experiment.schema.json").read_text())
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    schema["$id"] = ADDRESS
    write(target / "src/schemas/json/perfrun.json", schema)
    test = target / "src/test/perfrun/quickstart.yaml"
    test.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "experiments/quickstart.yaml", test)
    catalogue = target / "src/api/json/catalog.json"
    known = json.loads(catalogue.read_text()) if catalogue.exists() else {"schemas": []}
    others = [entry for entry in known["schemas"] if entry["name"] != ENTRY["name"]]
    known["schemas"] = sorted([*others, ENTRY], key=lambda entry: entry["name"].lower())
    write(catalogue, known)


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
