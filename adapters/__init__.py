"""One package or module per platform; each implements `gateway.domain.adapter.Adapter`."""
