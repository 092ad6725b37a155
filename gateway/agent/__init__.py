"""The agent: a loop of model calls and tools over one conversation.

    the room      agents          the parts below that outlive a turn, and the makers of those that do not
    a turn        loop            fit the window, ask the model, run its tools, store the step, again
                  ports           what the loop needs of the rooms above
                  conversation    the session, while its turn runs
                  asking          the answer of a step, cut where it does not end (fallback: from another model)
                  steps           the tools on offer, and the results of calls (gate: a person is asked first)
                  provenance      whose words a turn has read, and what of them may last
                  delegation      tasks that a turn hands to helpers
                  background      commands that go on after their turn
                  pictures        the tool that has pictures made
                  waking          the item of something that ended in the background
                  moments         when hooks of plug-ins are called, and what they answer (plugged: calls them)
                  running         the turns of this process, within reach of signals
    the window    fitting         compactions between two steps, and the remedy for a prompt that is refused as too long
                  windows         the sizes that such refusals state
                  pressure        the marks of a filling window
                  preparation     compactions made while nobody waits
                  compaction      one compaction, up to the continuation that it publishes; and the pass before a turn
                  engines         the context engines in memory
    the models    models          those of the configuration (choices: what people chose for a chat)
                  auxiliary       calls beside the conversation, as for summaries
                  caching         the marks of what a provider may keep
                  metering        what calls cost, and whether that may be spent (caps)
    a session     sessions        its beginning, continuation and end (hooks: what an engine is told of the end)
                  prompt          its system prompt (projects: instructions that several chats share)
                  titles          its name, which a model gives it
                  quotes          earlier words that a message brings along
                  embeddings      searches by what was meant
                  forgetting      words that a person wants gone (holding: all that holds them)

`tools/` has Legato's own tools (`checks` holds calls against their schemas), `mcp/` the tools of MCP servers, `files/`
what people and models send each other, `workspace/` the folder of each conversation, `search/` what finds pages of the
web, `skills/` instructions that people bring, and `memory/` what outlives sessions.
"""
