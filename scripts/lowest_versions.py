"""Prints the lowest versions that the package says it runs with, as constraints for pip: `make lowest` tests them."""

import re
import tomllib
from pathlib import Path

BOUND = re.compile(r"([\w-]+)>=([\d.]+)")

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"].values()
for requirement in (*project["dependencies"], *(one for extra in extras for one in extra)):
    if bound := BOUND.match(requirement):
        print(f"{bound[1]}=={bound[2]}")
