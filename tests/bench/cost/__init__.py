"""The price of a long conversation: `make bench-cost`.

A conversation of 200 turns with tools is talked through with a real gateway (`talk`) at three rhythms, under different
ways to keep it in its window (`ways`). Every request meets a cache that behaves as its vendor documents (`cache`), so
that each call has the usage, and with the price list the cost, that it would have had. What later turns need is looked
for in the requests at the same time. hermes-agent's compressor runs in an interpreter of its own (`theirs`), behind the
port of context engines (`peer`): prompts, tools and rhythm are the same.
"""
