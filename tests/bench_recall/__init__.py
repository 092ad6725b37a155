"""Whether a search of earlier messages finds what answers a question: `python -m tests.bench_recall`."""
