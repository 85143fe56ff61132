"""The order of a specification's folder on the path of modules."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

PROGRAM = """
import sys
sys.path[0] = sys.argv[1]
from perfrun.source import add_to_path
add_to_path([sys.argv[2]])
import colorsys, own_module
print(colorsys.__file__, own_module.__file__, sep="\\n")
"""


class TestAddToPath(unittest.TestCase):
    def test_own_modules_are_found_and_replace_none_of_the_standard_library(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ["colorsys", "own_module"]:
                Path(folder, f"{name}.py").write_text("")
            # An installed package of that name stands behind.
            said = subprocess.run(
                [sys.executable, "-c", PROGRAM, str(PACKAGE), folder], capture_output=True, text=True, check=True
            )
            standard, own = said.stdout.splitlines()
            self.assertEqual(os.path.dirname(own), folder)
            self.assertNotEqual(os.path.dirname(standard), folder)


if __name__ == "__main__":
    unittest.main()
