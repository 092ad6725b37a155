"""The share of a long conversation that a context engine keeps, measured without a model: `python -m
tests.bench.context`.

A conversation of returning customers is written from a seed (`customers`, in the words of `phrases`), led through each
policy (`drive`), and asked of the archive (`archive`); `sheet` prints what was kept.

`tests/integration/test_bench_context.py` also talks a conversation of one steady stream (`trace`, with `facts` in it
that are needed later) through with a real gateway, store included, under virtual time (`replay`), against a model that
follows the script (`model`) and a summariser that is as good or bad as it is told to be (`summarisers`). Every request
is looked at when it is made (`observing`), and summed up (`figures`).

The same seed prints the same report, byte for byte. No freely licensed dialogues of such a length are shipped in a
package of PyPI or npm, so all conversations here are made.
"""
