"""llama.cpp's own HTTP server in a process of its own: `python -m cli.llm.llama_server MODEL --port N --key-file FILE`.

It listens on loopback only, asks for the key, and serves neither pages nor its internal state.
"""

import argparse
import os
import sys
import threading
import time
from pathlib import Path
from typing import Final, NoReturn

import xllamacpp

from shared.process.cores import usable_cores

WRONG_MODEL: Final = 2  # the exit code of a configuration that no restart can fix
LAST_LINES_S: Final = 0.5  # llama.cpp's lines about a model that it cannot load are written within a few milliseconds


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description="Serve a GGUF model by the OpenAI protocol.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--key-file", type=Path, required=True)
    parser.add_argument("--name", required=True, help="name of the model in requests")
    parser.add_argument(
        "--slots", type=int, default=3, help="maximum number of concurrent sequences, and of choices per request"
    )
    parser.add_argument("--context", type=int, default=8_192, help="tokens of a prompt and its reply")
    parser.add_argument("--projector", type=Path, help="GGUF file that lets the model see pictures")
    parser.add_argument("--threads", type=int, default=usable_cores(), help="default: all usable cores")
    options = parser.parse_args()
    try:
        server = xllamacpp.Server(server_parameters(options))
    except RuntimeError as error:
        _end_with(f"{options.model}: llama.cpp cannot load this model ({error}): try another file.")
    sys.stdout.write(f"{options.name} is served at {server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


def _end_with(reason: str) -> NoReturn:
    """End with `reason` as the last line of the log: llama.cpp's threads write until the process has ended."""
    time.sleep(LAST_LINES_S)
    sys.stderr.write(f"{reason}\n")
    sys.stderr.flush()
    os._exit(WRONG_MODEL)  # an exit of Python would let llama.cpp write what it still holds


def server_parameters(options: argparse.Namespace) -> xllamacpp.CommonParams:
    """Translate the options into llama.cpp's own parameters."""
    params = xllamacpp.CommonParams()
    params.model.path = str(options.model)
    if options.projector:
        params.mmproj.path = str(options.projector)
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.api_keys = [options.key_file.read_text(encoding="utf-8").strip()]
    params.model_alias = {options.name}
    params.n_parallel = options.slots
    params.n_ctx = options.slots * options.context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.cache_ram_mib = 0  # prompts share their beginning alone, which the slots keep; 8 GB is the default
    params.ui = params.endpoint_slots = params.endpoint_props = False
    return params


if __name__ == "__main__":
    main()
