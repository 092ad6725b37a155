"""One message, from receipt to reply.

    receipt       reception       it is stored before its platform is told, or refused
                  admission       how many are taken, and from whom
                  poison          a message that meets a bug holds up no other
    its lane      lanes           one turn at a time for each conversation
                  parts           messages that a client had to cut are one again, albums too
                  steering        words that reach a turn which runs already
    its turn      turn            the story of a message, from its lane to its reply
                  recorder        its steps, stored one by one
                  limits          its time: deadline, silence, and signals that end it early
                  observer        what others see of it, beside its reply
                  growing         its reply, while it grows
                  turn_files      the files that its tools may read and send
                  notices         notices of the gateway's own troubles
                  delegated       the turn of a helper, which nobody but its caller reads
                  voice           answers said aloud, each behind its text
                  reminded        what reminders said since the last message
                  suggestions     what a person may say next, as buttons under an answer
                  overheard       what a group said around a message to the bot
                  joining         whether the bot speaks there unasked
                  reactions       the bot's signs on messages, and people's reactions
    in a group    overheard       what people said there that was not for the bot
                  joining         whether to speak unasked, where that is wanted
    by the clock  expiry          sessions whose time is over

`app/build.py` puts them together, and `app/gateway.py` starts and ends them.
"""
