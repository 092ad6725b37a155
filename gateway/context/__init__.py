"""Context engines, which keep a transcript inside its budget.

`engine` is the port, `compressor` and `window` are the engines, `registry` finds others (`foreign`: those of another
host). The gateway calls an engine through its `guard` (`threads`). A pass of the compressor, from top to bottom:

    transcript ─▶ plan          assembly      any shape becomes a valid transcript (readable)
                                summary       earlier summaries are taken out (archive: the way back, by chapters)
                                policy        tokens for each part
                                boundaries    head, middle, tail
                                pruning       long results in what stays become a line (persisted)
         middle ─▶ summariser   statements    values that something newer replaced
                                ledger        the identifiers that count, ranked (identifiers, mentions)
                                summary_input  the middle as a model reads it
                                prompts       the request for notes
                                verification  the answer is usable, and gives no orders (injections)
                                checking      its notes say nothing against the originals
                                fallback      without a usable answer: notes made by rule
                                standing      the list of instructions that hold for good (instructions)
                                facts         the list of what people said of themselves (personal)
                                timelines     the list of what changed, with its days (dating)
                                listing       the list of identifiers that the notes lack
          notes ─▶ plan         assembly      head, notes and tail become a valid transcript again
         result ─▶ budgeted     state         was it worth it? strikes, cooldown, the tokenizer's ratio
                                account       which messages stayed, became notes or were shortened

`identifiers` and `instructions` are found when a message is stored. `feedback` tells people about a pass, and
`forgetting` takes words out of a history, with all that was made of them.
"""

from gateway.context.engine import ContextEngine, Outcome

__all__ = ["ContextEngine", "Outcome"]
