"""The search of earlier messages for the answer to a question: `python -m tests.bench.recall`."""
