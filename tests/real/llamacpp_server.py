"""Run llama.cpp's own server until stdin ends: `python llamacpp_server.py MODEL PORT WINDOW`. Needs `xllamacpp`."""

import sys

import xllamacpp


def main() -> None:
    """Serve the model."""
    model, port, window = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.port, params.n_ctx, params.n_parallel = port, window, 1
    params.use_jinja, params.warmup = True, False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
