"""The configuration: `set_up` gives a frozen `Config`, or a ConfigError with every problem.

`models` is the shape of Legato's own sections and their defaults; `shape` adds the sections of plug-ins; `source` reads
YAML and remembers lines; `variables` are those that `environment` adds; `rules` asks what concerns several keys;
`sentences` says what is wrong; `loading` puts these in order; `setup` knows where the files and Legato's folder are.
"""

from gateway.app.config.environment import variables
from gateway.app.config.loading import load_config
from gateway.app.config.models import Config
from gateway.app.config.setup import Setup, set_up

__all__ = ["Config", "Setup", "load_config", "set_up", "variables"]
