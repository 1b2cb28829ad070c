"""Greedy continuations by stock transformers: what generation is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# (text, through the chat template?): different lengths; the first is the one that shows at a
# glance whether the checkpoint is sound.
PROMPTS = (
    ("The capital of France is", False),
    ("Water", False),
    ("def fibonacci(n):\n    if n < 2:\n", False),
    ("What is the largest planet of the solar system?", True),
    ("Name three colours that are not in the flag of Italy, and say why.", True),
)
NEW_TOKENS = 20


def prompt_ids(tokenizer: PreTrainedTokenizerBase, text: str, chat: bool) -> list[int]:
    """Token ids of a prompt; with `chat` as the only message of a user, ready for the answer."""
    if not chat:
        return list(tokenizer(text).input_ids)
    message = [{"role": "user", "content": text}]
    encoded = tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=True)
    return list(encoded["input_ids"])


def continue_greedily(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str, chat: bool
) -> dict[str, Any]:
    """One prompt and what `model` continues it with, alone in its batch.

    {prompt, chat, prompt_ids, ids, text, margins}: ids are the new tokens, at most NEW_TOKENS, an
    end of sequence included; margins, one for each, the highest logit minus the second.
    """
    import torch  # here, since prompt_ids is used where torch is not wanted

    ids = prompt_ids(tokenizer, text, chat)
    inputs = torch.tensor([ids])
    output = model.generate(
        inputs,
        attention_mask=torch.ones_like(inputs),
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        return_dict_in_generate=True,
        output_logits=True,
    )
    new = output.sequences[0, len(ids) :].tolist()
    top = [logits[0].topk(2).values for logits in output.logits]
    return {
        "prompt": text,
        "chat": chat,
        "prompt_ids": ids,
        "ids": new,
        "text": tokenizer.decode(new),
        "margins": [float(best - second) for best, second in top],
    }


def record_greedy(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> list[dict[str, Any]]:
    """The continuations of all PROMPTS, as continue_greedily gives them."""
    return [continue_greedily(model, tokenizer, text, chat) for text, chat in PROMPTS]
