"""Keeping a transcript inside its budget: the engine port and the compressor, its default."""

from gateway.context.engine import ContextEngine, Outcome

__all__ = ["ContextEngine", "Outcome"]
