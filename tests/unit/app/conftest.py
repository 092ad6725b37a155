"""Loading a configuration as the program does, for every test of it."""

from pathlib import Path

import pytest

from gateway.app.config import load_config
from gateway.runtime.errors import ConfigError


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load a YAML text as ./config.yaml, with an environment."""
    monkeypatch.chdir(tmp_path)

    def loaded(text, **environ):
        path = Path("config.yaml")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_config(path, environ)

    return loaded


@pytest.fixture
def problems(load):
    """The problems of a YAML text."""

    def found(text, **environ):
        with pytest.raises(ConfigError) as caught:
            load(text, **environ)
        return list(caught.value.problems)

    return found
