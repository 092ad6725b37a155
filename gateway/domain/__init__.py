"""Frozen data that every room speaks: no I/O, no decisions beyond naming.

    messages       chat            in and out, their people and files, the keys of conversations
                   message         an entry of a transcript, and its name for people
                   command         `/name rest`
                   speech          spoken words
                   quoting         the lines before a person's words, such as "in reply to"
    conversations  session         a stretch of conversation (titles, expiry)
                   turn            the rules of turns
                   usage           what a call used, and a model's room
                   notes           what stands in for older turns
                   rule            what is to hold for good, by a message or by a command
                   memory          facts that outlive sessions
    people         place           what config.yaml and commands can set rules for
                   pairing         how a stranger is let in
                   keys            how another program is
                   approval        a yes or no that a tool waits for
    time           reminder        reminders and schedules
                   recurrence      repeated moments (cron: by cron expressions)
    platforms      adapter         the port, and how quickly a platform lets a bot send
                   reading         what an adapter does about messages that it missed
                   views           what a platform may read that shows the store
                   platform        the description of a package
    texts          settings        the kinds of values in config.yaml
                   deeds           what tools do, in a person's words
                   wording         numbers and moments in sentences, strangers' texts for a terminal

`when/` reads a time as people write it, such as "tomorrow at nine".
"""
