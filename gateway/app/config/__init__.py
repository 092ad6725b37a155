"""The configuration: `load_config` gives a frozen `Config`, or a ConfigError with every problem.

`models` is the shape and its defaults; `source` reads YAML and remembers lines; `variables` are those that
`environment` adds; `rules` holds what concerns several keys, and what this version cannot do; `sentences`
says what is wrong; `loading` puts these in order.
"""

from gateway.app.config.loading import DEFAULT_PATH, find_config, load_config
from gateway.app.config.models import Adapters, Budgets, Config, Expiry, Model, Prices, Section, Sessions, Store
from gateway.app.config.variables import variables

__all__ = [
    "DEFAULT_PATH",
    "Adapters",
    "Budgets",
    "Config",
    "Expiry",
    "Model",
    "Prices",
    "Section",
    "Sessions",
    "Store",
    "find_config",
    "load_config",
    "variables",
]
