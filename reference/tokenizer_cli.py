"""Text to token ids and back, for programs that have no tokenizer of their own.

    tokenizer_cli.py encode DIR [--chat] < '["text", ...]'      prints [[id, ...], ...]
    tokenizer_cli.py decode DIR          < '[[id, ...], ...]'   prints ["text", ...]

DIR is a checkpoint's directory with its tokenizer files; nothing is fetched. --chat: each text is
the only message of a user, put into the checkpoint's chat template, ready for the answer. Exit
status 2 with one line on stderr where the directory or the input is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["USE_TORCH"] = "0"  # a tokenizer needs none, and it takes seconds to load


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Text to token ids and back, JSON in and out.")
    parser.add_argument("action", choices=("encode", "decode"))
    parser.add_argument("directory", type=Path, help="a checkpoint with its tokenizer files")
    parser.add_argument("--chat", action="store_true", help="through the chat template")
    options = parser.parse_args()
    items = json.load(sys.stdin)
    if not (options.directory / "tokenizer.json").is_file():
        raise ValueError(f"{options.directory} has no tokenizer.json")

    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(options.directory, local_files_only=True)
    if options.action == "decode":
        result = [tokenizer.decode(ids) for ids in items]
    else:
        from greedy import prompt_ids

        if options.chat and not tokenizer.chat_template:
            raise ValueError(f"{options.directory} has no chat template")
        result = [prompt_ids(tokenizer, text, options.chat) for text in items]
    json.dump(result, sys.stdout)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, ImportError) as error:
        print(f"tokenizer_cli.py: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
