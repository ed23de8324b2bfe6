"""Ten-pin bowling."""


class RollError(ValueError):
    pass


def frames(rolls):
    """Rolls as up to ten frames; the last may hold bonus rolls."""
    found, i = [], 0
    while i < len(rolls) and len(found) < 9:
        take = 1 if rolls[i] == 10 else 2
        found.append(rolls[i : i + take])
        i += take
    if i < len(rolls):
        found.append(rolls[i:])
    return found


def check(rolls):
    """Raise RollError for what cannot happen."""
    for pins in rolls:
        if not 0 <= pins <= 10:
            raise RollError(f"{pins} pins")
    for number, frame in enumerate(frames(rolls)):
        if number < 9 and sum(frame) > 10:
            raise RollError(f"{sum(frame)} pins in frame {number + 1}")
        if number == 9:
            check_last(frame)


def check_last(frame):
    allowed = 3 if frame[0] == 10 or sum(frame[:2]) == 10 else 2
    if len(frame) > allowed:
        raise RollError("too many rolls")
    if frame[0] != 10 and sum(frame[:2]) > 10:
        raise RollError("too many pins in the last frame")
    if len(frame) == 3 and frame[0] == 10 and frame[1] != 10 and frame[1] + frame[2] > 10:
        raise RollError("too many bonus pins")


def scores(rolls):
    """Running total after each frame that can be counted already."""
    check(rolls)
    totals, total, i = [], 0, 0
    for frame in frames(rolls)[:10]:
        if len(totals) == 9:
            done = len(frame) == 3 or (len(frame) == 2 and sum(frame) < 10)
            return totals + [total + sum(frame)] if done else totals
        if frame == [10]:
            needed = rolls[i : i + 3]
        elif sum(frame) == 10:
            needed = rolls[i : i + 3]
        else:
            needed = rolls[i : i + 2]
        if len(needed) < (3 if sum(frame) == 10 else 2):
            break
        total += sum(needed)
        totals.append(total)
        i += len(frame)
    return totals


def is_over(rolls):
    return len(scores(rolls)) == 10


def best_possible(rolls):
    """The highest total that can still be reached."""
    rolls = list(rolls)
    while not is_over(rolls):
        rolls.append(10 if can_roll(rolls, 10) else missing(rolls))
    return scores(rolls)[-1]


def can_roll(rolls, pins):
    try:
        check([*rolls, pins])
    except RollError:
        return False
    return True


def missing(rolls):
    return max(pins for pins in range(11) if can_roll(rolls, pins))


def show(rolls):
    """Frames as text: X for a strike, / for a spare, - for nothing."""
    texts = []
    for frame in frames(rolls):
        text = ""
        for place, pins in enumerate(frame):
            if pins == 10 and (place == 0 or text[-1] in "X/"):
                text += "X"
            elif place > 0 and frame[place - 1] + pins == 10 and text[-1] not in "X/":
                text += "/"
            else:
                text += str(pins) if pins else "-"
        texts.append(text)
    return " ".join(texts)
