"""What the laboratories of all bots share: `script` draws who says what and when processes die, `model` is the one that
bots ask, `run` carries a schedule out and keeps what was seen, `stalls` says when the machine stood still."""
