"""Times as English says them, and as ISO 8601 writes them: "tomorrow at 9", "every weekday at 8", "2027-01-31 08:00".

`grammar` goes from words to the parts of a time, `moments` from the parts to a moment, and `reading` finds a time in a
text. A text is read whole or not at all: a reminder at another time than the meant one is worse than a question. Other
wordings are for a model, which says a moment or a rule of iCalendar. Only the two ends of a text are read, so a long
text costs no more than a short one.
"""

from gateway.domain.when.grammar import BadTime
from gateway.domain.when.moments import When, repeated
from gateway.domain.when.reading import EXAMPLES, NoTime, read, read_exactly, says_no_time

__all__ = ["EXAMPLES", "BadTime", "NoTime", "When", "read", "read_exactly", "repeated", "says_no_time"]
