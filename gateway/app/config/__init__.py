"""The configuration: `load_config` gives a frozen `Config`, or a ConfigError with every problem.

`models` is the shape of Legato's own sections and their defaults; `shape` adds the sections of plug-ins; `source` reads
YAML and remembers lines; `variables` are those that `environment` adds; `rules` asks what concerns several keys;
`sentences` says what is wrong; `loading` puts these in order.
"""

from gateway.app.config.loading import DEFAULT_PATH, find_config, load_config
from gateway.app.config.models import Config
from gateway.app.config.variables import variables

__all__ = ["DEFAULT_PATH", "Config", "find_config", "load_config", "variables"]
