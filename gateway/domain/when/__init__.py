"""Times in people's words: "tomorrow at 9", "in 20 minutes", "jeden Montag um 8", "каждый день в 9", "明天早上9点".

A small grammar of the commonest forms in six languages. It reads parts one after another (a span, a rule, a day, a
time of day) at the beginning or the end of a text; the rest is what is to be said. What it does not know, it refuses,
because a reminder at another time than the meant one is worse than none. Only the two ends of a text are read, so a
long text costs no more than a short one.

`words` are those of the languages, `patterns` are made of them. `parts` goes from words to the parts of a time,
`moments` from the parts to a moment, and `reading` finds a time in a text.
"""

from gateway.domain.when.moments import When
from gateway.domain.when.parts import BadTime
from gateway.domain.when.reading import EXAMPLES, NoTime, read, read_exactly

__all__ = ["EXAMPLES", "BadTime", "NoTime", "When", "read", "read_exactly"]
