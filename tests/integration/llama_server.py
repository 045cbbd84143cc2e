"""llama.cpp's own HTTP server with the tiny model: `python -m tests.integration.llama_server DIR PORT KEY`.

A process of its own, because the server cannot be stopped within one.
"""

import sys
import threading
from pathlib import Path

import xllamacpp

SLOTS = 4


def main() -> None:
    """Serve until killed."""
    folder, port, key = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    params = xllamacpp.CommonParams()
    params.model.path = str(folder / "model.gguf")
    params.mmproj.path = str(folder / "eye.gguf")
    params.port = port
    params.api_keys = [key]
    params.model_alias = {"tiny"}
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * 16_384
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    threading.Event().wait()


if __name__ == "__main__":
    main()
