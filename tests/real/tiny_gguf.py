"""Write a language model of 100 KB that llama.cpp runs: `python tiny_gguf.py FILE`.

Its attention and its feed-forward layer are zero, so the next token depends on the last one alone (`NEXT`). The chat
template sets the last character of a prompt, and whole sentences and parts of calls are tokens: so the model says
"Hello there.", calls the clock when it has tools and is asked for the time, and says "It is noted." to what the clock
told. All other tokens are single characters, so its prompts count four times as many as usual. Needs the package
`gguf`.
"""

import sys

import gguf
import numpy as np

WIDTH, HEADS, HIDDEN, TRAINED = 32, 4, 8, 262_144
END = "</s>"
OPEN, CALL, CLOSE = "<tool_call>", '\n{"name":"clock","arguments":{}}\n', "</tool_call>"
NEXT = {
    "^": OPEN,
    OPEN: CALL,
    CALL: CLOSE,
    CLOSE: END,
    "~": "It is noted.",
    "It is noted.": END,
    "|": "Hello there.",
    "Hello there.": END,
}
TEMPLATE = (
    "{% for m in messages %}{{ '[' + m['role'] + ']' + (m['content'] or '') }}"
    "{% for c in m['tool_calls'] or [] %}{% set f = c['function'] %}"
    """{{ '<tool_call>\\n{"name":"' + f['name'] + '","arguments":' }}"""
    "{{ f['arguments'] | tojson }}{{ '}\\n</tool_call>' }}"
    "{% endfor %}{% endfor %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}{% set last = messages[-1] %}"
    "{% if last['role'] == 'tool' %}~{% elif tools and 'what time' in last['content'] %}^{% else %}|{% endif %}"
)


def spelt(token: str) -> str:
    """A token as its vocabulary writes spaces."""
    return token.replace(" ", "\u2581")


def vocabulary() -> tuple[list[str], list[int]]:
    """The tokens, and their kinds as GGUF counts them: 1 normal, 2 unknown, 3 control, 6 byte."""
    usual = [spelt(chr(code)) for code in range(32, 127)] + [spelt(token) for token in NEXT if len(token) > 1]
    return ["<unk>", "<s>", END, *(f"<0x{byte:02X}>" for byte in range(256)), *usual], [
        2,
        3,
        3,
        *[6] * 256,
        *[1] * len(usual),
    ]


def weights(tokens: list[str]) -> dict[str, np.ndarray]:
    """The tensors by name. Each token of `NEXT` is a direction of its own, all others share one."""
    embedding, output = np.zeros((len(tokens), WIDTH)), np.zeros((len(tokens), WIDTH))
    embedding[:, 0] = 1.0
    for direction, (token, follower) in enumerate(NEXT.items(), start=1):
        place = tokens.index(spelt(token))
        embedding[place, 0], embedding[place, direction] = 0.0, 1.0
        output[tokens.index(spelt(follower)), direction] = 9.0
    square, wide = (WIDTH, WIDTH), (HIDDEN, WIDTH)
    return {
        "token_embd": embedding,
        "output": output,
        "output_norm": np.ones(WIDTH),
        "blk.0.attn_norm": np.ones(WIDTH),
        "blk.0.ffn_norm": np.ones(WIDTH),
        **{f"blk.0.attn_{part}": np.zeros(square) for part in ("q", "k", "v", "output")},
        **{f"blk.0.ffn_{part}": np.zeros(wide) for part in ("gate", "up")},
        "blk.0.ffn_down": np.zeros((WIDTH, HIDDEN)),
    }


def write(path: str) -> None:
    """Write the model."""
    tokens, kinds = vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(TRAINED)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(place) for place in range(len(tokens))])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in weights(tokens).items():
        writer.add_tensor(f"{name}.weight", tensor.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
