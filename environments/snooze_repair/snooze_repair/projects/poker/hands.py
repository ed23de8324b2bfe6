"""Hands of five cards."""

RANKS = "23456789TJQKA"
NAMES = (
    "high card",
    "pair",
    "two pairs",
    "three",
    "straight",
    "flush",
    "full house",
    "four",
    "straight flush",
)


def parse(text):
    """ "AS TD 4C 4H 2S" as (rank, suit) pairs, ranks from 2 to 14."""
    cards = []
    for card in text.split():
        if len(card) != 2 or card[0] not in RANKS or card[1] not in "CDHS":
            raise ValueError(f"{card!r} is no card")
        cards.append((RANKS.index(card[0]) + 2, card[1]))
    if len(cards) != 5 or len(set(cards)) != 5:
        raise ValueError("a hand has five different cards")
    return cards


def straight_top(ranks):
    """The highest rank of a straight, 0 if there is none. An ace may stand below the two."""
    ranks = sorted(ranks)
    if ranks == [2, 3, 4, 5, 14]:
        return 5
    if all(b - a == 1 for a, b in zip(ranks, ranks[1:])):
        return ranks[-1]
    return 0


def value(text):
    """(number of the kind, ranks that decide among equal kinds)"""
    cards = parse(text)
    ranks = [rank for rank, _ in cards]
    counts = {rank: ranks.count(rank) for rank in ranks}
    order = sorted(counts, key=lambda rank: (counts[rank], rank), reverse=True)
    shape = [counts[rank] for rank in order]
    flush = len({suit for _, suit in cards}) == 1
    top = straight_top(ranks)
    if top:
        return (8 if flush else 4, [top])
    if shape[0] == 4:
        return (7, order)
    if shape == [3, 2]:
        return (6, order)
    if flush:
        return (5, order)
    if shape[0] == 3:
        return (3, order)
    if shape[:2] == [2, 2]:
        return (2, order)
    return (1 if shape[0] == 2 else 0, order)


def name(text):
    return NAMES[value(text)[0]]


def winners(hands):
    """Names of the players with the best hand, sorted; several if equal."""
    best = max(value(hand) for hand in hands.values())
    return sorted(player for player, hand in hands.items() if value(hand) == best)


def ranking(hands):
    """Players from best to worst, equal ones by name."""
    ordered = sorted(hands)
    return sorted(ordered, key=lambda player: value(hands[player]), reverse=True)
