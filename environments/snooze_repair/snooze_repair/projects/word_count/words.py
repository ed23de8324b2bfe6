"""Which words a text uses, and how often."""

STOP = ("a", "an", "and", "in", "is", "it", "of", "on", "the", "to")


def words(text):
    """Lower-case words; apostrophes and hyphens inside a word belong to it."""
    found, word = [], ""
    for c in text.lower() + " ":
        if c.isalnum() or (c in "'-" and word):
            word += c
        else:
            word = word.rstrip("'-")
            if word:
                found.append(word)
            word = ""
    return found


def count(text, skip=STOP):
    """{word: times} without the words to skip."""
    counts = {}
    for word in words(text):
        if word not in skip:
            counts[word] = counts.get(word, 0) + 1
    return counts


def top(text, n=3, skip=STOP):
    """The n most frequent words; equal ones by the alphabet."""
    counts = count(text, skip)
    return sorted(counts, key=lambda word: (-counts[word], word))[:n]


def sentences(text):
    """Sentences end in . ! or ? followed by a blank or the end."""
    found, start = [], 0
    for i, c in enumerate(text):
        if c in ".!?" and text[i + 1 : i + 2] in ("", " ", "\n"):
            found.append(text[start : i + 1].strip())
            start = i + 1
    rest = text[start:].strip()
    return found + [rest] if rest else found


def average_length(text):
    """Words per sentence, rounded to one decimal."""
    parts = sentences(text)
    if not parts:
        return 0.0
    return round(sum(len(words(part)) for part in parts) / len(parts), 1)


def histogram(text, width=10):
    """Rows of word length, bar and number; the longest bar has the width."""
    lengths = {}
    for word in words(text):
        lengths[len(word)] = lengths.get(len(word), 0) + 1
    most = max(lengths.values(), default=0)
    return [f"{size:>2} {'#' * max(1, lengths[size] * width // most)} {lengths[size]}" for size in sorted(lengths)]


def pairs(text):
    """Neighbouring words that occur more than once, {pair: times}."""
    counts = {}
    for part in sentences(text):
        found = words(part)
        for one, other in zip(found, found[1:]):
            pair = f"{one} {other}"
            counts[pair] = counts.get(pair, 0) + 1
    return {pair: times for pair, times in counts.items() if times > 1}
