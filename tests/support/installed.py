"""The names of what is installed, as sentences list them: a new platform or provider changes no test."""

from typing import Final

from gateway.app.plugins import platforms, providers

PLATFORMS: Final = ", ".join(sorted(name for name, platform in platforms().items() if platform.settings))
PROVIDERS: Final = ", ".join(sorted(providers()))
