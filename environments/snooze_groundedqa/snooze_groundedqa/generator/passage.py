"""From facts to a passage: one block of sentences per body, blocks in random order, other sentences between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snooze_groundedqa.generator.draws import Draws
from snooze_groundedqa.generator.levels import Level
from snooze_groundedqa.generator.relations import DISTRACTORS, RELATIONS


def render(
    draws: Draws, knobs: Level, facts: Mapping[tuple[str, str], str], vague: Sequence[tuple[str, str]]
) -> str:
    """The passage. "It" only ever follows a sentence of the same block, so it always means the block's body."""
    blocks: dict[str, list[str]] = {}
    for body, relation in draws.sample(list(facts), len(facts)):
        blocks.setdefault(body, []).append(relation)
    pieces = [_block(draws, knobs, body, relations, facts) for body, relations in blocks.items()]
    pieces += [_capital(RELATIONS[relation].vague.format(s=body)) for body, relation in vague]
    pieces += [
        text.format(p=draws.pick(draws.names.places), n=draws.person())
        for text in draws.sample(DISTRACTORS, knobs.distractors)
    ]
    return " ".join(draws.sample(pieces, len(pieces)))


def _block(
    draws: Draws, knobs: Level, body: str, relations: list[str], facts: Mapping[tuple[str, str], str]
) -> str:
    # After "It competes with the Sable Archive." another "It" could mean either.
    relations.sort(key=lambda name: name == "rival")
    sentences = []
    for place, name in enumerate(relations):
        relation = RELATIONS[name]
        go_on = place > 0 and (len(relations) == 2 or draws.random() < knobs.go_on + 0.2)
        forms = relation.go_on if go_on else relation.say
        form = draws.pick(forms[: knobs.wordings])
        sentences.append(_capital(form.format(s=body, o=facts[body, name])))
    return " ".join(sentences)


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
