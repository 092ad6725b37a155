"""Import every module of Legato, so that Python compiles these and whatever they import (see the Dockerfile)."""

import importlib
import pkgutil

import adapters
import gateway

for package in (gateway, adapters):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:  # an extra that the image does not have
                print(module.name, "needs", error.name)
