"""Crash tests: kill the program, its servers and its connections at every point of a message's life and
look at what is left.

Two kinds of runs, drawn from a seed (`run.py` carries out many and shrinks what fails):

- SQLite: `script` plans one process with a terminal and, in some runs, a platform; `launch` is that process,
  `drive` kills it and starts it again, `check` judges.
- Redis: `schedule` plans several workers and a terminal beside them; `node` is one of these processes, `fleet`
  carries it out, `verdict` judges, and `excuses` says what a fault can excuse.

Both share the platform (`socket_platform`), the model (`watched_model`) and the checks of what was shown
(`check_shown`) and kept (`check_store`).

A check that never failed proves nothing. These bugs were put into the program on purpose, and in so many runs
(seeds from 8016, both kinds of faults in turn) a check said so:

| Bug | Found in | By |
|---|---|---|
| every process reads the account, the lease is not asked for | Redis 23 of 32 | two readers at once |
| who lost the account's lease reads on | Redis 8 of 32 | two readers at once |
| a lane's fence is not checked | Redis 2 of 32 | asked the model at the same time, came into the middle |
| an event that is known is stored again | Redis 25 of 32 | answered by 2 messages, accepted in another order |
| a row whose outcome is not known is tried for ever | Redis 2 of 48, SQLite 1 of 64 | was shown 3 times |
| a woken process sends without asking whose the row is | Redis 2 of 32 | was shown … and again |
| the intents of tools are not stored | SQLite 4 of 32 | the effect took place 2 times |
| a terminal's line whose outcome is not known is given up | SQLite 13 of 32, Redis 2 of 32 | never seen |
| a terminal is written to by several sends at once | SQLite 2 of 64, Redis 0 of 64 | repeated after its one kill |
| commands are run again after a crash | hands on SQLite 3 of 9 | ran 2 times |
| nobody is told that a restart ended a command | hands on SQLite 6 of 9 | was told 0 times |

Seven in ten Redis runs poll their platform, so the first is found wherever it can be.
"""
