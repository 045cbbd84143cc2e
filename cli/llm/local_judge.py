"""A language model as the judge of a local system: its server, its judges file, and the judge service's settings."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cli.stack.layout import StackLayout
from cli.stack.probes import is_up
from cli.stack.process import ProcessSpec
from cli.stack.servers import base_environment
from cli.stack.user_settings import JUDGES_FILE

VOTES: Final = 3  # of one request; the server has as many slots, because it refuses more choices than slots
CONTEXT: Final = 8_192  # tokens a slot; a prompt has about 1,300, and a slot of a 1.5 B model takes 230 MB
LOAD_S: Final = 600.0  # a model of 20 GB is read from a slow disk
KEY: Final = "llm-key"

JUDGES: Final = """\
# Written at each start with --llm. Copy it for your own judges file; docs/judges.md explains every field.
rubric: default
routes:
  llm:
    url: {url}
    token_file: {key}
    total_timeout_s: 600     # two cores need half a minute for a segment, and more while the agent learns
    longest_timeout_s: 1800  # the limit follows the speed of the model
    wait_s: 600
    attempts: 1
    max_concurrent: 1        # one request fills all slots of the server
judges:
  - name: llm
    route: llm
    model: {model}
    dimensions: [progress, dialog, puzzle, novelty, efficiency]   # one prompt for all: it is read once
    votes: [{votes}]               # append 7, 11 to ask again while votes are split
    max_prompt_tokens: {prompt}
    max_output_tokens: {output}
"""
OUTPUT: Final = (
    400  # tokens of a vote: a reason of at most 200 characters and five numbers, even at a token a character
)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model file that judges in a local system; the system chooses the port of its server."""

    file: Path

    def judge_settings(self, layout: StackLayout, port: int, chosen: Mapping[str, str]) -> dict[str, str]:
        """Write the judges file and return the judge service's settings; those that the user chose stay."""
        file = layout.root / "judges-llm.yaml"
        text = JUDGES.format(
            url=f"http://127.0.0.1:{port}/v1",
            key=json.dumps(str(layout.secret(KEY)), ensure_ascii=False),  # JSON quotes as YAML does
            model=json.dumps(model_name(self.file)),
            votes=VOTES,
            prompt=CONTEXT - OUTPUT,  # the bound counts bytes: a prompt within it fits with any tokenizer
            output=OUTPUT,
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return {**chosen, JUDGES_FILE: str(file)}

    def server(self, layout: StackLayout, port: int) -> ProcessSpec:
        """llama.cpp's server with this model, on loopback and with a key."""
        options = ["--port", str(port), "--key-file", str(layout.secret(KEY)), "--name", model_name(self.file)]
        options += ["--slots", str(VOTES), "--context", str(CONTEXT)]
        return ProcessSpec(
            name="llm",
            command=[sys.executable, "-m", "cli.llm.llama_server", str(self.file), *options],
            environment=base_environment(),
            ready=lambda: is_up(f"http://127.0.0.1:{port}/health"),
            ready_s=LOAD_S,
            ports=(port,),
            grace_s=5,
        )


def model_name(path: Path) -> str:
    """The name of the model in requests and scores: that of its file, in characters that any log accepts."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.name.removesuffix(".gguf"))[:120].strip("-.") or "model"
