"""The embedded model that needs no key and no network: `model.provider: offline`."""

from gateway.providers.plugin import SETTINGS, ProviderPlugin

PLUGIN = ProviderPlugin(
    name="offline",
    create="gateway.providers.offline.model:create",
    only_model="the offline model (no key, no network)",
    free=True,
    window=32_000,  # it has none of its own; this one lets compaction be tried
    pictures=False,  # it reads words only
    takes=SETTINGS - {"stop", "response_format"},  # it never chooses between words, so the others change nothing
)
