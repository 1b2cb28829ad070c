"""The plans of transformers' causal language models, each checked at tp=2, 4, 8.

    plan_sweep.py --program build/shardproof --out DIR [model_type ...]

Every model type of MODEL_FOR_CAUSAL_LM_MAPPING that has a tp plan is built with its default config
on the meta device and dumped (plan_dump.py), then checked by `shardproof plan`. DIR keeps the
dumps, the answers of the program, results.json and summary.md. A model that does not build is
listed with its error.
"""

import argparse
import collections
import json
import subprocess
import warnings
from pathlib import Path

import transformers
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING
from transformers.utils import logging

import plan_dump

RANKS = (2, 4, 8)
logging.set_verbosity_error()
warnings.filterwarnings("ignore")


def make_dumps(folder, wanted):
    """{model_type: path of its dump, None where it has no tp plan, or an error}."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for config_class in MODEL_FOR_CAUSAL_LM_MAPPING:
        name = config_class.model_type
        if wanted and name not in wanted:
            continue
        path = folder / f"{name}.json"
        try:
            if not path.exists():
                path.write_text(json.dumps(plan_dump.dump(plan_dump.build(config_class()))))
            made[name] = path if json.loads(path.read_text())["plans"]["tp"] else None
        except Exception as error:  # whatever a model's own code throws is its verdict
            made[name] = f"{type(error).__name__}: {error}".splitlines()[0][:120]
    return made


def check(program, dump, ranks, folder):
    """The answer of the program, or what it died of."""
    command = [program, "plan", "--dump", dump, "--layout", f"tp={ranks}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return {"crash": f"status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"}
    (folder / f"{dump.stem}.tp{ranks}.json").write_text(done.stdout)
    answer = json.loads(done.stdout)
    by_check = collections.defaultdict(list)
    for finding in answer["findings"]:
        by_check[finding["check"]].append(finding)
    coverage = answer["coverage"]
    return {
        "status": done.returncode,
        "findings": by_check,
        "elements": coverage["elements"],
        "uncovered": coverage["uncovered"] / coverage["elements"],
    }


def short(name):
    parts = name.split(".")
    return ".".join(p for p in parts if p not in ("model", "layers", "weight") and not p.isdigit())


FSDP_STYLES = ("free_full_weight", "keep_full_weight")


def rules(answer, *checks, fsdp=False):
    """The patterns that findings of these checks are about, of the tp plan or of the fsdp plan."""
    found = [finding for kind in checks for finding in answer["findings"].get(kind, [])]
    return sorted(
        {
            f"`{finding['pattern'] or finding['subject']}`"
            for finding in found
            if (finding["style"] in FSDP_STYLES) == fsdp
        }
    )


def uneven(answer):
    """Short names of what does not divide by the ranks, or is less than they are."""
    found = [finding for kind in ("cut", "copies") for finding in answer["findings"].get(kind, [])]
    return sorted({short(finding["subject"]) for finding in found})


def counts(models):
    """A short table: how many models each verdict is true of, and which at most."""
    first = {name: result["tp"][str(RANKS[0])] for name, result in models.items()}

    def line(verdict, names, shown=6):
        names = sorted(names)
        more = ", ..." if len(names) > shown else ""
        return f"| {verdict} | {len(names)} | {', '.join(names[:shown])}{more} |"

    def with_rules(*checks, fsdp=False):
        return [name for name, answer in first.items() if rules(answer, *checks, fsdp=fsdp)]

    def share(low, high):
        return [name for name, answer in first.items() if low < answer["uncovered"] <= high]

    lines = [
        "| verdict | models | such as |",
        "| --- | ---: | --- |",
        line("more than half of the bytes in no rule: whole on every rank", share(0.5, 1)),
        line("10 % to 50 % in no rule", share(0.1, 0.5)),
        line("1 % to 10 % in no rule", share(0.01, 0.1)),
        line("rules of the tp plan that match nothing", with_rules("unmatched")),
        line("rules of the fsdp plan that match nothing", with_rules("unmatched", fsdp=True)),
        line("rules of the tp plan that change nothing", with_rules("no-effect")),
        line(
            "rules on what they do not fit, two rules on one module, tied weights apart",
            with_rules("misfit", "matched-twice", "tied", "unknown-style"),
        ),
    ]
    for ranks in RANKS:
        names = [name for name, result in models.items() if uneven(result["tp"][str(ranks)])]
        lines.append(line(f"tp={ranks}: dims or heads that do not divide, or too few", names))
    return lines


def summary(results):
    """In markdown: counts, then a line a model."""
    models = {name: result for name, result in results.items() if "tp" in result}
    none = [name for name, result in results.items() if result.get("plan") is False]
    unbuilt = {name: result["error"] for name, result in results.items() if "error" in result}
    crashed = {
        name
        for name, result in models.items()
        if any("crash" in answer for answer in result["tp"].values())
    }
    lines = [
        f"{len(results)} causal language models of transformers {transformers.__version__}: "
        f"{len(models)} with a tp plan were checked at tp={', '.join(map(str, RANKS))}, "
        f"{len(none)} have none, {len(unbuilt)} do not build from their default config; crashes "
        f"of the program: {len(crashed)}.",
        "",
        *counts({name: result for name, result in models.items() if name not in crashed}),
        "",
        "| model | parameters | in no rule | the largest of it | tp rules that match nothing "
        "| misfits, ties | uneven at tp=2 | 4 | 8 |",
        "| --- | ---: | ---: | --- | --- | --- | --- | --- | --- |",
    ]
    for name, result in sorted(models.items()):
        if name in crashed:
            lines.append(f"| {name} | crash: {result['tp']} |")
            continue
        first = result["tp"][str(RANKS[0])]
        holes = [short(finding["subject"]) for finding in first["findings"].get("uncovered", [])]
        cells = [
            name,
            f"{first['elements'] / 1e9:.2f} G",
            f"{100 * first['uncovered']:.1f} %",
            ", ".join(holes[:3]),
            "<br>".join(rules(first, "unmatched")),
            "<br>".join(rules(first, "misfit", "tied", "unknown-style", "matched-twice")),
            *(", ".join(uneven(result["tp"][str(ranks)])) for ranks in RANKS),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if unbuilt:
        errors = [f"- {name}: {error}" for name, error in sorted(unbuilt.items())]
        lines += ["", "Not built:", *errors]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="shardproof; without it only the dumps are made")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    dumps = make_dumps(arguments.out / "dumps", set(arguments.models))
    if not arguments.program:
        return
    answers = arguments.out / "answers"
    answers.mkdir(exist_ok=True)
    results = {}
    for name, dump in dumps.items():
        if dump is None:
            results[name] = {"plan": False}
        elif isinstance(dump, str):
            results[name] = {"error": dump}
        else:
            verdicts = {str(n): check(arguments.program, dump, n, answers) for n in RANKS}
            results[name] = {"tp": verdicts}
    (arguments.out / "results.json").write_text(json.dumps(results, indent=1))
    (arguments.out / "summary.md").write_text(summary(results))


if __name__ == "__main__":
    main()
