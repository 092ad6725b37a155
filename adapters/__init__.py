"""One package or module per platform; each implements `gateway.adapter.Adapter`."""
