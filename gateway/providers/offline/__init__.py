"""The embedded model that needs no key and no network: `model.provider: offline`."""
