"""Context engines, which keep a transcript inside its budget: their port, the compressor and the window engine."""

from gateway.context.engine import ContextEngine, Outcome

__all__ = ["ContextEngine", "Outcome"]
